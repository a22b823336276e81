"""The table of a hashed embedding on the CPU: how tokens read its rows, and how training moves them. The loops are
compiled with Numba.

A token's vector is sum_r c_r E_r over its rows, its squared feature norm q is sum_r c_r^2. Training touches a few
thousand rows per step, scattered over a table that does not fit into any cache: one pass that gathers and one that
updates are several times faster than the chain of PyTorch operators that would do the same.

Shapes: B texts, T tokens of the longest one, X = B T places of the padded batch, D width, V rows of the table, R uses
of rows by the tokens of a batch, P distinct rows among these, and number 0 for row 0.
"""

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from textcls_training.data.arrays import Float32, Int32, Int64
from textcls_training.data.compiling import compiled
from textcls_training.data.feature_space import EncodedFeatures


class HashedBatch(NamedTuple):
    """Texts as read by the table.

    Attributes:
        row_R: the row of each use.
        place_R: the token of each use, as its place in the padded batch: b * T + t.
        mask_BT: True at real tokens.
    """

    row_R: Int32
    place_R: Int32
    mask_BT: Tensor

    @classmethod
    def of(cls, encoded: EncodedFeatures, text_B: Int64) -> "HashedBatch":
        """Collect the texts numbered `text_B`, in that order."""
        corpus, rows = encoded.corpus, encoded.type_rows
        length_B = corpus.start[text_B + 1] - corpus.start[text_B]
        longest = max(1, int(length_B.max(initial=0)))
        sequences = encoded.sequence_row, np.array(encoded.orders, np.int64)
        row_R, place_R = _uses(text_B, corpus.token, corpus.start, rows.row, rows.start, *sequences, longest)
        return cls(row_R, place_R, torch.from_numpy(np.arange(longest) < length_B[:, None]))


class EmbeddingTable:
    """Rows of one view, with the state of their optimizer: row-wise Adagrad.

        s_r += mean_d g_rd^2,  E_r -= rate * g_r / sqrt(s_r)          (Duchi 2011, with one accumulator per row)

    where g_r is the gradient of the whole batch. With Adam, rare rows would take full-sized steps, and memorise.
    Row 0 stands for an unseen feature: it counts for nothing and never moves.
    """

    def __init__(self, weight_V: Float32, dim: int, std: float, accumulator: float) -> None:
        """Draw rows from a normal distribution with standard deviation `std`, using PyTorch's generator."""
        self.row_VD: Float32 = (torch.randn(len(weight_V), dim) * std).numpy()
        self.row_VD[0] = 0
        self.weight_V = weight_V
        self.sum_V = np.full(len(weight_V), accumulator, np.float32)
        # Scratch of `_update`: the number of a row among the distinct ones of the batch, 0 outside it.
        self.number_V = np.zeros(len(weight_V), np.int32)

    def encode(self, encoded: EncodedFeatures) -> EncodedFeatures:
        """Return texts as they are: they are read in place."""
        return encoded

    def batch(self, encoded: EncodedFeatures, text_B: Int64) -> HashedBatch:
        """Collect the texts numbered `text_B`, in that order."""
        return HashedBatch.of(encoded, text_B)

    def read(self, batch: HashedBatch) -> tuple[Tensor, Tensor]:
        """Return token vectors [B, T, D] and squared feature norms [B, T, 1], both zero at padding."""
        x_BTD = torch.zeros(*batch.mask_BT.shape, self.row_VD.shape[1])
        squared_norm_BT1 = torch.zeros(*batch.mask_BT.shape, 1)
        read = x_BTD.flatten(0, 1).numpy(), squared_norm_BT1.flatten().numpy()
        _read(batch.row_R, batch.place_R, self.weight_V, self.row_VD, *read)
        return x_BTD, squared_norm_BT1

    def update(self, batch: HashedBatch, grad_BTD: Tensor, rate: float) -> None:
        """Update the rows of `batch` with the gradient of its token vectors."""
        state = (self.weight_V, self.row_VD, self.sum_V, self.number_V)
        grad_XD = grad_BTD.flatten(0, 1).contiguous().numpy()
        _update(batch.row_R, batch.place_R, *state, grad_XD, np.float32(rate))


@compiled
def _uses(
    text_B: Int64,
    token: Int32,
    start: Int64,
    row: Int32,
    row_start: Int64,
    sequence_row: Int32,
    order: Int64,
    longest: int,
) -> tuple[Int32, Int32]:
    """Return (row_R, place_R) of a batch; arguments as in `EncodedFeatures`."""
    uses = 0
    for i in text_B:
        for n in range(start[i], start[i + 1]):
            uses += row_start[token[n] + 1] - row_start[token[n]]
            for size in order:
                uses += min(size, start[i + 1] + 1 - n)
    row_R, place_R = np.empty(uses, np.int32), np.empty(uses, np.int32)
    u = 0
    for b, i in enumerate(text_B):
        for n in range(start[i], start[i + 1]):
            begin = u
            for j in range(row_start[token[n]], row_start[token[n] + 1]):
                row_R[u] = row[j]
                u += 1
            for o in range(len(order)):
                # A text has one more place than tokens, so the i texts before this one shift its places.
                for j in range(n + i, min(n + order[o], start[i + 1] + 1) + i):
                    row_R[u] = sequence_row[o, j]
                    u += 1
            place_R[begin:u] = b * longest + n - start[i]
    return row_R, place_R


@compiled
def _read(
    row_R: Int32, place_R: Int32, weight_V: Float32, row_VD: Float32, x_XD: Float32, squared_norm_X: Float32
) -> None:
    for r, x in zip(row_R, place_R):  # noqa: B905 - Numba knows no strict.
        weight = weight_V[r]
        squared_norm_X[x] += weight * weight
        for d in range(row_VD.shape[1]):
            x_XD[x, d] += weight * row_VD[r, d]


@compiled
def _update(
    row_R: Int32,
    place_R: Int32,
    weight_V: Float32,
    row_VD: Float32,
    sum_V: Float32,
    number_V: Int32,
    grad_XD: Float32,
    rate: np.float32,
) -> None:
    width = row_VD.shape[1]
    row_P = np.zeros(len(row_R) + 1, np.int32)
    distinct = 0
    for r in row_R:
        if r > 0 and number_V[r] == 0:
            distinct += 1
            number_V[r] = distinct
            row_P[distinct] = r
    # Gradients of distinct rows are close together; those of row 0 are summed at number 0 and dropped.
    grad_PD = np.zeros((distinct + 1, width), np.float32)
    for r, x in zip(row_R, place_R):  # noqa: B905
        for d in range(width):
            grad_PD[number_V[r], d] += weight_V[r] * grad_XD[x, d]
    for p in range(1, distinct + 1):
        r = row_P[p]
        number_V[r] = 0
        square = np.float32(0)
        for d in range(width):
            square += grad_PD[p, d] * grad_PD[p, d]
        sum_V[r] += square / np.float32(width)
        step = rate / np.sqrt(sum_V[r])
        for d in range(width):
            row_VD[r, d] -= step * grad_PD[p, d]
