"""The threshold of a label that reaches a precision or a recall asked for.

Of rows with several labels each label has a threshold of its own: from that probability on it is assigned. The lowest
one that reaches a precision finds the most rows at it; the highest one that reaches a recall is wrong the least at it.
Where few rows have a label, either is a matter of luck, so rows can count as their probabilities expect instead.
"""

from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from textcls.errors import ConfigError
from textcls.evaluation.selective_prediction import SAME, between

Floats = NDArray[np.floating[Any]]
Float64 = NDArray[np.float64]
Measure = Literal["precision", "recall"]

# A label counts as if so many of its rows were as its probabilities expect, where few rows have it.
EXPECTED_ROWS: Final = 20.0


@dataclass(frozen=True, slots=True)
class Goal:
    """What thresholds are to reach: a share of `measure`.

    Raises:
        ConfigError: the share is none.
    """

    measure: Measure
    share: float

    def __post_init__(self) -> None:
        if not 0 < self.share <= 1:
            raise ConfigError(f"A target {self.measure} is a number above 0 and up to 1, not {self.share}.")

    @classmethod
    def of(cls, precision: float | None, recall: float | None) -> "Goal | None":
        """Return the goal that is one of the two; None without either.

        Raises:
            ConfigError: both are given, or one is no share.
        """
        if precision is not None and recall is not None:
            raise ConfigError("A target precision and a target recall each choose the thresholds; give one of them.")
        if precision is not None:
            return cls("precision", precision)
        return None if recall is None else cls("recall", recall)

    @property
    def promised(self) -> float:
        """The threshold by probabilities alone, where no row says anything.

        Rows from a probability on are right in at least such a share, if it is honest. Of recall it says nothing, and a
        label that is more probable than not is assigned.
        """
        return self.share if self.measure == "precision" else 0.5


def counted(probability: Floats, target: Floats | NDArray[np.bool_], expected: float | Float64) -> Float64:
    """Return how much of each row counts as one of the label: partly as it is, partly as its probability expects.

    Args:
        probability: how probable the label is, by the model.
        target: how probable it is, by the data: 0 or 1.
        expected: how much its probability counts, from 0 to 1.
    """
    return np.asarray(target * (1 - expected) + probability * expected, np.float64)


def reaching(goal: Goal, probability: Floats, found: Floats) -> float | None:
    """Return the threshold that reaches a goal on some rows; None if none does.

    Rows whose probabilities differ by less than a millionth stand or fall together, and a threshold stands well between
    two of them.

    Args:
        goal: what is to be reached.
        probability: that of the label [rows].
        found: how much of each row counts as one of the label [rows], see `counted`.
    """
    if not len(probability) or not found.sum():
        return None
    order = np.argsort(-probability, kind="stable")
    falling = probability[order].astype(np.float64)
    last = np.flatnonzero(np.append(falling[:-1] - falling[1:] > SAME, True))
    right = np.cumsum(found[order], dtype=np.float64)[last]
    # What is as large but for the last digits of a sum reaches it.
    if goal.measure == "precision":
        able = np.flatnonzero(right / (last + 1) >= goal.share - 1e-12)[-1:]
    else:
        able = np.flatnonzero(right / right[-1] >= goal.share - 1e-12)[:1]
    if not len(able):
        return None
    end = int(last[able[0]])
    below = falling[end + 1] if end + 1 < len(falling) else 0.0
    return between(float(below), float(falling[end]))
