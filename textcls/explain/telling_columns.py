"""Columns beside the text that tell the label of a row nearly by themselves: an outcome that is written down later, or
an identifier.
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from typing import Final

from textcls.model.columns import Column, columns_of_cells, names_of_cells

# A column tells the label if so much of what the most frequent label gets wrong is right by it.
TELLS: Final = 0.6
# Groups of about as many different numbers each.
GROUPS: Final = 8
# Rows that are kept, the first ones.
MOST_ROWS: Final = 50_000


class TellingColumns:
    """Takes rows one at a time, and says of their columns which tell the label.

    Args:
        columns: those of the model.
    """

    def __init__(self, columns: Sequence[Column]) -> None:
        self._columns = columns
        self._cells: list[Sequence[str]] = []
        self._labels: list[str] = []

    def add(self, cells: Sequence[str], label: str) -> None:
        """Keep a row with its label, if there is room."""
        if self._columns and len(self._labels) < MOST_ROWS:
            self._cells.append(cells)
            self._labels.append(label)

    def sentences(self) -> tuple[str, ...]:
        """Return what there is to say."""
        if not self._labels:
            return ()
        found = telling(self._columns, self._cells, self._labels)
        return tuple(said for sentences in found.values() for said in sentences)


def telling(columns: Sequence[Column], cells: Sequence[Sequence[str]], labels: Sequence[str]) -> dict[str, list[str]]:
    """Return the columns of which a cell tells the label of a row nearly by itself, with a sentence a cell.

    A row is answered with the most frequent label of the other rows with the same value; different numbers are grouped.
    """
    counts = Counter(labels)
    most = max(counts.values()) / len(labels)
    found: dict[str, list[str]] = {}
    cell_names = zip(columns_of_cells(columns), names_of_cells(columns), strict=True)
    for (column, name), values in zip(cell_names, zip(*cells, strict=True), strict=True):
        right = _right_without_itself(_eighths(values), labels) / len(labels)
        if most < 1 and (right - most) / (1 - most) >= TELLS:
            found.setdefault(column, []).append(
                f"The column {name!r} by itself tells the label of {right:.0%} of the rows; the most frequent label is "
                f"right in {most:.0%}. Will new rows have it before their label is known?"
            )
    return found


def _right_without_itself(values: Sequence[str], labels: Sequence[str]) -> int:
    """Count the rows whose label is the most frequent one of the other rows with their value."""
    counts: dict[str, Counter[str]] = {}
    for value, label in zip(values, labels, strict=True):
        counts.setdefault(value, Counter())[label] += 1
    right = 0
    for of_value in counts.values():
        for label, times in of_value.items():
            others = max((other for name, other in of_value.items() if name != label), default=0)
            right += times if times - 1 > others else 0
    return right


def _eighths(values: Sequence[str]) -> Sequence[str]:
    """Return numbers by which eighth of them they are in, other values as they are."""
    try:
        numbers = sorted({float(value) for value in values if value})
    except ValueError:
        return values
    if len(numbers) <= GROUPS:
        return values
    bounds = [numbers[len(numbers) * i // GROUPS] for i in range(1, GROUPS)]
    return [str(bisect_right(bounds, float(value))) if value else "" for value in values]
