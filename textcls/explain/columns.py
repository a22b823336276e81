"""What each column beside the text adds to each label, whatever the text: a number's curve, a category's table."""

from typing import Any, Final, NamedTuple

import numpy as np

from textcls.model.classifier import Classifier
from textcls.model.columns import Column, count, names_of_cells, pack, told
from textcls.model.contrast import Float32

# The number of values of a category that are queried, the most frequent first.
MOST_VALUES: Final = 1000
_PARTS: Final = (
    tuple(map(str, range(1, 13))),
    ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"),
    tuple(map(str, range(24))),
)


class ColumnEffect(NamedTuple):
    """What the cells of a column add.

    Attributes:
        name: the name of the column, with the part of a date: `opened (weekday)`.
        kind: whether the values are points of a curve, which is linear between two of them, or rows of a table.
        values: the values that were queried, in readable form, the missing one last.
        added: what each adds to the logit of each label [values, labels].
    """

    name: str
    kind: str
    values: tuple[str, ...]
    added: Float32

    @property
    def largest(self) -> float:
        """How far it moves the label that it moves most."""
        return float(np.ptp(self.added, axis=0).max(initial=0.0))

    def strongest_labels(self, most: int) -> list[int]:
        """Return the labels that it moves most, in their order."""
        return sorted(np.argsort(-np.ptp(self.added, axis=0), kind="stable")[:most].tolist())

    def strongest_values(self, most: int) -> list[int]:
        """Return the values to show: all points of a curve; for a table those that add most, in their order."""
        if self.kind == "curve":
            return list(range(len(self.values)))
        strength_V = np.abs(self.added).max(1)
        return sorted(i for i in np.argsort(-strength_V, kind="stable")[:most].tolist() if strength_V[i])

    def to_json(self, labels: tuple[str, ...]) -> dict[str, Any]:
        """Return it as plain data."""
        added = [dict(zip(labels, row, strict=True)) for row in self.added.tolist()]
        return {"name": self.name, "kind": self.kind, "values": list(self.values), "added": added}


def column_effects(classifier: Classifier) -> list[ColumnEffect]:
    """Return what each column that a model reads beside the text adds to each label."""
    columns = classifier.info.columns
    cells = [""] * count(columns)
    found = []
    for place, (name, values) in enumerate(zip(names_of_cells(columns), _values(columns), strict=True)):
        asked = [*values, ""]
        rows = [[*cells[:place], value, *cells[place + 1 :]] for value in asked]
        answers = classifier.explain([pack(row, "") for row in rows])
        added = np.array([answer.cells[place].contributions for answer in answers], np.float32)
        kind = "curve" if place < sum(column.numbers for column in columns) else "table"
        shown = tuple(told(columns, row)[place] for row in rows)
        found.append(ColumnEffect(name, kind, shown, added))
    return found


def _values(columns: tuple[Column, ...]) -> list[tuple[str, ...]]:
    """Return the values of each cell, without the missing one."""
    numbers = [tuple(f"{knot:.6g}" for knot in column.knots) for column in columns if column.numbers]
    categories: list[tuple[str, ...]] = []
    for column in columns:
        if column.kind == "category":
            categories.append(tuple(value for value in column.values if value)[:MOST_VALUES])
        elif column.kind == "date":
            categories += _PARTS
    return numbers + categories
