"""An answer as the columns it becomes in a table."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from textcls.classifier import Classifier
from textcls.prediction import Prediction

Columns = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerColumns:
    """Which columns to answer with: the label, its score and the decision, and more if wanted.

    Attributes:
        explain: also what each token added to the winning label, as pairs of token and contribution.
        top_k: also the best labels, as pairs of label and score; None for no such column.
        threshold: score below which the decision is `abstain`; None leaves it to the model.
    """

    explain: bool = False
    top_k: int | None = None
    threshold: float | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns."""
        more = (*(["top_labels"] if self.top_k is not None else []), *(["explanation"] if self.explain else []))
        return ("predicted_label", "score", "decision", *more)

    def of(self, classifier: Classifier, texts: Sequence[str]) -> list[Columns]:
        """Return the columns of the answers of `classifier` to `texts`.

        Raises:
            ConfigError: the threshold is no probability.
        """
        predictions = classifier.predict(texts, explain=self.explain, threshold=self.threshold)
        return [self._of_one(prediction) for prediction in predictions]

    def _of_one(self, prediction: Prediction) -> Columns:
        label = prediction.label
        found: Columns = {
            "predicted_label": label,
            "score": round(prediction.score, 6),
            "decision": prediction.decision,
        }
        if self.top_k is not None:
            found["top_labels"] = [[best.label, round(best.score, 6)] for best in prediction.top(self.top_k)]
        explanation = prediction.explanation
        if explanation is not None:
            added = explanation.contributions[:, explanation.labels.index(label)].tolist()
            pairs = zip(explanation.spans, added, strict=True)
            found["explanation"] = [[explanation.text[start:end], round(value, 4)] for (start, end), value in pairs]
        return found
