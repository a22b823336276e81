"""The table of a hashed embedding on a device: rows, the state of their optimizer and the encoded texts stay there.

What `EmbeddingTable` does by loops on the CPU is done by `textcls_kernels.table`: of a step nothing but the numbers of
its texts goes to a GPU, and nothing comes back. Nothing here waits for it either: how many uses a batch has is known
from sums over its texts, which are made once.

Shapes: B texts, T tokens of the longest one, X = B T places of the padded batch, D width, V rows of the table, R uses
of rows by the tokens of a batch, N texts of a corpus.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from textcls.errors import SurroundingsError
from textcls_kernels.metric_attention import Impl
from textcls_kernels.table import Uses, move_rows, read_rows
from textcls_training.data.arrays import Float32, Int32, Int64
from textcls_training.data.corpus import Corpus, sums_of_texts
from textcls_training.data.feature_space import EncodedFeatures
from textcls_training.models.embedding_table import EmbeddingTable
from textcls_training.models.sending import sent


@dataclass(frozen=True, slots=True)
class DeviceTexts:
    """Texts as rows, on a device.

    Attributes:
        corpus: the texts.
        uses_N: how many rows the tokens of each text use.
        token: the tokens of all texts.
        start: where those of each begin.
        own: of each type, how many rows it has by itself.
        first: where these begin in `row`.
        row: the rows of types, then those of pairs, and one 0 after all.
        pair: where those of pairs begin in `row`.
        pairs: how many each token has, 2 or none.
    """

    corpus: Corpus
    uses_N: Int64
    token: Tensor
    start: Tensor
    own: Tensor
    first: Tensor
    row: Tensor
    pair: int
    pairs: int

    @classmethod
    def of(cls, encoded: EncodedFeatures, device: torch.device) -> "DeviceTexts":
        """Bring texts to a device.

        Raises:
            SurroundingsError: it has no room for them.
        """
        corpus, rows = encoded.corpus, encoded.type_rows
        pairs, own = 2 if len(encoded.bigram_row) else 0, np.diff(rows.start)
        return cls(
            corpus,
            sums_of_texts(corpus.token, corpus.start, own + pairs),
            _to(corpus.token, device),
            _to(corpus.start, device),
            _to(own, device),
            _to(rows.start[:-1], device),
            torch.cat([_to(rows.row, device), _to(encoded.bigram_row, device), _to(np.zeros(1, np.int32), device)]),
            len(rows.row),
            pairs,
        )

    def __len__(self) -> int:
        return len(self.corpus)


class DeviceBatch(NamedTuple):
    """Texts as the table reads them; `mask_BT` is True at real tokens."""

    uses: Uses
    mask_BT: Tensor


class DeviceTable:
    """Rows of one view on a device, moved as those of `EmbeddingTable`, which has the formula, are.

    Attributes:
        impl: what computes, as `textcls_kernels.table` has it.
    """

    def __init__(self, fresh: EmbeddingTable, device: torch.device) -> None:
        """Bring a table to a device.

        Raises:
            SurroundingsError: it has no room for it.
        """
        self._row_VD, self._weight_V, self._sum_V = (
            _to(array, device) for array in (fresh.row_VD, fresh.weight_V, fresh.sum_V)
        )
        self.impl: Impl = "auto"

    @property
    def row_VD(self) -> Float32:  # noqa: N802
        """The rows; from a GPU a copy."""
        return self._row_VD.cpu().numpy()

    @property
    def sum_V(self) -> Float32:  # noqa: N802
        """Their accumulators; from a GPU a copy."""
        return self._sum_V.cpu().numpy()

    def encode(self, encoded: EncodedFeatures) -> DeviceTexts:
        """Bring texts to the device, once."""
        return DeviceTexts.of(encoded, self._row_VD.device)

    def batch(self, texts: DeviceTexts, text_B: Int64) -> DeviceBatch:
        """Collect the texts numbered `text_B`, in that order."""
        start = texts.corpus.start
        longest = max(1, int((start[text_B + 1] - start[text_B]).max(initial=0)))
        return _batch(texts, sent(text_B, texts.start.device), longest, int(texts.uses_N[text_B].sum()))

    def rows(self, row_X: Int32) -> DeviceBatch:
        """Collect rows as one text, each row a token of it."""
        device = self._row_VD.device
        start_X = torch.arange(len(row_X) + 1, device=device)
        mask_BT = torch.ones(1, len(row_X), dtype=torch.bool, device=device)
        return DeviceBatch(Uses(sent(row_X, device), start_X[:-1].int(), start_X), mask_BT)

    def read(self, batch: DeviceBatch) -> tuple[Tensor, Tensor]:
        """Return token vectors [B, T, D] and squared feature norms [B, T, 1], both zero at padding."""
        x_XD, squared_norm_X = read_rows(batch.uses, self._weight_V, self._row_VD, self.impl)
        return x_XD.view(*batch.mask_BT.shape, x_XD.shape[1]), squared_norm_X.view(*batch.mask_BT.shape, 1)

    def update(self, batch: DeviceBatch, grad_BTD: Tensor, rate: float) -> None:
        """Move the rows of `batch` against the gradient of its token vectors."""
        grad_XD = grad_BTD.flatten(0, 1).to(self._row_VD.device)
        move_rows(batch.uses, self._weight_V, self._row_VD, self._sum_V, grad_XD, rate, self.impl)


def _batch(texts: DeviceTexts, text_B: Tensor, longest: int, number: int) -> DeviceBatch:
    """Return the uses of a batch, `number` of them, worked out on the device."""
    begin_B = texts.start[text_B]
    token_T = torch.arange(longest, device=begin_B.device)
    mask_BT = token_T < (texts.start[text_B + 1] - begin_B)[:, None]
    start_X = torch.zeros(mask_BT.numel() + 1, dtype=torch.int64, device=begin_B.device)
    if not number:
        return DeviceBatch(Uses.of(texts.row[:0], start_X), mask_BT)
    place_BT = begin_B[:, None] + token_T
    type_X = texts.token[torch.where(mask_BT, place_BT, 0)].flatten()
    # A text has one pair more than tokens, so the texts before this one shift its pairs by their number.
    pair_X = (texts.pair + place_BT + text_B[:, None]).flatten()
    own_X, first_X = texts.own[type_X], texts.first[type_X]
    torch.cumsum((own_X + texts.pairs) * mask_BT.flatten(), 0, out=start_X[1:])
    place_R = torch.arange(len(type_X), dtype=torch.int32, device=begin_B.device).repeat_interleave(
        start_X.diff(), output_size=number
    )
    offset_R = torch.arange(number, device=begin_B.device) - start_X[place_R]
    own_R = own_X[place_R]
    at_R = torch.where(offset_R < own_R, first_X[place_R] + offset_R, pair_X[place_R] + offset_R - own_R)
    return DeviceBatch(Uses(texts.row[at_R], place_R, start_X), mask_BT)


def _to(array: NDArray[Any], device: torch.device) -> Tensor:
    try:
        return torch.tensor(array, device=device)
    except torch.OutOfMemoryError:
        raise SurroundingsError(
            f"The GPU has no room for {array.nbytes:,} bytes more of the table and the texts; choose --device cpu."
        ) from None
