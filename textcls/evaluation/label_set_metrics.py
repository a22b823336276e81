"""Measure how good answers are if a text may have several labels, or none.

F1, average precision and ranking loss (of rows with labels) are scikit-learn's, which comes with the extra
`textcls[train]` and is imported on use; calibration is measured for each label separately.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import product
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from textcls.evaluation.metrics import Float, ReliabilityBin, calibration_gap, reliability_of_labels, require

Bools = NDArray[np.bool_]

# This many pairs of confused labels are reported.
PAIRS: Final = 20
# For a row with many errors, this many labels on either side are counted.
_OF_A_ROW: Final = 10


@dataclass(frozen=True, slots=True)
class LabelSetLabelReport:
    """The figures of one label.

    Attributes:
        label: its name.
        threshold: the probability from which on it is assigned.
        precision: share of the rows that were assigned it and have it.
        recall: share of the rows that have it and were assigned it.
        f1: their harmonic mean.
        average_precision: the average precision of ranking rows by its probability; None if no row has it.
        ece: expected calibration error of its probability, 0 to 1.
        rows: how many rows have it.
        assigned: how many rows were assigned it.
    """

    label: str
    threshold: float
    precision: float
    recall: float
    f1: float
    average_precision: float | None
    ece: float
    rows: int
    assigned: int


@dataclass(frozen=True, slots=True)
class LabelSetReport:
    """The figures of a model on rows with several labels each.

    Attributes:
        rows: number of rows.
        exact: share of rows whose assigned labels are exactly theirs.
        micro_f1: F1 of all labels of all rows together.
        macro_f1: mean F1 of the labels that occur.
        samples_f1: mean F1 of the rows; 1 for a row without labels that was assigned none.
        average_precision: mean over the labels that occur.
        ranking_loss: share of the pairs of a label that a row has and one that it does not have which are in the wrong
            order.
        ece: expected calibration error, the mean over the labels that the model knows.
        cross_entropy: mean cross-entropy per row in nats, summed over the labels; None without rows, or if rows have
            labels that the model does not know.
        labels: each label that the model or the data knows.
        mixed_up: pairs of labels, the most frequent first: one that rows have and were not assigned, one that they were
            assigned and do not have, and the number of rows.
        reliability: see `metrics.reliability_of_labels`.
    """

    rows: int
    exact: float
    micro_f1: float
    macro_f1: float
    samples_f1: float
    average_precision: float
    ranking_loss: float
    ece: float
    cross_entropy: float | None
    labels: tuple[LabelSetLabelReport, ...]
    mixed_up: tuple[tuple[str, str, int], ...]
    reliability: tuple[ReliabilityBin, ...]

    def as_json(self) -> dict[str, Any]:
        """Return the report as plain data."""
        found = asdict(self)
        pairs = [{"has": has, "assigned": assigned, "rows": rows} for has, assigned, rows in self.mixed_up]
        return found | {"mixed_up": pairs}


def report(
    probabilities: Float,
    gold: Bools,
    thresholds: Sequence[float],
    names: Sequence[str],
    unknown: Sequence[str] = (),
    *,
    assigned: Bools | None = None,
) -> LabelSetReport:
    """Score probabilities [rows, labels] against the labels that rows have.

    Args:
        probabilities: calibrated, columns in the order of `names`.
        gold: which labels each row has; columns are `names` followed by `unknown`.
        thresholds: the thresholds of `names`.
        names: the labels the model knows.
        unknown: labels of the data that the model does not know, and never assigns.
        assigned: which of `names` each row was assigned, if not determined by `thresholds`.
    """
    require()
    every = [*names, *unknown]
    known = len(names)
    # Compared as a Classifier does: thresholds are rounded to the type of the probabilities.
    answered = probabilities >= np.array(thresholds, probabilities.dtype) if assigned is None else assigned
    assigned = np.zeros(gold.shape, np.bool_)
    assigned[:, :known] = answered
    labels = [
        _label_report(name, float(thresholds[i]), probabilities[:, i], gold[:, i], assigned[:, i])
        for i, name in enumerate(names)
    ]
    of_unknown = gold[:, known:].sum(0).tolist()
    labels += [_unknown_report(name, has, len(gold)) for name, has in zip(unknown, of_unknown, strict=True)]
    present = [label for label in labels if label.rows]
    with_both = gold.any(1) & ~gold.all(1)
    precisions = [label.average_precision for label in present if label.average_precision is not None]
    rows = len(gold)
    return LabelSetReport(
        rows=rows,
        exact=float((assigned == gold).all(1).mean()) if rows else 0.0,
        micro_f1=f1(assigned & gold, assigned, gold),
        macro_f1=_mean([label.f1 for label in present]),
        samples_f1=_samples_f1(assigned, gold),
        average_precision=_mean(precisions),
        ranking_loss=_ranking_loss(_wider(probabilities[with_both], len(every)), gold[with_both]),
        ece=_mean([label.ece for label in labels[:known]]) if rows else 0.0,
        cross_entropy=cross_entropy(probabilities, gold[:, :known]) if rows and not unknown else None,
        labels=tuple(labels),
        mixed_up=_mixed_up(assigned, gold, every),
        reliability=reliability_of_labels(probabilities, gold[:, :known]),
    )


def _label_report(name: str, threshold: float, scores: Float, gold: Bools, assigned: Bools) -> LabelSetLabelReport:
    from sklearn.metrics import average_precision_score

    right, has, given = int((gold & assigned).sum()), int(gold.sum()), int(assigned.sum())
    return LabelSetLabelReport(
        label=name,
        threshold=threshold,
        precision=right / given if given else 0.0,
        recall=right / has if has else 0.0,
        f1=2 * right / (has + given) if has + given else 0.0,
        average_precision=float(average_precision_score(gold, scores)) if has else None,
        ece=calibration_gap(scores, gold),
        rows=has,
        assigned=given,
    )


def _unknown_report(name: str, has: int, rows: int) -> LabelSetLabelReport:
    """Return the report of a label that is never assigned and always has a probability of 0, as `_label_report` would.

    Files may contain thousands of labels by mistake.
    """
    share = has / max(1, rows)
    return LabelSetLabelReport(name, 1.0, 0.0, 0.0, 0.0, share if has else None, share, has, 0)


def calibration_error(probabilities: Float, gold: Bools) -> float:
    """Return the mean calibration error over the labels [rows, labels]."""
    return _mean([calibration_gap(probabilities[:, i], gold[:, i]) for i in range(gold.shape[1])])


def f1(right: Bools, assigned: Bools, gold: Bools) -> float:
    """Return the F1 of some labels of some rows together: 0 if there are none to find and none were assigned."""
    answers = int(assigned.sum()) + int(gold.sum())
    return 2 * int(right.sum()) / answers if answers else 0.0


def _samples_f1(assigned: Bools, gold: Bools) -> float:
    answers = assigned.sum(1) + gold.sum(1)
    if not len(answers):
        return 0.0
    f1 = np.where(answers > 0, 2 * (assigned & gold).sum(1) / np.maximum(answers, 1), 1.0)
    return float(f1.mean())


def _wider(probabilities: Float, labels: int) -> Float:
    """Return probabilities of this many labels: 0 for those that the model does not know."""
    return np.pad(probabilities, ((0, 0), (0, labels - probabilities.shape[1])))


def _ranking_loss(probabilities: Float, gold: Bools) -> float:
    from sklearn.metrics import label_ranking_loss

    return float(label_ranking_loss(gold, probabilities)) if len(gold) and gold.shape[1] > 1 else 0.0


def cross_entropy(probabilities: Float, gold: Bools) -> float:
    """Return the mean cross-entropy per row in nats, summed over the labels [rows, labels]; rows must not be empty."""
    right = np.where(gold, probabilities, 1 - probabilities.astype(np.float64))
    return float(abs(np.log(np.maximum(right, np.finfo(np.float32).tiny)).sum(1).mean()))


def _mixed_up(assigned: Bools, gold: Bools, names: Sequence[str]) -> tuple[tuple[str, str, int], ...]:
    """Return pairs of a label that rows have and were not assigned, and one that they were assigned instead."""
    missed, wrong = gold & ~assigned, assigned & ~gold
    pairs: Counter[tuple[int, int]] = Counter()
    for row in np.flatnonzero(missed.any(1) & wrong.any(1)).tolist():
        pairs.update(product(_some(missed[row]), _some(wrong[row])))
    ordered = sorted(pairs.items(), key=lambda pair: (-pair[1], pair[0]))[:PAIRS]
    return tuple((names[has], names[given], rows) for (has, given), rows in ordered)


def _some(flags: Bools) -> list[int]:
    found: list[int] = np.flatnonzero(flags)[:_OF_A_ROW].tolist()
    return found


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values)) if values else 0.0
