"""What the answers of two classifiers to the same rows say about their difference.

Rows that both get right, or both wrong, do not show which is better: McNemar (1947) uses only the others.

Shapes: N rows, B draws.
"""

from collections.abc import Hashable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from textcls._util import optional_dependencies
from textcls.evaluation.intervals import CONFIDENCE

Int64 = NDArray[np.int64]
Float64 = NDArray[np.float64]
Label = TypeVar("Label", bound=Hashable)


def numbered(*columns: Sequence[Label]) -> tuple[list[Label], list[Int64]]:
    """Return the distinct labels, or label sets, of all columns, sorted, and each column [N] by their numbers."""
    names = sorted(set().union(*columns), key=str)
    number = {name: i for i, name in enumerate(names)}
    return names, [np.array([number[label] for label in column], np.int64) for column in columns]


@dataclass(frozen=True, slots=True)
class Difference:
    """A figure of both sides, between 0 and 1, and how much higher that of the second is.

    Attributes:
        before: the figure of the first side.
        after: the figure of the second side.
        low, high: the confidence interval of the difference, at level `CONFIDENCE`.
    """

    before: float
    after: float
    low: float
    high: float

    @property
    def difference(self) -> float:
        """How much higher the figure of the second side is."""
        return self.after - self.before

    @property
    def is_sure(self) -> bool:
        """Whether the interval excludes 0."""
        return self.low > 0 or self.high < 0

    def as_json(self) -> dict[str, Any]:
        """Return all of it as plain data."""
        return asdict(self) | {"difference": self.difference, "confidence": CONFIDENCE}


@dataclass(frozen=True, slots=True)
class Agreement:
    """How many rows each side gets right.

    Attributes:
        both: right on both sides.
        first: right on the first side alone.
        second: right on the second side alone.
        neither: right on neither side.
        same: with the same answer on both sides, right or wrong.
    """

    both: int
    first: int
    second: int
    neither: int
    same: int

    @classmethod
    def of(cls, right_N: Int64, first_N: Int64, second_N: Int64) -> "Agreement":
        """Count rows, given the numbers of their right label and of both answers."""
        one_N, other_N = first_N == right_N, second_N == right_N
        counts = (one_N & other_N, one_N & ~other_N, ~one_N & other_N, ~one_N & ~other_N, first_N == second_N)
        return cls(*(int(count.sum()) for count in counts))

    def p_value(self) -> float:
        """Return the probability that rows which only one side gets right would be split this unevenly by chance.

        This is McNemar's test in its exact form, two-sided.

        Raises:
            MissingExtraError: SciPy is not installed.
        """
        if not self.first + self.second:
            return 1.0
        with optional_dependencies.needed_by("A paired test"):
            from scipy.special import betainc  # `scipy.stats`, which has the test, takes a second to import.
        more, fewer = max(self.first, self.second), min(self.first, self.second)
        return min(1.0, 2 * float(betainc(more, fewer + 1, 0.5)))


def difference(first_B: Float64, second_B: Float64) -> Difference:
    """Return a figure of both sides, given its value on the rows, which comes first, and on each draw of them."""
    tail = 50 * (1 - CONFIDENCE)
    low, high = np.percentile((second_B - first_B)[1:], [tail, 100 - tail])
    return Difference(float(first_B[0]), float(second_B[0]), float(low), float(high))
