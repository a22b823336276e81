"""Find columns beside the text that nearly determine the label of a row by themselves: an outcome that is recorded
later, or an identifier.
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from typing import Final

from textcls.model.columns import Column, columns_of_cells, names_of_cells

# A column determines the label if it corrects this share of the errors of always answering the most frequent label.
TELLS: Final = 0.6
# The number of groups, with about as many distinct numbers each.
GROUPS: Final = 8
# The number of rows that are kept, the first ones.
MOST_ROWS: Final = 50_000


class TellingColumns:
    """Collect rows one at a time, and report which of their columns determine the label.

    Args:
        columns: the columns of the model.
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
        """Return a sentence for each such column."""
        if not self._labels:
            return ()
        found = telling(self._columns, self._cells, self._labels)
        return tuple(said for sentences in found.values() for said in sentences)


def telling(columns: Sequence[Column], cells: Sequence[Sequence[str]], labels: Sequence[str]) -> dict[str, list[str]]:
    """Return the columns of which a cell nearly determines the label of a row, with a sentence per cell.

    A row is answered with the most frequent label of the other rows with the same value; distinct numbers are grouped.
    """
    counts = Counter(labels)
    most = max(counts.values()) / len(labels)
    found: dict[str, list[str]] = {}
    cell_names = zip(columns_of_cells(columns), names_of_cells(columns), strict=True)
    for (column, name), values in zip(cell_names, zip(*cells, strict=True), strict=True):
        right = _right_without_itself(_eighths(values), labels) / len(labels)
        if most < 1 and (right - most) / (1 - most) >= TELLS:
            found.setdefault(column, []).append(
                f"The column {name!r} alone gives away the label of {right:.0%} of the rows; the most frequent label "
                f"is right in {most:.0%}. Will new rows have it before their label is known?"
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
    """Return for each number the eighth that it is in; other values are unchanged."""
    try:
        numbers = sorted({float(value) for value in values if value})
    except ValueError:
        return values
    if len(numbers) <= GROUPS:
        return values
    bounds = [numbers[len(numbers) * i // GROUPS] for i in range(1, GROUPS)]
    return [str(bisect_right(bounds, float(value))) if value else "" for value in values]
