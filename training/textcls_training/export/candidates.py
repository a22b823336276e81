"""What lookup tables could hold: every feature of the training texts, its row, and what it is worth.

Shapes as in `textcls_training.export`; V features of a view, N features of a kind, K rows that a word owns.
"""

from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from textcls import features
from textcls.features import Uint32
from textcls_training.data.arrays import Bools, Float32, Int64
from textcls_training.data.corpus import Corpus
from textcls_training.data.feature_space import bigram_hashes
from textcls_training.export.quantize import QuantizedRows
from textcls_training.models.ensemble import HashedView, TrainedModel

# Of an n-gram beside a word that moves the logits as much: only words out of vocabulary need it.
NGRAM_WORTH: Final = 0.3
# Rows that are folded at a time: of many labels, values take far more memory than vectors.
SLICE = 65_536


@dataclass(frozen=True, slots=True)
class Candidates:
    """Features of one kind, any of which may be pruned.

    Attributes:
        hash_R: their hashes, all different.
        columns: of each view that they are part of [R, G, Y].
        squared_norms: squared feature norms there [R].
        worth_R: how much answers would change without it, in no particular unit.
        bits: of a column.
    """

    hash_R: Uint32
    columns: list[Float32]
    squared_norms: list[Float32]
    worth_R: Float32
    bits: Literal[4, 8]

    def take(self, which: Int64 | Bools) -> "Candidates":
        """Return the features `which`."""
        return Candidates(
            self.hash_R[which],
            [column_RGY[which] for column_RGY in self.columns],
            [squared_norm_R[which] for squared_norm_R in self.squared_norms],
            self.worth_R[which],
            self.bits,
        )

    @property
    def bytes_each(self) -> int:
        """Bytes of a row: in each view its columns, the scale of each group, and the squared norm."""
        size = 0
        for column_RGY in self.columns:
            _, groups, columns = column_RGY.shape
            size += groups * (-(-columns * self.bits // 8) + 2) + 2
        return size

    def quantized(self, view: int, which: Int64) -> QuantizedRows:
        """Return the rows of the features `which` in a view."""
        return QuantizedRows.of(self.columns[view][which], self.squared_norms[view][which], self.bits)


def list_candidates(model: TrainedModel, corpus: Corpus) -> list[Candidates]:
    """Words, bigrams and, with n-grams, these."""
    views = []
    for view, weight in zip(model.hashed_views, model.ensemble_weights, strict=True):
        views.append(_WeightedRows.of(view, weight))
    count = np.bincount(corpus.token, minlength=len(corpus.types))
    types = [name for name, times in zip(corpus.types, count, strict=True) if times]
    kinds = [_words(views, types, count[count > 0]), _features(views[0], *_unique(_bigrams(model, corpus)))]
    if len(views) == 2:
        hashes, exist = features.ngram_hashes(types, model.hashed_views[1].space.config)
        hash_N, count_N = _unique(hashes[exist])
        kinds.append(_features(views[1], hash_N, np.where(count_N > 1, NGRAM_WORTH**2 * count_N, 0)))
    return kinds


def _bigrams(model: TrainedModel, corpus: Corpus) -> Uint32:
    if not model.hashed_views[0].space.config.bigrams:
        return np.zeros(0, np.uint32)
    return bigram_hashes(corpus, features.word_hashes(corpus.types))


def _unique(hashes: Uint32) -> tuple[Uint32, Int64]:
    found, count = np.unique(hashes, return_counts=True)
    return found, count


class _WeightedRows:
    """The rows of a view times their weights, with the squares of these."""

    def __init__(self, view: HashedView, column_VGY: Tensor, worth_V: Tensor) -> None:
        self.view = view
        self.shape = tuple(column_VGY.shape[1:])
        weight_V = torch.from_numpy(view.space.weight)
        self.column_VX = torch.cat(
            [(column_VGY * weight_V.view(-1, 1, 1)).flatten(1), weight_V.square().unsqueeze(1)], 1
        )
        self.worth_V = (worth_V * weight_V).numpy()

    @classmethod
    @torch.no_grad()
    def of(cls, view: HashedView, ensemble_weight: float) -> "_WeightedRows":
        """Fold a view where that can be done; where not, folded rows only rank vectors, and are not kept."""
        folded, worth = [], []
        for part_VD in torch.split(view.table_VD, SLICE):
            folded_VSY = view.classifier.fold(part_VD)
            value_VSC = folded_VSY[..., :-1].mul_(ensemble_weight)
            worth.append((value_VSC.amax(2) - value_VSC.amin(2)).sum(1))
            if view.classifier.foldable:
                folded.append(folded_VSY)
        return cls(view, torch.cat(folded) if folded else view.table_VD.unsqueeze(1), torch.cat(worth))

    def sums(self, row_NK: NDArray[np.int32]) -> tuple[Float32, Float32]:
        """Return the sums over some rows each: columns [N, G, Y], squared norms [N]."""
        sum_NX = F.embedding_bag(torch.from_numpy(row_NK), self.column_VX, mode="sum").numpy()
        return sum_NX[:, :-1].reshape(len(row_NK), *self.shape), sum_NX[:, -1]


def _words(views: list[_WeightedRows], types: list[str], count: Int64) -> Candidates:
    """Words with all that they own in each view: their own row, and those of their n-grams."""
    hash_N = features.word_hashes(types)
    columns, squared_norms, worth_N = [], [], np.zeros(len(types), np.float32)
    for rows in views:
        space = rows.view.space
        hashes, exist = features.ngram_hashes(types, space.config)
        row_NK = np.concatenate([space.rows(hash_N)[:, None], np.where(exist, space.rows(hashes), 0)], 1)
        column_NGY, squared_norm_N = rows.sums(row_NK)
        columns.append(column_NGY)
        squared_norms.append(squared_norm_N)
        worth_N += rows.worth_V[row_NK[:, 0]]
    _, first = np.unique(hash_N, return_index=True)
    return Candidates(hash_N, columns, squared_norms, worth_N * _often(count), 8).take(first)


def _features(rows: _WeightedRows, hash_N: Uint32, count: Int64) -> Candidates:
    row_N = rows.view.space.rows(hash_N)
    column_NGY, squared_norm_N = rows.sums(row_N[:, None])
    return Candidates(hash_N, [column_NGY], [squared_norm_N], rows.worth_V[row_N] * _often(count), 4)


def _often(count: Int64) -> Float32:
    return np.sqrt(count).astype(np.float32)
