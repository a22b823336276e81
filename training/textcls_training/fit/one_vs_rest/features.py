"""The features of texts as sparse rows: the result of attention pooling that weighs all distinct tokens equally.

A token that comes c times in a text has the weight 1/c each time. With q_t the squared norm of the features of token t,
as in `norm` attention, a feature of weight w that tokens t own has the value

    sum_t w / c_t  /  sqrt(sum_t q_t / c_t^2)

Shapes: N texts, F features of a view, L features of all texts end to end; the others as in `fit.compiled.arrays`.
"""

from typing import Final, NamedTuple

import numpy as np

from textcls_training.data.arrays import Float32, Int32, Int64, blocks, starts
from textcls_training.data.compiling import compiled
from textcls_training.fit.compiled.arrays import Texts
from textcls_training.fit.compiled.step import list_rows

# The number of features that are gathered at a time.
AT_ONCE: Final = 1 << 19


class Features(NamedTuple):
    """Sparse rows.

    Attributes:
        start: the index at which the features of each text begin [N + 1].
        feature: the number of each [L], different ones within a text.
        value: its value [L].
    """

    start: Int64
    feature: Int32
    value: Float32


def features_of(texts: Texts, weight_F: Float32, uses_N: Int64) -> Features:
    """Return the features of texts.

    Args:
        texts: the texts as read by a view.
        weight_F: the weight of each feature; those with weight 0 are left out.
        uses_N: how many features the tokens of each text use, repeats included.
    """
    start = np.zeros(len(texts.start), np.int64)
    longest = int(np.diff(texts.start).max(initial=0))
    scratch = np.empty(uses_N.max(initial=0), np.int32), np.empty(longest + 1, np.int64)
    sum_F, times_U = np.zeros(len(weight_F), np.float32), np.zeros(len(texts.row_start), np.int32)
    feature, value = [np.zeros(0, np.int32)], [np.zeros(0, np.float32)]
    for first, last in blocks(starts(uses_N), AT_ONCE):
        uses = int(uses_N[first:last].sum())
        some, values = np.empty(uses, np.int32), np.empty(uses, np.float32)
        size = _fill(texts, weight_F, scratch, sum_F, times_U, (first, last), start, some, values)
        feature.append(some[:size].copy())
        value.append(values[:size].copy())
    return Features(np.cumsum(start), np.concatenate(feature), np.concatenate(value))


@compiled
def _fill(
    texts: Texts,
    weight_F: Float32,
    scratch: tuple[Int32, Int64],
    sum_F: Float32,
    times_U: Int32,
    which: tuple[int, int],
    length_N: Int64,
    feature: Int32,
    value: Float32,
) -> int:
    """Write the features of some texts end to end, and after each text their number; return their total number.

    Sums and times are zero before and after.
    """
    row_U, use_T = scratch
    end = 0
    for i in range(*which):
        length = list_rows(texts, i, row_U, use_T)
        token_T = texts.token[texts.start[i] : texts.start[i] + length]
        for t in range(length):
            times_U[token_T[t]] += 1
        begin, square = end, np.float32(0)
        for t in range(length):
            share = np.float32(1) / np.float32(times_U[token_T[t]])
            for u in range(use_T[t], use_T[t + 1]):
                row = row_U[u]
                added = share * weight_F[row]
                if added == 0:
                    continue
                square += added * added
                if sum_F[row] == 0:
                    feature[end] = row
                    end += 1
                sum_F[row] += added
        for j in range(begin, end):
            value[j] = sum_F[feature[j]] / np.sqrt(square)
            sum_F[feature[j]] = 0
        for t in range(length):
            times_U[token_T[t]] = 0
        length_N[i + 1] = end - begin
    return end
