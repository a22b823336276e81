"""The features of columns: ramps between quantiles of numbers, a feature for each value of a category.

A sum of ramps is a piecewise-linear curve, as is a sum of hat functions (Eilers and Marx 1996, section 2, of degree 1).
Its weights are the rises of the curve, so shrinking them to zero makes it flat unless enough rows say otherwise.

Shapes: R rows, F features; others as in `textcls_training.models.columns`.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse

from textcls.model.columns import Column, columns_of_cells
from textcls_training.data.arrays import Float32, Float64, Int64
from textcls_training.fit.columns.regression import Features
from textcls_training.models.columns import ColumnTerms, Curves, Values, number_cells

# The number of segments of a curve, and of distinguished values of a category.
SEGMENTS = 8
MOST_VALUES = 10_000
# A value of only one row says nothing about others, and may name a person: no file contains it.
LEAST_OF_VALUE = 2
# The number of rows whose cells are kept.
SAMPLE = 20


@dataclass(frozen=True, slots=True)
class Design:
    """The features of the cells of some rows.

    Attributes:
        columns: the columns of the cells.
        curves: the positions of the ramps, whose rises are not yet known.
        row: the rows of the values, as in `Values`.
        sample: the cells of some rows.
        features: the features of the rows.
        cell_F: the number of the cell of each feature.
    """

    columns: tuple[Column, ...]
    curves: Curves
    row: dict[tuple[int, str], int]
    sample: Sequence[Sequence[str]]
    features: Features
    cell_F: Int64

    @classmethod
    def of(cls, columns: Sequence[Column], cells: Sequence[Sequence[str]]) -> "Design":
        """Place ramps between quantiles of the rows, and count their values."""
        numbers = sum(column.numbers for column in columns)
        number_RN = number_cells(cells, numbers)
        knots = [_knots(number_R) for number_R in number_RN.T]
        curves = _curves(number_RN, knots)
        row = _values([line[numbers:] for line in cells])
        ramp_NRJ = curves.ramps(number_RN)
        ramp_RM = ramp_NRJ.transpose(1, 0, 2).reshape(len(cells), -1)
        value_RQ = Values(row, np.zeros((len(row) + 1, 0), np.float32)).rows([line[numbers:] for line in cells])
        features = Features(ramp_RM.astype(np.float64), _one_hot(value_RQ, len(row)))
        cell_F = np.concatenate(
            [np.repeat(np.arange(numbers), ramp_NRJ.shape[2]), np.array([cell + numbers for cell, _ in row], np.int64)]
        ).astype(np.int64)
        of_column = iter(knots)
        columns = [replace(one, knots=tuple(next(of_column).tolist())) if one.numbers else one for one in columns]
        return cls(tuple(columns), curves, row, cells[:SAMPLE], features, cell_F)

    def cells_of(self, number: int) -> list[int]:
        """Return the numbers of the cells of a column."""
        return [i for i, name in enumerate(columns_of_cells(self.columns)) if name == self.columns[number].name]

    def terms(self, weight_FC: Float64, bias_C: Float64) -> ColumnTerms:
        """Return what columns add, given the weights of their features; a table's mean goes to the bias."""
        labels, (numbers, segments) = weight_FC.shape[1], self.curves.start_NK.shape
        ramps = numbers * (segments + 1)
        rise_NJC = weight_FC[:ramps].reshape(numbers, segments + 1, labels)
        added_VC, bias_C = weight_FC[ramps:].copy(), bias_C.copy()
        share_V = self.features.means()[ramps:]
        cell_V = self.cell_F[ramps:]
        for cell in np.unique(cell_V):
            mine = cell_V == cell
            mean_C = share_V[mine] @ added_VC[mine]
            added_VC[mine] -= mean_C
            bias_C += mean_C
        table = np.concatenate([added_VC, np.zeros((1, labels))]).astype(np.float32)
        return ColumnTerms(
            self.columns,
            self.curves._replace(rise_NJC=rise_NJC.astype(np.float32)),
            Values(self.row, table),
            bias_C.astype(np.float32),
            self.sample,
        )


def _knots(number_R: Float32) -> Float32:
    """Return the distinct quantiles of numbers: between two of them a curve is a line."""
    known = number_R[~np.isnan(number_R)].astype(np.float64)
    if not len(known):
        return np.zeros(0, np.float32)
    return np.unique(np.quantile(known, np.linspace(0, 1, SEGMENTS + 1)).astype(np.float32))


def _curves(number_RN: Float32, knots: Sequence[Float32]) -> Curves:
    numbers = number_RN.shape[1]
    start, width = np.zeros((numbers, SEGMENTS), np.float32), np.ones((numbers, SEGMENTS), np.float32)
    for i, knot_K in enumerate(knots):
        segments = max(0, len(knot_K) - 1)
        start[i, :segments], width[i, :segments] = knot_K[:-1], np.diff(knot_K)
        # Beyond the last knot there is no ramp: it begins above all numbers.
        start[i, segments:] = np.finfo(np.float32).max / 2
    empty = np.zeros((numbers, SEGMENTS), np.float32)
    curves = Curves(start, width, empty, np.zeros((numbers, SEGMENTS + 1, 0), np.float32))
    ramp_NRK = curves.ramps(number_RN)[:, :, :-1]
    there_N = np.maximum((~np.isnan(number_RN)).sum(0), 1)
    return curves._replace(mean_NK=(ramp_NRK.sum(1, dtype=np.float64) / there_N[:, None]).astype(np.float32))


def _values(category_RQ: Sequence[Sequence[str]]) -> dict[tuple[int, str], int]:
    """Number the values of each category cell that occur in at least two rows, the most frequent first."""
    found = [
        (cell, value)
        for cell, values in enumerate(zip(*category_RQ, strict=True))
        for value, rows in sorted(Counter(values).items(), key=lambda item: (-item[1], item[0]))[:MOST_VALUES]
        if rows >= LEAST_OF_VALUE
    ]
    return {key: i for i, key in enumerate(found)}


def _one_hot(row_RQ: Int64, values: int) -> sparse.csr_matrix:
    rows, cells = row_RQ.shape
    line, column = np.repeat(np.arange(rows), cells), row_RQ.ravel()
    known = column < values
    ones = np.ones(int(known.sum()))
    return sparse.csr_matrix((ones, (line[known], column[known])), shape=(rows, values))
