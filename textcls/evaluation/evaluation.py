"""A model evaluated on labelled rows: what `textcls evaluate` calls, and `textcls.evaluate` is."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from textcls.batch.chunks import chunked
from textcls.classifier import Classifier
from textcls.errors import ConfigError
from textcls.evaluation import metrics, selective_prediction
from textcls.evaluation.metrics import ClassificationReport
from textcls.evaluation.selective_prediction import OperatingPoint
from textcls.prediction import checked_threshold


class LabelledText(NamedTuple):
    """A text and the label it should get."""

    text: str
    label: str


@dataclass(frozen=True, slots=True)
class Evaluation:
    """How a model fared on labelled rows.

    Attributes:
        report: of all rows, whether the model would abstain or not.
        unknown_labels: labels of the rows that the model does not know; each such row counts as an error.
        operating_point: how many rows are answered at the threshold, and how many of these right; None without one.
        target_precision: what the threshold was chosen to reach on these rows; None if it was given.
        reached: whether it does; where no threshold does, the one of the highest precision was chosen.
    """

    report: ClassificationReport
    unknown_labels: tuple[str, ...] = ()
    operating_point: OperatingPoint | None = None
    target_precision: float | None = None
    reached: bool = True

    def as_json(self) -> dict[str, Any]:
        """Return the evaluation as plain data."""
        found = self.report.as_json()
        if self.operating_point is not None:
            chosen = {"chosen": self.target_precision is not None, "reached": self.reached}
            found["abstaining"] = self.operating_point.as_json() | chosen
        return found


def evaluate(
    classifier: Classifier,
    rows: Iterable[tuple[str, str]],
    *,
    target_precision: float | None = None,
    threshold: float | None = None,
) -> Evaluation:
    """Evaluate `classifier` on texts and the labels that they should get.

    Args:
        classifier: the model.
        rows: a text and its label each, such as `zip(texts, labels)`; read once, and not kept.
        target_precision: choose the lowest threshold at which the answers are right in such a share.
        threshold: judge the answers that are not below it; by default the model's own threshold, if it has one.

    Raises:
        MissingExtraError: scikit-learn, or with a threshold SciPy, is not installed.
        ConfigError: both a target and a threshold, or one that is no share; or a target, and no rows.
    """
    metrics.require()
    if target_precision is not None and threshold is not None:
        raise ConfigError("A target precision chooses a threshold: give one of them, not both.")
    threshold = None if threshold is None else checked_threshold(threshold)
    names = classifier.labels
    probabilities, right = _answers(classifier, rows)
    unknown = tuple(sorted(set(right) - set(names)))
    number = {name: i for i, name in enumerate([*names, *unknown])}
    labels = np.array([number[label] for label in right], np.int64)
    report = metrics.report(probabilities, labels, names, unknown)
    confidence, is_right = probabilities.max(1), probabilities.argmax(1) == labels
    if target_precision is not None:
        point, reached = selective_prediction.choose(target_precision, confidence, is_right)
        return Evaluation(report, unknown, point, target_precision, reached)
    threshold = classifier.info.threshold if threshold is None else threshold
    point_or_none = None if threshold is None else selective_prediction.at(threshold, confidence, is_right)
    return Evaluation(report, unknown, point_or_none)


def _answers(classifier: Classifier, rows: Iterable[tuple[str, str]]) -> tuple[NDArray[np.float32], list[str]]:
    """Return the probabilities [rows, labels] of all rows, and the right label of each."""
    chunks = [np.zeros((0, len(classifier.labels)), np.float32)]
    right: list[str] = []
    for chunk in chunked(LabelledText(*row) for row in rows):
        predictions = classifier.predict([row.text for row in chunk])
        chunks.append(np.array([prediction.probabilities for prediction in predictions]))
        right += (row.label for row in chunk)
    return np.concatenate(chunks), right
