"""What a table could hold: every feature of the training texts, what it says, and what it is worth.

Shapes as in `textcls_training.lexicon`; V features of a view, N features of a kind, K rows that a word owns.
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
from textcls_training.arrays import Bools, Float32, Int64
from textcls_training.encoding import Corpus, bigram_hashes
from textcls_training.lexicon.rounding import Rounded
from textcls_training.views import Fitted, View

# Of an n-gram beside a word that moves the logits as much: only words that training has not seen need it.
NGRAM_WORTH: Final = 0.3
# Rows that are folded at a time: of many labels, what rows say takes far more memory than their vectors.
SLICE = 65_536


@dataclass(frozen=True, slots=True)
class Candidates:
    """Features of one kind, any of which may be left out.

    Attributes:
        hash_R: their hashes, all different.
        columns: what each says in each of the views that it is part of [R, G, Y].
        energies: the sums of squared weights there [R].
        worth_R: how much answers would change without it, in no particular unit.
        bits: of a column.
    """

    hash_R: Uint32
    columns: list[Float32]
    energies: list[Float32]
    worth_R: Float32
    bits: Literal[4, 8]

    def take(self, which: Int64 | Bools) -> "Candidates":
        """Return the features `which`."""
        return Candidates(
            self.hash_R[which],
            [column_RGY[which] for column_RGY in self.columns],
            [energy_R[which] for energy_R in self.energies],
            self.worth_R[which],
            self.bits,
        )

    @property
    def bytes_each(self) -> int:
        """Bytes of a row: in each view its columns, the scale of each group, and the energy."""
        return sum(
            shape[1] * (-(-shape[2] * self.bits // 8) + 2) + 2 for shape in (column.shape for column in self.columns)
        )

    def rounded(self, view: int, which: Int64) -> Rounded:
        """Return what the features `which` say in a view."""
        return Rounded.of(self.columns[view][which], self.energies[view][which], self.bits)


def list_candidates(fitted: Fitted, corpus: Corpus) -> list[Candidates]:
    """Words, bigrams and, with n-grams, these."""
    said = [_Said.of(view, share) for view, share in zip(fitted.row_views, fitted.shares, strict=True)]
    count = np.bincount(corpus.token, minlength=len(corpus.types))
    types = [name for name, times in zip(corpus.types, count, strict=True) if times]
    word = features.word_hashes(corpus.types)
    kinds = [_words(said, types, count[count > 0]), _features(said[0], *_unique(_bigrams(fitted, corpus, word)))]
    if len(said) == 2:
        hashes, exist = features.ngram_hashes(types, fitted.row_views[1].space.config)
        hash_N, count_N = _unique(hashes[exist])
        kinds.append(_features(said[1], hash_N, np.where(count_N > 1, NGRAM_WORTH**2 * count_N, 0)))
    return kinds


def _bigrams(fitted: Fitted, corpus: Corpus, word: Uint32) -> Uint32:
    return bigram_hashes(corpus, word) if fitted.row_views[0].space.config.bigrams else np.zeros(0, np.uint32)


def _unique(hashes: Uint32) -> tuple[Uint32, Int64]:
    found, count = np.unique(hashes, return_counts=True)
    return found, count


class _Said:
    """What each row of a view says, weighted."""

    def __init__(self, view: View, column_VGY: Tensor, worth_V: Tensor) -> None:
        self.view = view
        self.shape = tuple(column_VGY.shape[1:])
        weight_V = torch.from_numpy(view.space.weight)
        self.column_VX = torch.cat(
            [(column_VGY * weight_V.view(-1, 1, 1)).flatten(1), weight_V.square().unsqueeze(1)], 1
        )
        self.worth_V = (worth_V * weight_V).numpy()

    @classmethod
    @torch.no_grad()
    def of(cls, view: View, share: float) -> "_Said":
        """Fold a view where that can be done; where not, what rows say only ranks them, and is not kept."""
        folded, worth = [], []
        for part_VD in torch.split(view.table_VD, SLICE):
            said_VSY = view.classifier.fold(part_VD)
            value_VSC = said_VSY[..., :-1].mul_(share)
            worth.append((value_VSC.amax(2) - value_VSC.amin(2)).sum(1))
            if view.classifier.foldable:
                folded.append(said_VSY)
        return cls(view, torch.cat(folded) if folded else view.table_VD.unsqueeze(1), torch.cat(worth))

    def sums(self, row_NK: NDArray[np.int32]) -> tuple[Float32, Float32]:
        """Return the sums over some rows each: columns [N, G, Y], energies [N]."""
        sum_NX = F.embedding_bag(torch.from_numpy(row_NK), self.column_VX, mode="sum").numpy()
        return sum_NX[:, :-1].reshape(len(row_NK), *self.shape), sum_NX[:, -1]


def _words(said: list[_Said], types: list[str], count: Int64) -> Candidates:
    hash_N = features.word_hashes(types)
    columns, energies, worth_N = [], [], np.zeros(len(types), np.float32)
    for view in said:
        space = view.view.space
        hashes, exist = features.ngram_hashes(types, space.config)
        row_NK = np.concatenate([space.rows(hash_N)[:, None], np.where(exist, space.rows(hashes), 0)], 1)
        column_NGY, energy_N = view.sums(row_NK)
        columns.append(column_NGY)
        energies.append(energy_N)
        worth_N += view.worth_V[row_NK[:, 0]]
    _, first = np.unique(hash_N, return_index=True)
    return Candidates(hash_N, columns, energies, worth_N * _often(count), 8).take(first)


def _features(said: _Said, hash_N: Uint32, count: Int64) -> Candidates:
    row_N = said.view.space.rows(hash_N)
    column_NGY, energy_N = said.sums(row_N[:, None])
    return Candidates(hash_N, [column_NGY], [energy_N], said.worth_V[row_N] * _often(count), 4)


def _often(count: Int64) -> Float32:
    return np.sqrt(count).astype(np.float32)
