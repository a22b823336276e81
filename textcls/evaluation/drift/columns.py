"""Columns beside the text that have changed: values are missing more often, or are of another kind."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from textcls.evaluation import intervals
from textcls.model.artifact import ModelInfo
from textcls.model.columns import Column
from textcls.model.explanation import Explanation


class ColumnShare(NamedTuple):
    """How much of a column is not as in training.

    Attributes:
        name: the name of the column.
        missing_before: share of held-out rows without a value.
        missing: share of new rows without one.
        strange: share of new rows with a category that was not seen in training, or a number or date outside its range.
        lost: the least share of new rows, beyond chance, for which the column has lost the information it had in
            training: missing values beyond the earlier share, and strange ones. Dates advance, and are not strange.
    """

    name: str
    missing_before: float
    missing: float
    strange: float
    lost: float


class ColumnCounts:
    """Count, for each column of a model, the rows without a value and those with a strange one."""

    def __init__(self, info: ModelInfo) -> None:
        self._columns = info.columns
        self._before = {gain["name"]: gain["missing"] for gain in info.training.get("columns", ())}
        self._missing, self._strange = ([0] * len(info.columns) for _ in range(2))
        self._rows = 0

    def add(self, explanation: Explanation) -> None:
        """Count the columns of one more row."""
        self._rows += 1
        cells = {one.name: one for one in explanation.cells}
        for i, column in enumerate(self._columns):
            cell = cells[column.name]
            if not cell.cell:
                self._missing[i] += 1
            elif column.kind == "category":
                self._strange[i] += not cell.contributions.any()
            else:
                self._strange[i] += _outside(float(cell.cell), column)

    def shares(self) -> Sequence[ColumnShare]:
        """Return the shares of each column."""
        found = []
        for column, rows_missing, rows_strange in zip(self._columns, self._missing, self._strange, strict=True):
            before, missing, strange = self._before[column.name], rows_missing / self._rows, rows_strange / self._rows
            rows_silent = rows_missing + (0 if column.kind == "date" else rows_strange)
            lost = max(0.0, intervals.share(rows_silent, self._rows).low - before)
            found.append(ColumnShare(column.name, before, missing, strange, lost))
        return found


def _outside(value: float, column: Column) -> bool:
    # Knots have 32 bits, like the values that the model reads.
    return not column.knots or not column.knots[0] <= float(np.float32(value)) <= column.knots[-1]
