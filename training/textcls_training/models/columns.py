"""What columns beside the text add to the logits: of a number a piecewise-linear curve, of a category a table.

Shapes: B rows, C labels, N number cells, K segments of a curve, Q category cells, V values of all of them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from textcls.model.columns import Column
from textcls_training.data.arrays import Float32, Int64


class Curves(NamedTuple):
    """Of number cells: each segment is a ramp from 0 to 1, which a curve rises along.

    Attributes:
        start_NK: where each ramp begins; behind the last segment of a cell they rise by nothing.
        width_NK: how wide it is, above 0.
        mean_NK: its mean over the rows of the training, so that a curve adds nothing in the mean.
        rise_NJC: what it rises by, for each label; at last, J = K + 1, what a missing number adds.
    """

    start_NK: Float32
    width_NK: Float32
    mean_NK: Float32
    rise_NJC: Float32

    def ramps(self, number_BN: Float32) -> Float32:
        """Return the ramps at given numbers, NaN where one is missing, and whether it is [N, B, J]."""
        missing_NB1 = np.isnan(number_BN).T[:, :, None]
        place_NBK = (number_BN.T[:, :, None] - self.start_NK[:, None]) / self.width_NK[:, None]
        ramp_NBK = np.where(missing_NB1, np.float32(0), np.clip(place_NBK, 0, 1) - self.mean_NK[:, None])
        return np.concatenate([ramp_NBK, missing_NB1], 2, dtype=np.float32)


class Values(NamedTuple):
    """Of category cells: the row of each value in one table, whose last row is of values that are not in it: nothing.

    Attributes:
        row: by the number of the cell and the value.
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
        columns: these.
        curves: of their number cells.
        values: of their category cells.
        bias_C: what is added to every row.
        sample: cells of some rows of the training, of which a file is asked before it is written.
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
    """Return the number cells of rows [B, N], NaN where missing."""
    found = [[float(cell) if cell else np.nan for cell in row[:numbers]] for row in cells]
    return np.array(found, np.float32).reshape(len(cells), numbers)
