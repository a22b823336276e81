"""Between which values a figure lies that was found on some rows.

Shapes: N rows, C labels, K kinds of rows (of the same right label and the same answer), B draws.
"""

import math
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from textcls._util import optional_dependencies

Int64 = NDArray[np.int64]
Float64 = NDArray[np.float64]

DRAWS: Final = 2000
CONFIDENCE: Final = 0.95
# What is less probable than this by chance alone is taken for more than chance.
CHANCE: Final = 0.05
# The normal deviate that leaves (1 - CONFIDENCE) / 2 above it.
DEVIATE: Final = 1.959963984540054


class Estimate(NamedTuple):
    """A figure, and between which values it lies with `CONFIDENCE`."""

    value: float
    low: float
    high: float

    def as_json(self) -> dict[str, float]:
        """Return it as plain data."""
        return self._asdict()


def student(degrees: int) -> float:
    """Return by how many of its standard errors a mean may be off: Student's t (1908), of few rows more than `DEVIATE`.

    Args:
        degrees: of freedom, above 0.

    Raises:
        MissingExtraError: SciPy is not installed.
    """
    with optional_dependencies.needed_by("An interval of few rows"):
        from scipy.special import stdtrit
    return float(stdtrit(degrees, (1 + CONFIDENCE) / 2))


def share(hits: int, rows: int) -> Estimate:
    """Return a share of rows with the interval of Wilson (1927), which is never empty and never leaves 0 to 1.

    Of no rows nothing is known: 0, between 0 and 1.
    """
    if not rows:
        return Estimate(0.0, 0.0, 1.0)
    found, square = hits / rows, DEVIATE**2
    middle = (found + square / (2 * rows)) / (1 + square / rows)
    half = DEVIATE / (1 + square / rows) * math.sqrt(found * (1 - found) / rows + square / (4 * rows**2))
    return Estimate(found, max(0.0, middle - half), min(1.0, middle + half))


def f1_of_draws(count_BK: Any, right_K: Int64, answer_K: Int64, labels: int) -> tuple[Float64, Float64]:
    """Return the F1 of each label in each draw [B, C], 0 where it does not occur; and whether it does.

    Args:
        count_BK: how many rows of each kind a draw has.
        right_K: the number of the right label of a kind.
        answer_K: that of its answer.
        labels: how many labels there are.
    """
    each_C = np.arange(labels)
    is_right_KC, is_answer_KC = right_K[:, None] == each_C, answer_K[:, None] == each_C
    hits_BC = count_BK @ (is_right_KC & is_answer_KC)
    either_BC = count_BK @ (is_right_KC.astype(np.int64) + is_answer_KC)
    return 2 * hits_BC / np.maximum(either_BC, 1), (either_BC > 0).astype(np.float64)


def f1_intervals(right_N: Int64, answer_N: Int64, labels: int, seed: int = 0) -> tuple[Estimate, list[Estimate]]:
    """Return the mean F1 of the labels that occur, and the F1 of each, by a bootstrap over rows (Efron 1979).

    Where all draws are alike, since no row is wrong, or none right, they say nothing of rows that were not drawn; the
    interval is then that of a share of the rows that have the label, or are answered with it.

    Args:
        right_N: the number of each row's right label.
        answer_N: that of its answer.
        labels: how many labels there are.
        seed: of the draws.
    """
    kind_K2, count_K = np.unique(np.stack([right_N, answer_N], 1), axis=0, return_counts=True)
    draws_BK = np.random.default_rng(seed).multinomial(len(right_N), count_K / len(right_N), DRAWS)
    # What was found comes first, the draws of it after.
    count_BK = np.concatenate([count_K[None], draws_BK])
    f1_BC, occurs_BC = f1_of_draws(count_BK, kind_K2[:, 0], kind_K2[:, 1], labels)
    macro_B = (f1_BC * occurs_BC).sum(1) / occurs_BC.sum(1)
    have_C, hits_C = np.bincount(right_N, minlength=labels), np.bincount(right_N[right_N == answer_N], minlength=labels)
    rows_C = have_C + np.bincount(answer_N, minlength=labels) - hits_C
    of_labels = zip(f1_BC.T, rows_C.tolist(), strict=True)
    return of_draws(macro_B, len(right_N)), [of_draws(f1_B, rows) for f1_B, rows in of_labels]


def of_draws(value_B: Float64, rows: int) -> Estimate:
    """Return a figure with its interval, by what it is on the rows, first, and on each draw of them.

    Args:
        value_B: the figure.
        rows: on how many rows it rests: where all draws are 0 or all 1, the interval is that of a share of so many.
    """
    tail = 50 * (1 - CONFIDENCE)
    low, high = np.percentile(value_B[1:], [tail, 100 - tail])
    found = float(value_B[0])
    if low == high and found in (0.0, 1.0):
        return share(round(found * rows), rows)
    return Estimate(found, float(low), float(high))
