"""What is asked of each text, and an answer as the columns it becomes."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from textcls.classifier import Classifier
from textcls.results import Prediction

Answer = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What to answer.

    Attributes:
        explain: also what each token added to the winning label, as pairs of token and contribution.
        top_k: also the best labels, as pairs of label and score; None asks for none.
        threshold: score below which the decision is `abstain`; None leaves it to the model.
    """

    explain: bool = False
    top_k: int | None = None
    threshold: float | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns of an answer."""
        more = (*(["top_labels"] if self.top_k is not None else []), *(["explanation"] if self.explain else []))
        return ("predicted_label", "score", "decision", *more)

    def of(self, classifier: Classifier, texts: Sequence[str]) -> list[Answer]:
        """Return the answers of `classifier` to `texts`.

        Raises:
            ConfigError: the threshold is no probability.
        """
        answers = classifier.predict(texts, explain=self.explain, threshold=self.threshold)
        return [self._columns_of(answer) for answer in answers]

    def _columns_of(self, answer: Prediction) -> Answer:
        label = answer.label
        found: Answer = {"predicted_label": label, "score": round(answer.score, 6), "decision": answer.decision}
        if self.top_k is not None:
            found["top_labels"] = [[best.label, round(best.score, 6)] for best in answer.top(self.top_k)]
        if answer.explanation is not None:
            told = answer.explanation
            added = told.contributions[:, told.labels.index(label)].tolist()
            shares = zip(told.spans, added, strict=True)
            found["explanation"] = [[told.text[start:end], round(value, 4)] for (start, end), value in shares]
        return found
