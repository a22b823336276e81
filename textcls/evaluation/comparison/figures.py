"""The figures of the answers of two sides to the same rows, with one label per row or several."""

from collections.abc import Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np

from textcls.errors import InputError
from textcls.evaluation.comparison.paired import Agreement, Difference, difference, numbered
from textcls.evaluation.comparison.sides import Labels
from textcls.evaluation.intervals import DrawnFigures, drawn_answers
from textcls.evaluation.label_set_evaluation import which_of
from textcls.evaluation.label_set_intervals import drawn_figures


class PairedFigures(NamedTuple):
    """Figures of both sides.

    Attributes:
        agreement: how many rows each side gets right; with several labels per row, with exactly its labels.
        accuracy: the share of the rows that each side gets right.
        macro_f1: mean F1 of the labels.
        labels: F1 of each label that a row or an answer has, and how many rows have it.
        micro_f1: with several labels per row, F1 of all labels of all rows together; else None.
    """

    agreement: Agreement
    accuracy: Difference
    macro_f1: Difference
    labels: dict[str, tuple[Difference, int]]
    micro_f1: Difference | None = None


def figures_of(right: Sequence[Labels], first: Sequence[Labels], second: Sequence[Labels]) -> PairedFigures:
    """Return the figures; there must be at least one row.

    Args:
        right: the label of each row, or its labels, sorted.
        first: the answers of one side.
        second: those of the other; a difference is its figure minus that of the first.

    Raises:
        InputError: with several labels per row, if no row and no answer has one.
        MissingExtraError: with several labels per row, if SciPy is not installed.
    """
    names, (right_N, first_N, second_N) = numbered(right, first, second)
    agreement = Agreement.of(right_N, first_N, second_N)
    several = not isinstance(right[0], str)
    if several:
        names, count_C, (one, other) = _of_sets(right, first, second)
    else:
        count_C = np.bincount(right_N, minlength=len(names)).tolist()
        one, other = drawn_answers(right_N, [first_N, second_N], len(names))
    f1_C = [difference(*pair) for pair in zip(one.f1.T, other.f1.T, strict=True)]
    return PairedFigures(
        agreement=agreement,
        accuracy=difference(one.exact, other.exact),
        macro_f1=difference(one.macro_f1, other.macro_f1),
        labels=dict(zip(map(str, names), zip(f1_C, count_C, strict=True), strict=True)),
        micro_f1=difference(one.micro_f1, other.micro_f1) if several else None,
    )


def _of_sets(*columns: Sequence[Labels]) -> tuple[list[Labels], list[int], list[DrawnFigures]]:
    """Return the labels of all columns, the number of rows of the first with each, and the figures of the others."""
    names = sorted(set(chain.from_iterable(chain.from_iterable(columns))))
    if not names:
        raise InputError("There is nothing to compare: no row and no answer has a label.")
    gold_NC, *sides = (which_of(column, names) for column in columns)
    return [*names], gold_NC.sum(0).tolist(), drawn_figures(gold_NC, sides)
