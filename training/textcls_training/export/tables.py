"""The lookup tables of a saved model, and how its text graph reads them. Shapes as in `textcls_training.export`."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from textcls.model import features
from textcls.model.features import FeatureConfig
from textcls_training.data.arrays import Bools, Float32
from textcls_training.data.corpus import Corpus
from textcls_training.data.feature_space import sequence_hashes
from textcls_training.export.perfect_hash import PerfectHash
from textcls_training.export.quantize import QuantizedRows

# The score of padding: it has no effect in a softmax, and fits into 16 bits.
NO_SCORE: Final = -3e4


@dataclass(frozen=True, slots=True)
class LookupTables:
    """The lookup tables of a saved model.

    Attributes:
        features: what a token owns.
        folded: whether columns are values and a score, or those of a vector.
        index: perfect hash of words, followed by sequences, and then, with vectors, words not seen in training.
        kinds: for each kind in the index, its rows in each view, including their n-grams; None if a kind is not part of
            a view, and adds nothing to it.
        ngram_index: perfect hash of n-grams; None without.
        ngram_rows: the rows of n-grams in the last view; None without.
        distinct: for each group, whether each distinct token of a text counts once, see `HashedView`; only possible
            with folded tables.
    """

    features: FeatureConfig
    folded: bool
    index: PerfectHash
    kinds: Sequence[Sequence[QuantizedRows | None]]
    ngram_index: PerfectHash | None = None
    ngram_rows: QuantizedRows | None = None
    distinct: Sequence[bool] = ()

    @property
    def shape(self) -> tuple[int, int]:
        """Return groups and columns of all views together (G, X)."""
        shapes = [self.view_shape(view) for view in range(len(self.kinds[0]))]
        return sum(groups for groups, _ in shapes), shapes[0][1]

    def view_shape(self, view: int) -> tuple[int, int]:
        """Return groups and columns of one view."""
        rows = next(of_kind[view] for of_kind in self.kinds if of_kind[view] is not None)
        assert rows is not None
        return rows.shape[1:]

    def reserved_rows(self, groups: int) -> Float32:
        """Return the rows after those of a table [2, G, X]: that of padding, and that of absent features."""
        reserved_2GX = np.zeros((2, groups, self.shape[1]), np.float32)
        if self.folded:
            reserved_2GX[0, :, -2] = NO_SCORE
        reserved_2GX[0, :, -1] = 1
        return reserved_2GX

    def table(self) -> Float32:
        """Return the rows of all kinds in all views, and the reserved ones [R + 2, G, X]."""
        views = []
        for view, of_view in enumerate(zip(*self.kinds, strict=True)):
            shape, parts = self.view_shape(view), []
            for rows, count in zip(of_view, self.index.kinds, strict=True):
                parts.append(np.zeros((count, *shape), np.float32) if rows is None else rows.dequantized())
            views.append(np.concatenate([*parts, self.reserved_rows(shape[0])]))
        return np.concatenate(views, 1)

    def word_weights(self, words: Sequence[str]) -> Float32:
        """Return the weight of each word in the first view; one without its own row has the highest: 1."""
        square = self.table()[self.index.rows(features.word_hashes(words)), 0, -1]
        found: Float32 = np.sqrt(np.where(square == 0, 1, square))
        return found

    def knows(self, words: Sequence[str]) -> Bools:
        """Return whether each word is known, as the output `known` of a saved model says."""
        known: Bools = self.table()[self.index.rows(features.word_hashes(words)), -1, -1] != 0
        return known

    def read(self, corpus: Corpus) -> tuple[Bools, Float32]:
        """Return padding [B, T] and token sums [B, T, G, X] as the text graph of a saved model does."""
        length = np.diff(corpus.start)
        padding_BT = np.arange(max(1, length.max(initial=0))) >= length[:, None]
        table_RGX = self.table()
        token_BTGX = np.broadcast_to(table_RGX[-2], (*padding_BT.shape, *table_RGX.shape[1:])).copy()
        token_BTGX[~padding_BT] = self._token_sums(corpus, table_RGX)
        if any(self.distinct):
            token_BTGX[~padding_BT, :, -2] -= np.outer(_log_repeats(corpus), np.array(self.distinct, np.float32))
        return padding_BT, token_BTGX

    def _token_sums(self, corpus: Corpus, table_RGX: Float32) -> Float32:
        """Return the sum of the rows of each token of all texts, concatenated [tokens, G, X]."""
        word = features.word_hashes(corpus.types)
        sum_of_type = table_RGX[self.index.rows(word)]
        if self.ngram_index is not None and self.ngram_rows is not None:
            outside = np.flatnonzero(sum_of_type[:, -1, -1] == 0)
            hashes, exist = features.ngram_hashes([corpus.types[i] for i in outside], self.features)
            rows_RGX = self.ngram_rows.dequantized()
            ngram_RGX = np.concatenate([rows_RGX, self.reserved_rows(rows_RGX.shape[1])])
            row = np.where(exist, self.ngram_index.rows(hashes), self.ngram_index.absent)
            sum_of_type[outside, -ngram_RGX.shape[1] :] += ngram_RGX[row].sum(1)
        token_NGX = sum_of_type[corpus.token]
        # A text has one more place than tokens, so the texts before it shift the places of a token.
        text_N = np.repeat(np.arange(len(corpus)), np.diff(corpus.start))
        first_N, last_N = np.arange(len(corpus.token)) + text_N, corpus.start[1:][text_N] + text_N
        orders = self.features.orders
        for order, hash_P in zip(orders, sequence_hashes(corpus, word, orders), strict=True):
            row_P = self.index.rows(hash_P)
            for i in range(order):
                row_N = np.where(first_N + i <= last_N, row_P[np.minimum(first_N + i, last_N)], self.index.absent)
                token_NGX += table_RGX[row_N]
        return token_NGX


def _log_repeats(corpus: Corpus) -> Float32:
    """Return the logarithm of how often each token of all texts, concatenated, occurs in its text."""
    text = np.repeat(np.arange(len(corpus)), np.diff(corpus.start))
    _, which, times = np.unique(text * len(corpus.types) + corpus.token, return_inverse=True, return_counts=True)
    log_U: Float32 = np.log(times.astype(np.float32))
    return log_U[which]
