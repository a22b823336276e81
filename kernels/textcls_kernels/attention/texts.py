"""Texts laid end to end: which rows belong to which text, checked once and divided into work for the kernels.

Kernels are given the place of each text and each tile of rows, longest text first, so that none has to search for it,
and so that texts of one size class are together. That requires reading the lengths, which waits for the GPU: once per
batch with `packed_texts`, whose result serves every layer and both directions, else once per call.

The work is an operator of PyTorch, so that it is part of what `torch.compile` and `torch.export` trace.

Letters: B texts, T positions of all texts together.
"""

from typing import NamedTuple

import torch

from textcls_kernels.attention.validation import check_cu_lengths, check_ends

TILE = 64  # rows of a tile in the table; a kernel with smaller tiles cuts these
LIMITS = (-1, 0, 32, 64, 128)  # `counts` has how many texts are longer than each: all B, those that are not empty...


class PackedTexts(NamedTuple):
    """A packed batch's texts, checked; made by `packed_texts`, accepted in place of `cu_lengths`."""

    cu_lengths: torch.Tensor
    """0 and the end of each text; int32 [B + 1], where p lies."""
    table: torch.Tensor
    """int32 [T // 64 + B + B, 3], where p lies: a text's first row in p, its length, and the first row of a tile in it;
    first the tiles of 64 rows and unused zeros, in the last B rows the texts themselves; both longest text first."""
    counts: torch.Tensor
    """int64 [2, 5] on the CPU: how many texts, and how many of their tiles, belong to texts longer than `LIMITS`."""
    rows: int
    """T."""


def packed_texts(cu_lengths: torch.Tensor, rows: int) -> PackedTexts:
    """Check where the texts of a packed batch are, and prepare the kernels' work.

    Args:
        cu_lengths: 0 and the end of each text, [B + 1], int32 or int64, on p's device; this waits for a GPU.
        rows: T, the number of p's rows, where the last text ends.

    Returns:
        What `metric_attention` and `seed_metric_attention` take as `cu_lengths`.

    Raises:
        ValueError: it does not start at 0, decreases, or does not end at `rows`; or its shape is not [B + 1].
        TypeError: it is not int32 or int64.
    """
    check_cu_lengths(cu_lengths)
    ends, table, counts = _packed_texts(cu_lengths, rows)
    return PackedTexts(ends, table, counts, rows)


def _table_rows(texts: int, rows: int) -> int:
    """The number of rows that suffices for any lengths: rounding up to tiles adds less than one per text."""
    return 2 * texts + rows // TILE


@torch.library.custom_op("textcls_kernels::packed_texts", mutates_args=())
def _packed_texts(cu_lengths: torch.Tensor, rows: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    ends = cu_lengths.cpu().long()
    check_ends(ends, rows)
    length, order = ends.diff().sort(descending=True, stable=True)
    tiles = (length + TILE - 1) // TILE
    text = torch.repeat_interleave(torch.arange(len(length)), tiles)
    first = (torch.arange(len(text)) - (tiles.cumsum(0) - tiles)[text]) * TILE
    starts = ends[:-1][order]
    table = torch.zeros(_table_rows(len(length), rows), 3, dtype=torch.int32)
    table[: len(text)] = torch.stack([starts[text], length[text], first], 1)
    table[len(table) - len(length) :, :2] = torch.stack([starts, length], 1)
    longer = length[None] > torch.tensor(LIMITS)[:, None]
    counts = torch.stack([longer.sum(1), (longer * tiles).sum(1)])
    return ends.to(cu_lengths.device, torch.int32), table.to(cu_lengths.device), counts


@_packed_texts.register_fake
def _(cu_lengths: torch.Tensor, rows: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    texts = cu_lengths.shape[0] - 1
    return (
        cu_lengths.new_empty(texts + 1, dtype=torch.int32),
        cu_lengths.new_empty(_table_rows(texts, rows), 3, dtype=torch.int32),
        torch.empty(2, len(LIMITS), dtype=torch.int64),
    )
