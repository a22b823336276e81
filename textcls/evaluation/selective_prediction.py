"""Selective prediction: the threshold below which a model abstains, to keep a promise of precision on labelled rows.

A row is accepted if its confidence, the probability of its best label, is not below the threshold. Scores are given
to six digits, so rows that differ by less stand or fall together: a threshold between them would let the last bits of a
sum decide.

The bound of the precision is that of Clopper and Pearson (1934), by SciPy, which comes with the extra `textcls[train]`;
it is imported on use.
"""

from dataclasses import asdict, dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from textcls._util import optional_dependencies
from textcls.errors import ConfigError

Floats = NDArray[np.floating[Any]]
Bools = NDArray[np.bool_]

SAME: Final = 1e-6
CONFIDENCE: Final = 0.95
_DIGITS: Final = 9


@dataclass(frozen=True, slots=True)
class OperatingPoint:
    """What a threshold gives on labelled rows: how many are answered, and how many of these right.

    Attributes:
        threshold: confidence below which a row is not answered.
        rows: number of rows.
        accepted: rows that are answered.
        right: those of them that are answered right.
    """

    threshold: float
    rows: int
    accepted: int
    right: int

    @property
    def coverage(self) -> float:
        """Share of the rows that are answered."""
        return self.accepted / self.rows if self.rows else 0.0

    @property
    def precision(self) -> float | None:
        """Share of the answers that are right; None if there are no answers."""
        return self.right / self.accepted if self.accepted else None

    def lower_bound(self) -> float:
        """Return what the precision is at least with `CONFIDENCE` (Clopper-Pearson, one-sided).

        Raises:
            MissingExtraError: SciPy is not installed.
        """
        if not self.right:
            return 0.0
        with optional_dependencies.needed_by("The bound of a precision"):
            from scipy.special import betaincinv
        return float(betaincinv(self.right, self.accepted - self.right + 1, 1 - CONFIDENCE))

    def as_json(self) -> dict[str, Any]:
        """Return all of it as plain data."""
        more = {"coverage": self.coverage, "precision": self.precision}
        return {**asdict(self), **more, "precision_at_least": self.lower_bound(), "confidence": CONFIDENCE}


def at(threshold: float, confidence: Floats, right: Bools) -> OperatingPoint:
    """Return how `threshold` does on rows of this confidence, of which some are answered right."""
    # As a Classifier compares: the threshold is rounded to the type of the confidence.
    accepted = confidence >= confidence.dtype.type(threshold)
    return OperatingPoint(threshold, len(confidence), int(accepted.sum()), int((accepted & right).sum()))


def choose(target: float, confidence: Floats, right: Bools) -> tuple[OperatingPoint, bool]:
    """Return the lowest threshold whose accepted rows are right in a share `target`, and True.

    If there is none, that of the highest precision that can be reached, and False; of several the lowest.

    Raises:
        ConfigError: the target is not a share, or there are no rows.
    """
    if not 0 <= target <= 1:
        raise ConfigError(f"A target precision is a number from 0 to 1, not {target}.")
    if not len(confidence):
        raise ConfigError("There are no rows to choose a threshold on.")
    cuts = Cuts(confidence, right)
    precision = cuts.right / cuts.accepted
    reached = precision >= target
    cut = int(np.flatnonzero(reached if reached.any() else precision == precision.max())[-1])
    return cuts.point(cut), bool(reached.any())


class Cuts:
    """Where rows can be parted by a threshold, from few that are answered to all: between scores that differ.

    Attributes:
        accepted: how many rows are answered at each.
        right: how many of these right.
    """

    def __init__(self, confidence: Floats, right: Bools) -> None:
        self._confidence, self._is_right = confidence, right
        order = np.argsort(-confidence, kind="stable")
        self._falling = confidence[order].astype(np.float64)
        # Up to the last row of each group of rows that stand or fall together.
        last = np.flatnonzero(np.append(self._falling[:-1] - self._falling[1:] > SAME, True))
        self.accepted, self.right = last + 1, np.cumsum(right[order])[last]

    def point(self, cut: int) -> OperatingPoint:
        """Return what is reached there, at a threshold of few digits."""
        accepted = int(self.accepted[cut])
        inside = self._falling[accepted - 1 : accepted + 1]
        threshold = between(float(inside[1]), float(inside[0])) if len(inside) > 1 else 0.0
        return at(threshold, self._confidence, self._is_right)


def between(low: float, high: float) -> float:
    """Return a number of few digits that is well inside."""
    middle, margin = (low + high) / 2, (high - low) / 8
    short = (round(middle, digits) for digits in range(1, _DIGITS))
    return next((number for number in short if low + margin < number < high - margin), middle)
