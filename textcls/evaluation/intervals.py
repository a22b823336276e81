"""Confidence intervals of figures that were measured on some rows.

Shapes: N rows, C labels, K kinds of rows (with the same right label and the same answers), B draws.
"""

import math
from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from textcls._util import optional_dependencies

Int64 = NDArray[np.int64]
Float64 = NDArray[np.float64]

DRAWS: Final = 2000
CONFIDENCE: Final = 0.95
# A result that is less probable than this by chance alone is taken to be more than chance.
CHANCE: Final = 0.05
# The standard normal quantile with (1 - CONFIDENCE) / 2 above it.
DEVIATE: Final = 1.959963984540054


class Estimate(NamedTuple):
    """A figure, and its confidence interval at level `CONFIDENCE`."""

    value: float
    low: float
    high: float

    def as_json(self) -> dict[str, float]:
        """Return it as plain data."""
        return self._asdict()


class DrawnFigures(NamedTuple):
    """Figures of the rows as they are, followed by those of each draw.

    Attributes:
        micro_f1: F1 of all labels of all rows together [B]; with one label per row, the share of rows that are right.
        macro_f1: mean F1 of the labels that occur; if rows may have several, of those that rows have [B].
        exact: share of the rows that are assigned exactly their labels [B].
        f1: the F1 of each label, 0 if it does not occur [B, C].
    """

    micro_f1: Float64
    macro_f1: Float64
    exact: Float64
    f1: Float64


def student(degrees: int) -> float:
    """Return how many standard errors a mean may be off: Student's t (1908), which exceeds `DEVIATE` for few rows.

    Args:
        degrees: the degrees of freedom, above 0.

    Raises:
        MissingExtraError: SciPy is not installed.
    """
    with optional_dependencies.needed_by("An interval of few rows"):
        from scipy.special import stdtrit
    return float(stdtrit(degrees, (1 + CONFIDENCE) / 2))


def share(hits: int, rows: int) -> Estimate:
    """Return a share of rows with the interval of Wilson (1927), which is never empty and never leaves 0 to 1.

    With no rows nothing is known: 0, between 0 and 1.
    """
    return _wilson(hits / rows, rows) if rows else Estimate(0.0, 0.0, 1.0)


def share_of_grouped(hits_N: Int64, count_N: Int64) -> Estimate:
    """Return a share of items that are grouped in rows, with an interval that allows for the grouping.

    It is Wilson's interval for the number of independent items that would give the share the same error as rows drawn
    as wholes (Korn and Graubard 1998), and never for more items than there are. If that error is zero, since all rows
    have the same share, each row counts once.

    Args:
        hits_N: how many of the items of each row count.
        count_N: how many items each row has; there is at least one.

    Raises:
        MissingExtraError: SciPy is not installed.
    """
    inside_N = count_N > 0
    hits_N, count_N = hits_N[inside_N], count_N[inside_N]
    rows, total = len(count_N), int(count_N.sum())
    found = int(hits_N.sum()) / total
    error = float(((hits_N - found * count_N) ** 2).sum()) / total**2
    if rows == 1 or error == 0:
        return _wilson(found, rows)
    independent = found * (1 - found) * (1 - 1 / rows) / error * (DEVIATE / student(rows - 1)) ** 2
    return _wilson(found, min(independent, total))


def _wilson(found: float, rows: float) -> Estimate:
    square = DEVIATE**2
    middle = (found + square / (2 * rows)) / (1 + square / rows)
    half = DEVIATE / (1 + square / rows) * math.sqrt(found * (1 - found) / rows + square / (4 * rows**2))
    return Estimate(found, max(0.0, middle - half), min(1.0, middle + half))


def f1_of_draws(count_BK: Int64, right_K: Int64, answer_K: Int64, labels: int) -> tuple[Float64, Float64]:
    """Return the F1 of each label in each draw [B, C], 0 if it does not occur; and whether it does.

    Args:
        count_BK: how many rows of each kind a draw has.
        right_K: the number of the right label of each kind.
        answer_K: the number of its answer.
        labels: how many labels there are.
    """
    # Not as a matrix product: a kind affects two labels, of which there may be thousands.
    hits_CB, either_CB = (np.zeros((labels, len(count_BK)), np.int64) for _ in range(2))
    for count_B, right, answer in zip(count_BK.T, right_K.tolist(), answer_K.tolist(), strict=True):
        either_CB[right] += count_B
        either_CB[answer] += count_B
        if right == answer:
            hits_CB[right] += count_B
    return (2 * hits_CB / np.maximum(either_CB, 1)).T, (either_CB > 0).astype(np.float64).T


def drawn_answers(right_N: Int64, sides: Sequence[Int64], labels: int) -> list[DrawnFigures]:
    """Return the figures of each side on the rows, and on `DRAWS` draws of them, shared by all sides (Efron 1979).

    Args:
        right_N: the number of each row's right label.
        sides: the numbers of the answers of each side.
        labels: how many labels there are.
    """
    # Rows of one kind count alike, so a draw consists of the number of rows of each kind.
    kind_K, count_K = np.unique(np.stack([right_N, *sides], 1), axis=0, return_counts=True)
    draws_BK = np.random.default_rng(0).multinomial(len(right_N), count_K / len(right_N), DRAWS)
    count_BK = np.concatenate([count_K[None], draws_BK])
    right_K, *answers = kind_K.T
    found = []
    for answer_K in answers:
        f1_BC, occurs_BC = f1_of_draws(count_BK, right_K, answer_K, labels)
        exact_B = count_BK @ (right_K == answer_K) / len(right_N)
        found.append(DrawnFigures(exact_B, (f1_BC * occurs_BC).sum(1) / occurs_BC.sum(1), exact_B, f1_BC))
    return found


def f1_intervals(right_N: Int64, answer_N: Int64, labels: int) -> tuple[Estimate, list[Estimate]]:
    """Return the mean F1 of the labels that occur, and the F1 of each, from a bootstrap over rows (Efron 1979).

    If all draws are alike, since no row is wrong, or none right, they say nothing about rows that were not drawn; the
    interval is then that of a share of the rows that have the label, or are answered with it.

    Args:
        right_N: the number of each row's right label.
        answer_N: that of its answer.
        labels: how many labels there are.
    """
    (drawn,) = drawn_answers(right_N, [answer_N], labels)
    have_C, hits_C = np.bincount(right_N, minlength=labels), np.bincount(right_N[right_N == answer_N], minlength=labels)
    rows_C = have_C + np.bincount(answer_N, minlength=labels) - hits_C
    of_labels = [of_draws(f1_B, rows) for f1_B, rows in zip(drawn.f1.T, rows_C.tolist(), strict=True)]
    return of_draws(drawn.macro_f1, len(right_N), biased=True), of_labels


def of_draws(value_B: Float64, rows: int, *, biased: bool = False) -> Estimate:
    """Return a figure with its interval, given its value on the rows, which comes first, and on each draw of them.

    Args:
        value_B: the values.
        rows: the number of rows it rests on: if all draws are 0 or all 1, the interval is that of a share of so many.
        biased: whether draws lie to one side of the figure, as means over labels do, since a draw lacks rare labels:
            the truth then lies as far beyond the figure on the other side (Davison and Hinkley 1997, 5.2.1). If a label
            or two are rare the draws themselves are more reliable; so both intervals are included.
    """
    tail = 50 * (1 - CONFIDENCE)
    low, high = np.percentile(value_B[1:], [tail, 100 - tail])
    found = float(value_B[0])
    if low == high and found in (0.0, 1.0):
        return share(round(found * rows), rows)
    if biased:
        low, high = max(0.0, min(low, 2 * found - high)), min(1.0, max(high, 2 * found - low))
    return Estimate(found, float(low), float(high))
