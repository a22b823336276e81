"""A report on a model that may give a text several labels, or none.

Shapes: N rows, C labels.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from textcls.evaluation import label_set_metrics
from textcls.evaluation.intervals import Estimate, student
from textcls.evaluation.label_set_evaluation import indicators
from textcls.evaluation.label_set_intervals import label_set_intervals
from textcls.evaluation.label_set_metrics import LabelSetReport
from textcls.evaluation.reporting.answers import AnsweredRows
from textcls.evaluation.reporting.label_aims import LabelAims, label_aims
from textcls.evaluation.reporting.model_report import ModelFile, ModelReport
from textcls.evaluation.reporting.set_answers import SetAnswers
from textcls.evaluation.reporting.set_errors import Judged, LabelErrors, missed, too_many
from textcls.evaluation.reporting.slices import ReadText, slices
from textcls.model.classifier import Classifier

Bools = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelSetModelReport(ModelReport):
    """Everything that labelled rows show about a model that may give a text several labels.

    Attributes:
        scores: F1, average precision and calibration error over all rows, and label by label.
        micro_f1: F1 of all labels of all rows together.
        labels_a_row: the mean number of labels per row.
        promised: by how much the probabilities, added up, exceed the number of labels that rows have among those that
            the model knows, as the mean over the rows.
        aims: the effects of thresholds.
        missed: labels that rows have and were not assigned, including those that the model does not know.
        too_many: labels that rows were assigned and do not have.

    Examples:
        >>> rows = [("my card was charged twice", ["billing"]), ("hello", [])] * 20
        >>> textcls.report(textcls.Classifier.load("tags.onnx"), rows).rows
        40
    """

    scores: LabelSetReport
    micro_f1: Estimate
    labels_a_row: float
    promised: Estimate
    aims: LabelAims
    missed: LabelErrors
    too_many: LabelErrors

    def figures(self) -> dict[str, float]:
        """Return the figures by which runs are compared, by name."""
        loss = self.scores.cross_entropy
        named = {"exact": self.accuracy, "micro_f1": self.micro_f1, "macro_f1": self.macro_f1}
        found = {name: one.value for name, one in named.items()}
        found |= {f"{name}_low": one.low for name, one in named.items()}
        found |= {f"{name}_high": one.high for name, one in named.items()}
        found |= {"average_precision": self.scores.average_precision, "ece": self.scores.ece}
        found["weak_slices"] = len(self.weak_slices)
        return found | ({} if loss is None else {"cross_entropy": loss})

    def _own_json(self) -> dict[str, Any]:
        return {
            "exact_interval": [self.accuracy.low, self.accuracy.high],
            "micro_f1_interval": [self.micro_f1.low, self.micro_f1.high],
            "labels_a_row": self.labels_a_row,
            "promised_too_many": self.promised.as_json(),
            "thresholds": self.aims.as_json(),
            "missed": self.missed.as_json(),
            "too_many": self.too_many.as_json(),
        }


def label_set_report(
    classifier: Classifier,
    model: ModelFile,
    found: AnsweredRows[frozenset[str], ReadText],
    kept: SetAnswers,
    columns: Mapping[str, Sequence[object]],
) -> LabelSetModelReport:
    """Return the report.

    Args:
        classifier: explains the errors that are reported.
        model: the description of its file.
        found: the rows and its answers to them.
        kept: the words behind these answers.
        columns: further columns of the rows, by whose values the model is evaluated as well.

    Raises:
        InputError: the rows have no label, or none that the model knows.
    """
    names, probability_NC = model.info.labels, found.probabilities
    gold_NC, unknown = indicators(found.right, names)
    known_NC = gold_NC[:, : len(names)]
    thresholds = model.info.thresholds or ()
    scores = label_set_metrics.report(probability_NC, gold_NC, thresholds, names, unknown)
    assigned_NC = np.zeros(gold_NC.shape, np.bool_)
    assigned_NC[:, : len(names)] = probability_NC >= np.array(thresholds, probability_NC.dtype)
    judged = Judged(found.texts, (*names, *unknown), found.right, gold_NC, assigned_NC, probability_NC)
    intervals = label_set_intervals(gold_NC, assigned_NC)

    def micro_f1(rows_N: Bools) -> float | None:
        gold, assigned = gold_NC[rows_N], assigned_NC[rows_N]
        # It would be 0 whatever labels are assigned to rows without any.
        return label_set_metrics.f1(assigned & gold, assigned, gold) if gold.any() else None

    exact_N = (assigned_NC == gold_NC).all(1)
    return LabelSetModelReport(
        model=model,
        scores=scores,
        unknown_labels=unknown,
        accuracy=intervals.exact,
        micro_f1=intervals.micro_f1,
        macro_f1=intervals.macro_f1,
        label_f1=intervals.f1,
        labels_a_row=float(gold_NC.sum(1).mean()),
        promised=_mean(probability_NC.sum(1, dtype=np.float64) - known_NC.sum(1), len(names)),
        aims=label_aims(probability_NC, gold_NC, thresholds, names),
        missed=missed(classifier, judged, kept.strongest_against(), kept.words),
        too_many=too_many(classifier, judged, kept.strongest_for(), kept.words),
        slices=slices(found.answers, exact_N, columns, micro_f1),
        evidence=found.evidence,
    )


def _mean(value_N: NDArray[np.float64], most: int) -> Estimate:
    """Return the mean of numbers of labels with Student's interval (1908)."""
    mean, rows = float(value_N.mean()), len(value_N)
    # With a single row, nothing is known but the number of labels.
    half = student(rows - 1) * float(value_N.std(ddof=1)) / rows**0.5 if rows > 1 else float(most)
    return Estimate(mean, mean - half, mean + half)
