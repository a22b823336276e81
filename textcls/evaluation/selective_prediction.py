"""Selective prediction: the threshold below which a model abstains, so as to reach a precision on labelled rows.

A row is accepted if its confidence, the probability of its best label, is not below the threshold. Scores are given to
six digits, so rows that differ by less stay together: a threshold between them would depend on the last bits of a sum.

The bound of the precision is that of Clopper and Pearson (1934), computed by SciPy, which comes with the extra
`textcls[train]` and is imported on use.
"""

from dataclasses import asdict, dataclass
from numbers import Real
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
    """The result of a threshold on labelled rows: how many are answered, and how many of these correctly.

    Attributes:
        threshold: confidence below which a row is not answered.
        rows: number of rows.
        accepted: rows that are answered.
        right: those of them that are answered correctly.
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
        """Return the lower bound of the precision at level `CONFIDENCE` (Clopper-Pearson, one-sided).

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
    """Return the result of `threshold` on rows of this confidence, given which are answered correctly."""
    # Compared as a Classifier does: the threshold is rounded to the type of the confidence.
    accepted = confidence >= confidence.dtype.type(threshold)
    return OperatingPoint(threshold, len(confidence), int(accepted.sum()), int((accepted & right).sum()))


def choose(target: float, confidence: Floats, right: Bools) -> tuple[OperatingPoint, bool]:
    """Return the lowest threshold at which a share `target` of the accepted rows is right, and True.

    If there is none, return the one with the highest precision that can be reached, the lowest of several, and False.

    Raises:
        ConfigError: the target is not a share, or there are no rows.
    """
    if not isinstance(target, Real) or not 0 <= target <= 1:
        raise ConfigError(f"A target precision is a number from 0 to 1, not {target!r}.")
    if not len(confidence):
        raise ConfigError("There are no rows to choose a threshold on.")
    cuts = Cuts(confidence, right)
    precision = cuts.right / cuts.accepted
    reached = precision >= target
    cut = int(np.flatnonzero(reached if reached.any() else precision == precision.max())[-1])
    return cuts.point(cut), bool(reached.any())


class Cuts:
    """The cuts at which a threshold can split rows, from few answered rows to all: between scores that differ.

    Attributes:
        accepted: how many rows are answered at each.
        right: how many of these are right.
    """

    def __init__(self, confidence: Floats, right: Bools) -> None:
        self._confidence, self._is_right = confidence, right
        order = np.argsort(-confidence, kind="stable")
        self._falling = confidence[order].astype(np.float64)
        # The last row of each group of rows that stay together.
        last = np.flatnonzero(np.append(self._falling[:-1] - self._falling[1:] > SAME, True))
        self.accepted, self.right = last + 1, np.cumsum(right[order])[last]

    def point(self, cut: int) -> OperatingPoint:
        """Return the operating point at a cut, with a threshold of few digits."""
        accepted = int(self.accepted[cut])
        inside = self._falling[accepted - 1 : accepted + 1]
        threshold = between(float(inside[1]), float(inside[0])) if len(inside) > 1 else 0.0
        return at(threshold, self._confidence, self._is_right)


def between(low: float, high: float) -> float:
    """Return a number of few digits well inside the interval."""
    middle, margin = (low + high) / 2, (high - low) / 8
    short = (round(middle, digits) for digits in range(1, _DIGITS))
    return next((number for number in short if low + margin < number < high - margin), middle)
