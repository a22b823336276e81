"""Tables of hashed embeddings on a device: rows, the state of their optimizer and the encoded texts stay there.

What `EmbeddingTable` does by loops on the CPU, `textcls_kernels` does here: for each step, only the numbers of its
texts go to the GPU, and nothing comes back. Nothing here waits for the GPU either: the number of uses of a batch is
known from sums over its texts, which are computed once. The tables of views of the same width are laid end to end, so
that one launch collects the uses of all of them, one reads the rows and one moves them.

Shapes: G views, B texts, T tokens of the longest one, X = G B T places of the padded batch, D width, V rows of all
tables, R uses of rows by the tokens of a batch, N texts of a corpus, Y types.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from textcls.errors import SurroundingsError
from textcls_kernels.impl import Impl
from textcls_kernels.rows import EncodedTexts, Uses, collect_uses, move_rows, read_rows
from textcls_torch.models.embedding_table import EmbeddingTable
from textcls_torch.models.sending import sent
from textcls_training.data.arrays import Float32, Int64
from textcls_training.data.corpus import Corpus, sums_of_texts
from textcls_training.data.feature_space import EncodedFeatures


class BatchShape(NamedTuple):
    """The size of a batch.

    Attributes:
        texts: the number of texts.
        tokens: the tokens of the longest text, or more.
        uses: the number of rows that the tokens of all views use, or more.
    """

    texts: int
    tokens: int
    uses: int


class DeviceBatch(NamedTuple):
    """Texts as read by tables; `mask_BT` is True at real tokens."""

    uses: Uses
    mask_BT: Tensor


@dataclass(frozen=True, slots=True)
class DeviceTexts:
    """Texts as rows of all views, on a device.

    Attributes:
        corpus: the texts.
        uses_N: how many rows the tokens of each text use.
        encoded: the arrays on the device.
    """

    corpus: Corpus
    uses_N: Int64
    encoded: EncodedTexts

    @classmethod
    def of(cls, encoded_G: Sequence[EncodedFeatures], first_G: Sequence[int], device: torch.device) -> "DeviceTexts":
        """Copy texts to a device.

        Args:
            encoded_G: the same texts as encoded by each view.
            first_G: where the rows of each view begin.
            device: the target.

        Raises:
            SurroundingsError: it is out of memory.
        """
        corpus = encoded_G[0].corpus
        own_GY = np.stack([np.diff(encoded.type_rows.start) for encoded in encoded_G])
        if any(encoded.orders not in ((), (2,)) for encoded in encoded_G):
            raise ValueError("kernels read pairs, and no longer sequences")
        pairs_G = [sum(encoded.orders) for encoded in encoded_G]
        each = zip(own_GY, pairs_G, strict=True)
        uses_GN = np.stack([sums_of_texts(corpus.token, corpus.start, own_Y + pairs) for own_Y, pairs in each])
        rows = [encoded.type_rows.row for encoded in encoded_G]
        rows += [encoded.sequence_row.ravel() for encoded in encoded_G]
        begin = np.cumsum([0, *map(len, rows)])
        first_GY = np.stack([encoded.type_rows.start[:-1] for encoded in encoded_G]) + begin[: len(first_G), None]
        with room_for("the texts"):
            parts = [
                _shifted(brought(row, device), first) for row, first in zip(rows, [*first_G, *first_G], strict=True)
            ]
            encoded = EncodedTexts(
                token_P=brought(corpus.token, device),
                start_N=brought(corpus.start, device),
                first_VY=brought(first_GY, device),
                own_VY=brought(own_GY.astype(np.int32), device),
                pair_V=brought(np.where(pairs_G, begin[len(first_G) : -1], -1), device),
                row=torch.cat(parts),
                uses_VN=brought(uses_GN, device),
            )
        return cls(corpus, uses_GN.sum(0), encoded)

    def __len__(self) -> int:
        return len(self.corpus)

    def types(self, text_B: Tensor, mask_BT: Tensor) -> Tensor:
        """Return the types of the tokens of a padded batch [B, T]; at padding, any type."""
        if not len(self.encoded.token_P):
            return torch.zeros_like(mask_BT, dtype=torch.int32)
        place_BT = self.encoded.start_N[text_B][:, None] + torch.arange(mask_BT.shape[1], device=mask_BT.device)
        return self.encoded.token_P[torch.where(mask_BT, place_BT, 0)]

    def shape(self, text_B: Int64) -> BatchShape:
        """Return the size of a batch of the texts numbered `text_B`."""
        start = self.corpus.start
        longest = int((start[text_B + 1] - start[text_B]).max(initial=1))
        return BatchShape(len(text_B), longest, int(self.uses_N[text_B].sum()))


class JointTable:
    """The tables of views on a device, end to end; rows are updated as in `EmbeddingTable`, which has the formula.

    Attributes:
        weight_V: the weight of each row.
        row_VD: the rows; row 0 of each view stands for nothing, and texts use only that of the first view.
        sum_V: their accumulators.
        first_G: where the rows of each view begin.
        impl: the implementation, as in `textcls_kernels.rows`.
    """

    def __init__(self, weight_V: Tensor, row_VD: Tensor, sum_V: Tensor, first_G: Sequence[int]) -> None:
        self.weight_V, self.row_VD, self.sum_V, self.first_G = weight_V, row_VD, sum_V, list(first_G)
        self.impl: Impl = "auto"

    def encode(self, encoded_G: Sequence[EncodedFeatures]) -> DeviceTexts:
        """Copy texts to the device, once."""
        return DeviceTexts.of(encoded_G, self.first_G, self.row_VD.device)

    def batch(self, texts: DeviceTexts, text_B: Tensor, shape: BatchShape) -> DeviceBatch:
        """Collect the texts numbered `text_B`, in that order, in a batch at least as large as they need."""
        start_N = texts.encoded.start_N
        length_B1 = (start_N[text_B + 1] - start_N[text_B])[:, None]
        mask_BT = torch.arange(shape.tokens, device=text_B.device) < length_B1
        uses = collect_uses(texts.encoded, text_B, shape.tokens, shape.uses, self.impl)
        return DeviceBatch(uses, mask_BT)

    def read(self, batch: DeviceBatch) -> tuple[Tensor, Tensor]:
        """Return token vectors [G, B, T, D] and squared feature norms [G, B, T, 1], both zero at padding."""
        x_XD, squared_norm_X = read_rows(batch.uses, self.weight_V, self.row_VD, self.impl)
        places = (len(self.first_G), *batch.mask_BT.shape)
        return x_XD.view(*places, x_XD.shape[1]), squared_norm_X.view(*places, 1)

    def update(self, batch: DeviceBatch, grad_GBTD: Tensor, rate: float | Tensor) -> None:
        """Update the rows of `batch` with the gradient of its token vectors."""
        grad_XD = grad_GBTD.flatten(0, 2).to(self.row_VD.device)
        move_rows(batch.uses, self.weight_V, self.row_VD, self.sum_V, grad_XD, rate, self.impl)


class DeviceTable:
    """The table of one view on a device, by itself or as a part of a joint one."""

    def __init__(self, fresh: EmbeddingTable, device: torch.device) -> None:
        """Copy a table to a device.

        Raises:
            SurroundingsError: it is out of memory.
        """
        with room_for("the table"):
            weight_V, row_VD, sum_V = (brought(array, device) for array in (fresh.weight_V, fresh.row_VD, fresh.sum_V))
        self._part = JointTable(weight_V, row_VD, sum_V, [0])

    @classmethod
    def join(cls, tables: Sequence["DeviceTable"]) -> JointTable:
        """Store tables of the same width end to end, make each a part of the whole, and return it.

        Raises:
            SurroundingsError: the device is out of memory.
        """
        parts = [table._part for table in tables]
        with room_for("the tables"):
            weight_V = torch.cat([part.weight_V for part in parts])
            row_VD = torch.cat([part.row_VD for part in parts])
            sum_V = torch.cat([part.sum_V for part in parts])
        begin = np.cumsum([0, *(len(part.weight_V) for part in parts)]).tolist()
        for table, (first, last) in zip(tables, pairwise(begin), strict=True):
            impl = table.impl
            table._part = JointTable(weight_V[first:last], row_VD[first:last], sum_V[first:last], [0])
            table.impl = impl
        whole = JointTable(weight_V, row_VD, sum_V, begin[:-1])
        whole.impl = parts[0].impl
        return whole

    @property
    def impl(self) -> Impl:
        """Return the implementation, as in `textcls_kernels.rows`."""
        return self._part.impl

    @impl.setter
    def impl(self, impl: Impl) -> None:
        self._part.impl = impl

    @property
    def row_VD(self) -> Float32:  # noqa: N802
        """Return the rows; from a GPU a copy."""
        return self._part.row_VD.cpu().numpy()

    @property
    def sum_V(self) -> Float32:  # noqa: N802
        """Return their accumulators; from a GPU a copy."""
        return self._part.sum_V.cpu().numpy()

    def encode(self, encoded: EncodedFeatures) -> DeviceTexts:
        """Copy texts to the device, once."""
        return self._part.encode([encoded])

    def batch(self, texts: DeviceTexts, text_B: Int64) -> DeviceBatch:
        """Collect the texts numbered `text_B`, in that order."""
        number_B = sent(text_B, self._part.row_VD.device)
        return self._part.batch(texts, number_B, texts.shape(text_B))

    def read(self, batch: DeviceBatch) -> tuple[Tensor, Tensor]:
        """Return token vectors [B, T, D] and squared feature norms [B, T, 1], both zero at padding."""
        x_1BTD, squared_norm_1BT1 = self._part.read(batch)
        return x_1BTD[0], squared_norm_1BT1[0]

    def update(self, batch: DeviceBatch, grad_BTD: Tensor, rate: float) -> None:
        """Update the rows of `batch` with the gradient of its token vectors."""
        self._part.update(batch, grad_BTD[None], rate)


def _shifted(row: Tensor, by: int) -> Tensor:
    """Add `by` to the row numbers; 0 stays 0, which stands for nothing."""
    return torch.where(row > 0, row + by, 0) if by else row


def brought(array: NDArray[Any], device: torch.device) -> Tensor:
    """Return a copy of an array on a device."""
    return torch.tensor(array, device=device)


@contextmanager
def room_for(what: str) -> Iterator[None]:
    """Report what the GPU has no room for.

    Raises:
        SurroundingsError: it is out of memory.
    """
    try:
        yield
    except torch.OutOfMemoryError:
        raise SurroundingsError(f"The GPU has no room for {what}; choose --device cpu.") from None
