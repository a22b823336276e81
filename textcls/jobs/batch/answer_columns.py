"""The columns of a table that an answer becomes."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Any, Final

from textcls.data.rows import Format
from textcls.data.targets import JSON
from textcls.errors import ConfigError
from textcls.model.classifier import Classifier
from textcls.model.columns import named_cell
from textcls.model.explanation import Explanation
from textcls.model.label_paths import SURE, LabelPaths
from textcls.model.prediction import Prediction

Columns = dict[str, Any]
# Between several labels in a CSV cell.
SEPARATOR: Final = ";"
# The characters of numbers.
_OF_NUMBERS: Final = frozenset("0123456789.e+-")


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerColumns:
    """Which columns to answer with: the label, its score and the decision, and more if wanted.

    If a text may have several labels, these are the labels that reach their thresholds, the most probable first, and
    their scores in the same order.

    Attributes:
        explain: also what each token added to the winning label, as pairs of token and contribution; with several
            labels, to each assigned label, as pairs of the label and such a list.
        top_k: also this number of best labels, as pairs of label and score; None for no such column.
        threshold: score below which the decision is `abstain`; None leaves it to the model.
        several: whether a text may have several labels.
        separator: what joins several labels, and their scores, into one text; None leaves them as lists.
        label_path: what separates the parts of labels that are paths of a tree: also the deepest node that is sure, by
            the threshold, its score, and its part at each level; None for no such columns, unless the model has a
            tree.
        levels: the number of levels of the tree.
        prefix: the beginning of all column names.
    """

    explain: bool = False
    top_k: int | None = None
    threshold: float | None = None
    several: bool = False
    separator: str | None = None
    label_path: str | None = None
    levels: int = 0
    prefix: str = ""

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(f"{self.prefix}{name}" for name in self._plain_names())

    def _plain_names(self) -> tuple[str, ...]:
        top = ["top_labels"] if self.top_k is not None else []
        if self.several:
            return ("predicted_labels", "scores", "decision", *top, *(["explanations"] if self.explain else []))
        nodes = [] if self.label_path is None else ["predicted_node", "node_score", *self._levels()]
        return ("predicted_label", "score", "decision", *nodes, *top, *(["explanation"] if self.explain else []))

    def written_as(self, kind: Format, classifier: Classifier) -> "AnswerColumns":
        """Return the columns in which `classifier` answers in a file of this format.

        Several labels are a list, but in CSV, TSV and Excel one text: joined by the separator, `;` by default, or as
        JSON if that is `json`.

        Raises:
            ConfigError: a label separator was chosen but nothing is joined, or it may occur in a label or a score; or
                a path separator was chosen, but labels are not paths, or a text may have several.
            InputError: a part of a label that is a path is empty.
        """
        if not classifier.info.several:
            if self.separator is not None:
                raise ConfigError("--label-separator joins several labels, and this model gives one; leave it out.")
            return self._with_levels(classifier)
        if self.label_path is not None:
            raise ConfigError("--label-path is for models of one label per text, and this one may give several.")
        if kind not in ("csv", "tsv", "xlsx"):
            if self.separator is not None:
                raise ConfigError(f"--label-separator joins the labels of a cell; {kind} has lists, so leave it out.")
            return replace(self, several=True)
        separator = self.separator or SEPARATOR
        if separator == JSON:
            return replace(self, several=True, separator=None)
        held = next((label for label in classifier.labels if separator in label), None)
        if held is not None:
            raise ConfigError(
                f"The label {held!r} contains the separator {separator!r}; choose another with "
                "--label-separator, or json for lists of JSON."
            )
        if _OF_NUMBERS & set(separator):
            raise ConfigError(f"The separator {separator!r} may stand in a score; choose another, or json.")
        return replace(self, several=True, separator=separator)

    def _with_levels(self, classifier: Classifier) -> "AnswerColumns":
        """Return the columns with one per level of the tree, if labels are paths."""
        tree = classifier.tree if self.label_path is None else LabelPaths(classifier.labels, self.label_path)
        return self if tree is None else replace(self, label_path=tree.separator, levels=tree.depth)

    def of(self, classifier: Classifier, texts: Sequence[str]) -> list[Columns]:
        """Return the columns of the answers of `classifier` to `texts`.

        Raises:
            ConfigError: the threshold is not a probability.
        """
        predictions = classifier.predict(texts, explain=self.explain, threshold=self.threshold)
        found = [self._of_one(prediction) for prediction in predictions]
        if self.label_path is not None:
            self._add_nodes(found, LabelPaths(classifier.labels, self.label_path), predictions)
        return [{f"{self.prefix}{name}": value for name, value in columns.items()} for columns in found]

    def _add_nodes(self, found: Sequence[Columns], tree: LabelPaths, predictions: Sequence[Prediction]) -> None:
        probabilities = [prediction.probabilities for prediction in predictions]
        threshold = self.threshold if self.threshold is not None else predictions[0].threshold
        deepest = tree.deepest(probabilities, SURE if threshold is None else threshold)
        for columns, node in zip(found, deepest, strict=True):
            path = () if node is None else node.path
            columns["predicted_node"] = None if node is None else tree.name(path)
            columns["node_score"] = None if node is None else round(node.score, 6)
            columns |= zip_longest(self._levels(), path)

    def _levels(self) -> list[str]:
        return [f"level_{number}" for number in range(1, self.levels + 1)]

    def _of_one(self, prediction: Prediction) -> Columns:
        found: Columns = self._assigned(prediction) if self.several else _winner(prediction)
        found["decision"] = prediction.decision
        if self.top_k is not None:
            found["top_labels"] = [[best.label, round(best.score, 6)] for best in prediction.top(self.top_k)]
        explanation = prediction.explanation
        if explanation is not None and self.several:
            found["explanations"] = [[label, _contributions(explanation, label)] for label in prediction.assigned]
        elif explanation is not None:
            found["explanation"] = _contributions(explanation, prediction.label)
        return found

    def _assigned(self, prediction: Prediction) -> Columns:
        labels = list(prediction.assigned)
        numbers = [prediction.label_names.index(label) for label in labels]
        scores = [round(float(prediction.probabilities[i]), 6) for i in numbers]
        if self.separator is None:
            return {"predicted_labels": labels, "scores": scores}
        return {"predicted_labels": self.separator.join(labels), "scores": self.separator.join(map(repr, scores))}


def _winner(prediction: Prediction) -> Columns:
    return {"predicted_label": prediction.label, "score": round(prediction.score, 6)}


def _contributions(explanation: Explanation, label: str) -> list[list[Any]]:
    """Return what each token, and each column beside the text, as `product = phone`, added to `label`."""
    number = explanation.labels.index(label)
    pairs = zip(explanation.spans, explanation.contributions[:, number].tolist(), strict=True)
    tokens = [[explanation.text[start:end], round(value, 4)] for (start, end), value in pairs]
    cells = [[named_cell(one.name, one.value), round(float(one.contributions[number]), 4)] for one in explanation.cells]
    return tokens + cells
