"""What columns besides the text add to the logits: a piecewise-linear curve for a number, a table for a category.

Shapes: B rows, C labels, N number cells, K segments of a curve, Q category cells, V values in all of them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from textcls.model.columns import Column
from textcls_training.data.arrays import Float32, Int64


class Curves(NamedTuple):
    """The curves of number cells: each segment is a ramp from 0 to 1, along which a curve rises.

    Attributes:
        start_NK: where each ramp begins; after the last segment of a cell they rise by nothing.
        width_NK: the width of each ramp, above 0.
        mean_NK: its mean over the training rows, so that a curve adds nothing on average.
        rise_NJC: its rise, for each label; at the end, J = K + 1, what a missing number adds.
    """

    start_NK: Float32
    width_NK: Float32
    mean_NK: Float32
    rise_NJC: Float32

    def ramps(self, number_BN: Float32) -> Float32:
        """Return the ramps at given numbers, NaN if missing, and whether the number is missing [N, B, J]."""
        missing_NB1 = np.isnan(number_BN).T[:, :, None]
        place_NBK = (number_BN.T[:, :, None] - self.start_NK[:, None]) / self.width_NK[:, None]
        ramp_NBK = np.where(missing_NB1, np.float32(0), np.clip(place_NBK, 0, 1) - self.mean_NK[:, None])
        return np.concatenate([ramp_NBK, missing_NB1], 2, dtype=np.float32)


class Values(NamedTuple):
    """The values of category cells: the row of each in one table, whose last row, for values not in it, is zero.

    Attributes:
        row: the row by the number of the cell and the value.
        added_VC: what each adds to the logits.
    """

    row: Mapping[tuple[int, str], int]
    added_VC: Float32

    def rows(self, category_BQ: Sequence[Sequence[str]]) -> Int64:
        """Return the row of each cell [B, Q]."""
        unseen = len(self.added_VC) - 1
        found = [[self.row.get((i, value), unseen) for i, value in enumerate(values)] for values in category_BQ]
        return np.array(found, np.int64).reshape(len(found), len(found[0]) if found else 0)


@dataclass(frozen=True, slots=True)
class ColumnTerms:
    """What columns add to the logits.

    Attributes:
        columns: the columns.
        curves: the curves of their number cells.
        values: the values of their category cells.
        bias_C: what is added to every row.
        sample: cells of some training rows, used to check a file before it is written.
    """

    columns: tuple[Column, ...]
    curves: Curves
    values: Values
    bias_C: Float32
    sample: Sequence[Sequence[str]]

    def added(self, cells: Sequence[Sequence[str]]) -> Float32:
        """Return what each cell of rows adds to each label [B, N + Q, C], without the bias."""
        numbers = len(self.curves.start_NK)
        number_BN = number_cells(cells, numbers)
        curve_NBC = np.matmul(self.curves.ramps(number_BN), self.curves.rise_NJC)
        table_BQC = self.values.added_VC[self.values.rows([row[numbers:] for row in cells])]
        return np.concatenate([curve_NBC.transpose(1, 0, 2), table_BQC], 1, dtype=np.float32)


def number_cells(cells: Sequence[Sequence[str]], numbers: int) -> Float32:
    """Return the number cells of rows [B, N], NaN if missing."""
    found = [[float(cell) if cell else np.nan for cell in row[:numbers]] for row in cells]
    return np.array(found, np.float32).reshape(len(cells), numbers)
