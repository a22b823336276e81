"""The candidates for lookup tables: every feature of the training texts, and words known only from a file of vectors;
the row of each, and its worth.

Shapes as in `textcls_training.export`; V features of a view, N features of a kind, K rows that a word owns.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from textcls.model import features
from textcls.model.features import Uint32
from textcls_training.data.arrays import Bools, Float32, Int64
from textcls_training.data.corpus import Corpus
from textcls_training.data.earlier_counts import added
from textcls_training.data.feature_space import FeatureSpace, sequence_parts
from textcls_training.data.vector_space import VectorSpace
from textcls_training.export.quantize import QuantizedRows
from textcls_training.models.ensemble import TableView, TrainedModel

# The relative worth of an n-gram that moves the logits as much as a word: only words out of vocabulary need it.
NGRAM_WORTH: Final = 0.3
# The most rows, and numbers, that are folded at a time: with many labels, values take far more memory than vectors.
SLICE, SLICE_NUMBERS = 65_536, 1 << 24


@dataclass(frozen=True, slots=True)
class Candidates:
    """Features of one kind, any of which may be pruned.

    Attributes:
        hash_R: their hashes, all different.
        columns: the columns in each view that they are part of [R, G, Y], by the number of the view.
        squared_norms: squared feature norms there [R].
        worth_R: how much answers would change without it, in arbitrary units.
        bits: the bits of a column.
    """

    hash_R: Uint32
    columns: Mapping[int, Float32]
    squared_norms: Mapping[int, Float32]
    worth_R: Float32
    bits: Literal[4, 8]

    def take(self, which: Int64 | Bools) -> "Candidates":
        """Return the features `which`."""
        return Candidates(
            self.hash_R[which],
            {view: column_RGY[which] for view, column_RGY in self.columns.items()},
            {view: squared_norm_R[which] for view, squared_norm_R in self.squared_norms.items()},
            self.worth_R[which],
            self.bits,
        )

    @property
    def bytes_each(self) -> int:
        """Bytes of a row: in each view its columns, the scale of each group, and the squared norm."""
        size = 0
        for column_RGY in self.columns.values():
            _, groups, columns = column_RGY.shape
            size += groups * (-(-columns * self.bits // 8) + 2) + 2
        return size

    def quantized(self, view: int, which: Int64) -> QuantizedRows | None:
        """Return the rows of the features `which` in a view; None if they are not part of it."""
        if view not in self.columns:
            return None
        return QuantizedRows.of(self.columns[view][which], self.squared_norms[view][which], self.bits)


class CandidateKinds(NamedTuple):
    """The candidates for the tables, by kind.

    Attributes:
        words: the words of the training texts, in all views.
        sequences: pairs of neighbouring words in the first view; with trigrams, both in all views by hashed features.
        unseen: words that are in no training text, but in the file of vectors: in all views but the first. Without such
            a file there is no such kind.
        ngrams: in the last view; None without n-grams.
    """

    words: Candidates
    sequences: Candidates
    unseen: Candidates | None = None
    ngrams: Candidates | None = None

    @property
    def indexed(self) -> list[Candidates]:
        """The kinds that one perfect hash finds, in order: all but n-grams."""
        return [kind for kind in (self.words, self.sequences, self.unseen) if kind is not None]

    @property
    def all(self) -> list[Candidates]:
        """The kinds that there are, in order."""
        return [kind for kind in self if kind is not None]

    def take(self, which: Sequence[Bools]) -> "CandidateKinds":
        """Return the marked features of each existing kind."""
        there = [name for name, kind in self._asdict().items() if kind is not None]
        kinds = [kind.take(marked) for kind, marked in zip(self.all, which, strict=True)]
        return self._replace(**dict(zip(there, kinds, strict=True)))


def list_candidates(model: TrainedModel, corpus: Corpus) -> CandidateKinds:
    """Return every feature that a saved model could know."""
    views = []
    for number, (view, weight) in enumerate(zip(model.table_views, model.ensemble_weights, strict=True)):
        views.append(_WeightedRows.of(number, view, weight, folds=model.foldable))
    last = model.hashed_views[-1].space.config
    count = corpus.type_counts()
    if corpus.has_rare:
        count[0] = 0  # What rare types have become is not a word.
    types = [name for name, times in zip(corpus.types, count, strict=True) if times]
    words = _words(views, types, count[count > 0], 8)
    config = model.hashed_views[0].space.config
    found, times = _unique(_sequences(corpus, model.hashed_views[0].space))
    if corpus.earlier is not None and config.bigrams:
        found, times = added((found, times), (corpus.earlier.pair, corpus.earlier.pair_count))
    sequences = _features([views[0], views[-1]] if last.trigrams and last.ngram_sizes else views[:1], found, times)
    unseen = None
    if model.vector_view is not None:
        unseen = _unseen_words(views[1:], model.vector_view.space, types, len(corpus.token))
        unseen = unseen.take(~np.isin(unseen.hash_R, words.hash_R))
    if not last.ngram_sizes:
        return CandidateKinds(words, sequences, unseen)
    hashes, exist = features.ngram_hashes(types, last)
    hash_N, count_N = _unique(hashes[exist])
    worth_N = np.where(count_N > 1, NGRAM_WORTH**2 * count_N, 0)
    return CandidateKinds(words, sequences, unseen, _features(views[-1:], hash_N, worth_N))


def _sequences(corpus: Corpus, space: FeatureSpace) -> Uint32:
    """Return the hashes of all sequences that have a row."""
    found = corpus.spill.growing(np.uint32)
    for _, hash_OP in sequence_parts(corpus, features.word_hashes(corpus.types), space.config.orders):
        found.extend(hash_OP[space.rows(hash_OP) > 0])
    return found.array()


def _unseen_words(
    views: Sequence["_WeightedRows"], space: VectorSpace, types: Sequence[str], tokens: int
) -> Candidates:
    """Return words that are not in `types` but have vectors; their worth is the expected frequency among `tokens`."""
    new = np.ones(len(space.vectors.words), np.bool_)
    number_N = space.vectors.numbers(types)
    new[number_N[number_N >= 0]] = False
    words = [space.vectors.words[i] for i in np.flatnonzero(new).tolist()]
    return _words(views, words, space.expected_counts(tokens)[new], 4)


class _WeightedRows:
    """The rows of a view times their weights, with the squared weights."""

    def __init__(self, number: int, view: TableView, column_VGY: Float32, worth_V: Float32) -> None:
        self.number, self.view = number, view
        self.shape = column_VGY.shape[1:]
        weight_V1 = view.space.weight[:, None]
        self.column_VX = np.concatenate([column_VGY.reshape(len(weight_V1), -1) * weight_V1, weight_V1**2], 1)
        self.worth_V = worth_V * view.space.weight

    @classmethod
    def of(cls, number: int, view: TableView, ensemble_weight: float, *, folds: bool) -> "_WeightedRows":
        """Fold a view if possible; if not, folded rows only rank vectors, and are not kept."""
        folded, worth = [], []
        table_VD = view.table_VD
        rows = min(SLICE, max(1, SLICE_NUMBERS // (view.classifier.config.seeds * (view.classifier.labels + 1))))
        for first in range(0, len(table_VD), rows):
            folded_VSY = view.classifier.folded(table_VD[first : first + rows])
            value_VSC = folded_VSY[..., :-1]
            value_VSC *= np.float32(ensemble_weight)
            worth.append((value_VSC.max(2) - value_VSC.min(2)).sum(1))
            if folds:
                folded.append(folded_VSY)
        return cls(number, view, np.concatenate(folded) if folded else table_VD[:, None], np.concatenate(worth))

    def sums(self, row_NK: NDArray[np.int32]) -> tuple[Float32, Float32]:
        """Return the sums over each list of rows: columns [N, G, Y], squared norms [N]."""
        sum_NX = self.column_VX[row_NK[:, 0]]
        for row_N in row_NK.T[1:]:
            # Row 0 is empty, and most words have few n-grams.
            there = np.flatnonzero(row_N)
            sum_NX[there] += self.column_VX[row_N[there]]
        return sum_NX[:, :-1].reshape(len(row_NK), *self.shape), sum_NX[:, -1]


def _words(
    views: Sequence[_WeightedRows], types: Sequence[str], count: Int64 | Float32, bits: Literal[4, 8]
) -> Candidates:
    """Return words with all that they own in each view: their own row, and those of their n-grams."""
    hash_N = features.word_hashes(types)
    columns, squared_norms, worth_N = {}, {}, np.zeros(len(types), np.float32)
    for rows in views:
        row_NK = rows.view.space.word_rows(types)
        columns[rows.number], squared_norms[rows.number] = rows.sums(row_NK)
        worth_N += rows.worth_V[row_NK[:, 0]]
    _, first = np.unique(hash_N, return_index=True)
    return Candidates(hash_N, columns, squared_norms, worth_N * _often(count), bits).take(first)


def _features(views: Sequence[_WeightedRows], hash_N: Uint32, count: Int64) -> Candidates:
    """Return features that have rows of their own in each of these views."""
    columns, squared_norms, worth_N = {}, {}, np.zeros(len(hash_N), np.float32)
    for rows in views:
        assert isinstance(rows.view.space, FeatureSpace)
        row_N = rows.view.space.rows(hash_N)
        columns[rows.number], squared_norms[rows.number] = rows.sums(row_N[:, None])
        worth_N += rows.worth_V[row_N]
    return Candidates(hash_N, columns, squared_norms, worth_N * _often(count), 4)


def _often(count: Int64 | Float32) -> Float32:
    return np.sqrt(count).astype(np.float32)


def _unique(hashes: Uint32) -> tuple[Uint32, Int64]:
    """Return the distinct hashes, sorted, and how often each occurs. The array is sorted in place."""
    hashes.sort()
    first = np.ones(len(hashes), np.bool_)
    np.not_equal(hashes[1:], hashes[:-1], out=first[1:])
    place = np.flatnonzero(first)
    return hashes[place], np.diff(place, append=len(hashes))
