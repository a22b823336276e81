"""The threshold of a label that reaches a requested precision or recall.

With several labels per row, each label has its own threshold: it is assigned from that probability on. The lowest one
that reaches a precision finds the most rows; the highest one that reaches a recall makes the fewest errors. If few rows
have a label, either is a matter of luck, so rows can count as their probabilities expect instead.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from textcls.errors import ConfigError
from textcls.evaluation.selective_prediction import SAME, between
from textcls.model.artifact import ModelInfo

Floats = NDArray[np.floating[Any]]
Float64 = NDArray[np.float64]
Measure = Literal["precision", "recall"]

# If few rows have a label, it counts as if this many more of its rows were as its probabilities expect.
EXPECTED_ROWS: Final = 20.0
# The threshold of a label is shrunk towards this share of that of all labels, with the weight of this many rows.
# Measured: benchmarks/label_thresholds.md.
SHARE_OF_ALL: Final = 0.7
SHRINKAGE: Final = 1.0
# And it is at least this share of that of all labels.
LEAST_SHARE: Final = 0.15
# A sentence mentions labels with at most this many rows, and names this many of them.
_FEW, _NAMED = 3, 5
# The key, in the metadata of a training, of the number of held-out rows per label that thresholds were chosen on.
THRESHOLD_ROWS: Final = "threshold_rows"


@dataclass(frozen=True, slots=True)
class Goal:
    """What thresholds should reach: a share of `measure`.

    Raises:
        ConfigError: the share is not one.
    """

    measure: Measure
    share: float

    def __post_init__(self) -> None:
        if not isinstance(self.share, Real) or not 0 < self.share <= 1:
            raise ConfigError(f"A target {self.measure} is a number above 0 and up to 1, not {self.share!r}.")

    @classmethod
    def of(cls, precision: float | None, recall: float | None) -> "Goal | None":
        """Return the goal for whichever of the two is given; None without either.

        Raises:
            ConfigError: both are given, or one is not a share.
        """
        if precision is not None and recall is not None:
            raise ConfigError("A target precision and a target recall each choose the thresholds; give one of them.")
        if precision is not None:
            return cls("precision", precision)
        return None if recall is None else cls("recall", recall)

    @property
    def promised(self) -> float:
        """The threshold based on probabilities alone, if no row says anything.

        At least this share of the rows from a probability on is right, if it is honest. It says nothing about recall,
        where a label that is more probable than not is assigned.
        """
        return self.share if self.measure == "precision" else 0.5


def counted(probability: Floats, target: Floats | NDArray[np.bool_], expected: float | Float64) -> Float64:
    """Return how much of each row counts as one of the label: partly as labelled, partly as its probability expects.

    Args:
        probability: how probable the label is according to the model.
        target: how probable it is according to the data: 0 or 1.
        expected: the weight of its probability, from 0 to 1.
    """
    return np.asarray(target * (1 - expected) + probability * expected, np.float64)


class SharedThreshold:
    """The single threshold with the highest F1 of all labels together (micro-F1), with labels added a few at a time.

    Answers are counted in bins of their log-odds, each `1 / 64` wide, so that only these are kept.
    """

    _BINS: Final = 64 * 32

    def __init__(self) -> None:
        self._answers, self._right = np.zeros(self._BINS), np.zeros(self._BINS)

    def add(self, probability_RK: Float64, target_RK: Floats) -> None:
        """Count rows [R, K] of some labels: how probable each label is according to the model and the data."""
        odds_RK = np.log(np.maximum(probability_RK, 1e-12) / np.maximum(1 - probability_RK, 1e-12))
        bin_N = np.clip(np.floor(odds_RK * 64).astype(np.int64) + self._BINS // 2, 0, self._BINS - 1).ravel()
        self._answers += np.bincount(bin_N, minlength=self._BINS)
        self._right += np.bincount(bin_N, target_RK.ravel(), self._BINS)

    def value(self) -> float:
        """Return the threshold; 1/2 if no row has any label."""
        if not self._right.any():
            return 0.5
        answers, right = self._answers[::-1].cumsum(), self._right[::-1].cumsum()
        best = int((2 * right / (answers + right[-1])).argmax())
        odds = (self._BINS - 1 - best - self._BINS // 2) / 64
        return float(1 / (1 + np.exp(-odds)))


def drawn(own_C: Float64, rows_C: Floats, shared: float) -> Float64:
    """Return the thresholds of labels, each shrunk towards that of all labels, the more strongly the fewer its rows.

    The best threshold on few rows is a matter of luck, and for labels whose probabilities are tiny it is nearly 0: one
    such label adds hundreds of wrong answers. Log-odds are averaged: those of the label's own threshold with weight
    `rows / (rows + SHRINKAGE)`, and those of `SHARE_OF_ALL` times the one of all with the remaining weight. No
    threshold is below `LEAST_SHARE` times that: for a label that its model can hardly recognise, the best F1 is reached
    by assigning it to half of all rows, however many rows have it.

    Args:
        own_C: the threshold chosen on each label's own rows [C].
        rows_C: how many rows have each label.
        shared: the threshold of all labels together.
    """
    weight_C = rows_C / (rows_C + SHRINKAGE)
    odds_C = weight_C * log_odds(own_C) + (1 - weight_C) * log_odds(np.array(SHARE_OF_ALL * shared))
    return np.asarray(np.maximum(1 / (1 + np.exp(-odds_C)), LEAST_SHARE * shared))


def log_odds(probability: Float64) -> Float64:
    """Return the log-odds of probabilities, with 0 and 1 moved a billionth inwards."""
    clipped = np.clip(probability, 1e-9, 1 - 1e-9)
    return np.asarray(np.log(clipped / (1 - clipped)))


def reaching(goal: Goal, probability: Floats, found: Floats) -> float | None:
    """Return the threshold that reaches a goal on some rows; None if none does.

    Rows whose probabilities differ by less than a millionth stay together, and a threshold lies well between two of
    them.

    Args:
        goal: what is to be reached.
        probability: the probability of the label [rows].
        found: how much of each row counts as one of the label [rows], see `counted`.
    """
    if not len(probability) or not found.sum():
        return None
    order = np.argsort(-probability, kind="stable")
    falling = probability[order].astype(np.float64)
    last = np.flatnonzero(np.append(falling[:-1] - falling[1:] > SAME, True))
    right = np.cumsum(found[order], dtype=np.float64)[last]
    # A value that equals the goal but for the last digits of a sum reaches it.
    if goal.measure == "precision":
        able = np.flatnonzero(right / (last + 1) >= goal.share - 1e-12)[-1:]
    else:
        able = np.flatnonzero(right / right[-1] >= goal.share - 1e-12)[:1]
    if not len(able):
        return None
    end = int(last[able[0]])
    below = falling[end + 1] if end + 1 < len(falling) else 0.0
    return between(float(below), float(falling[end]))


def resting_sentence(rows: Mapping[str, int]) -> str | None:
    """Return a sentence on the labels whose threshold rests on few held-out rows; None if there are none.

    Args:
        rows: how many held-out rows have each label.
    """
    few = sorted((number, label) for label, number in rows.items() if number <= _FEW)
    if not few:
        return None
    shown = ", ".join(f"{label!r} ({number})" for number, label in few[:_NAMED])
    more = f" and {len(few) - _NAMED:,} more" if len(few) > _NAMED else ""
    return (
        f"{len(few):,} of {len(rows):,} labels have at most {_FEW} held-out rows, so thresholds are drawn "
        f"to that of all labels: {shown}{more}."
    )


def threshold_rows(info: ModelInfo) -> dict[str, int] | None:
    """Return on how many held-out rows the threshold of each label was chosen, if the model states it."""
    rows = info.training.get(THRESHOLD_ROWS)
    if not isinstance(rows, list | tuple) or len(rows) != len(info.labels):
        return None
    return {label: int(number) for label, number in zip(info.labels, rows, strict=True) if isinstance(number, int)}
