"""When to answer and when to abstain: the threshold that keeps a promise of precision on rows that it is chosen on.

A row is accepted if its confidence, the probability of its best label, is not below the threshold. Scores are told to
six digits, so rows that differ by less stand or fall together: a threshold between them would let the last bits of a
sum decide.

The bound of the precision is that of Clopper and Pearson (1934), by SciPy, which comes with the extra `textcls[train]`;
it is imported on use.
"""

from dataclasses import asdict, dataclass
from numbers import Real
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from textcls import extras
from textcls.errors import ConfigError

Floats = NDArray[np.floating[Any]]
Bools = NDArray[np.bool_]

SAME: Final = 1e-6
CONFIDENCE: Final = 0.95
_DIGITS: Final = 9


@dataclass(frozen=True, slots=True)
class Abstaining:
    """How a threshold does on labelled rows.

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
        with extras.needed_by("The bound of a precision"):
            from scipy.stats import binomtest
        test = binomtest(self.right, self.accepted, alternative="greater")
        return float(test.proportion_ci(CONFIDENCE, "exact").low)

    def to_json(self) -> dict[str, Any]:
        """Return all of it as plain data."""
        more = {"coverage": self.coverage, "precision": self.precision}
        return {**asdict(self), **more, "precision_at_least": self.lower_bound(), "confidence": CONFIDENCE}


def checked(threshold: float) -> float:
    """Return `threshold` as Python's own number.

    Raises:
        ConfigError: it is no probability.
    """
    if isinstance(threshold, bool) or not isinstance(threshold, Real) or not 0 <= threshold <= 1:
        raise ConfigError(f"threshold must be a number from 0 to 1, not {threshold!r}.")
    return float(threshold)


def at(threshold: float, confidence: Floats, right: Bools) -> Abstaining:
    """Return how `threshold` does on rows of this confidence, of which some are answered right."""
    # As a Classifier compares: the threshold is rounded to the type of the confidence.
    accepted = confidence >= confidence.dtype.type(threshold)
    return Abstaining(threshold, len(confidence), int(accepted.sum()), int((accepted & right).sum()))


def choose(target: float, confidence: Floats, right: Bools) -> tuple[Abstaining, bool]:
    """Return the lowest threshold whose accepted rows are right in a share `target`, and True.

    If there is none, that of the highest precision that can be reached, and False; of several the lowest.

    Raises:
        ConfigError: the target is no share, or there are no rows.
    """
    if not 0 <= target <= 1:
        raise ConfigError(f"A target precision is a number from 0 to 1, not {target}.")
    if not len(confidence):
        raise ConfigError("A threshold is chosen on rows, and there are none.")
    order = np.argsort(-confidence, kind="stable")
    falling = confidence[order].astype(np.float64)
    # The last row of each group of rows that stand or fall together.
    last = np.flatnonzero(np.append(falling[:-1] - falling[1:] > SAME, True))
    precision = np.cumsum(right[order])[last] / (last + 1)
    reached = precision >= target
    group = int(np.flatnonzero(reached if reached.any() else precision == precision.max())[-1])
    below = falling[last[group] + 1] if last[group] + 1 < len(falling) else None
    threshold = 0.0 if below is None else _between(float(below), float(falling[last[group]]))
    return at(threshold, confidence, right), bool(reached.any())


def _between(low: float, high: float) -> float:
    """Return a number of few digits that is well inside."""
    middle, margin = (low + high) / 2, (high - low) / 8
    short = (round(middle, digits) for digits in range(1, _DIGITS))
    return next((number for number in short if low + margin < number < high - margin), middle)
