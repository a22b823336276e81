"""The lookup tables of a saved model, and how its text graph reads them. Shapes as in `textcls_training.export`."""

from dataclasses import dataclass
from typing import Final

import numpy as np

from textcls import features
from textcls.features import FeatureConfig
from textcls_training.data.arrays import Bools, Float32
from textcls_training.data.corpus import Corpus
from textcls_training.data.feature_space import bigram_hashes
from textcls_training.export.perfect_hash import PerfectHash
from textcls_training.export.quantize import QuantizedRows

# The score of padding: it takes no part in a softmax, and 16 bits can hold it.
NO_SCORE: Final = -3e4


@dataclass(frozen=True, slots=True)
class LookupTables:
    """The lookup tables of a saved model.

    Attributes:
        features: what a token owns.
        folded: whether columns are values and a score, or else those of a vector.
        index: perfect hash of words, and behind them bigrams.
        word_rows: of words in the first view.
        bigram_rows: of bigrams in it.
        piece_rows: of words in the second view, their n-grams included; None without n-grams.
        ngram_index: perfect hash of n-grams; None without.
        ngram_rows: of n-grams in the second view; None without.
    """

    features: FeatureConfig
    folded: bool
    index: PerfectHash
    word_rows: QuantizedRows
    bigram_rows: QuantizedRows
    piece_rows: QuantizedRows | None = None
    ngram_index: PerfectHash | None = None
    ngram_rows: QuantizedRows | None = None

    @property
    def shape(self) -> tuple[int, int]:
        """Groups and columns of all views together (G, X)."""
        _, groups, columns = self.word_rows.shape
        return groups * (2 if self.ngram_index else 1), columns

    def reserved_rows(self) -> Float32:
        """Return the rows of a view behind those of a table [2, G, X]: that of padding, and that of absent features."""
        reserved_2GX = np.zeros((2, *self.word_rows.shape[1:]), np.float32)
        if self.folded:
            reserved_2GX[0, :, -2] = NO_SCORE
        reserved_2GX[0, :, -1] = 1
        return reserved_2GX

    def table(self) -> Float32:
        """Return the rows of words and bigrams in all views, and those that are reserved [R + 2, G, X]."""
        bigram_RGX = self.bigram_rows.dequantized()
        views = [np.concatenate([self.word_rows.dequantized(), bigram_RGX, self.reserved_rows()])]
        if self.piece_rows is not None:
            no_bigram_RGX = np.zeros_like(bigram_RGX)
            views.append(np.concatenate([self.piece_rows.dequantized(), no_bigram_RGX, self.reserved_rows()]))
        return np.concatenate(views, 1)

    def read(self, corpus: Corpus) -> tuple[Bools, Float32]:
        """Return padding [B, T] and token sums [B, T, G, X] as the text graph of a saved model does."""
        length = np.diff(corpus.start)
        padding_BT = np.arange(max(1, length.max(initial=0))) >= length[:, None]
        table_RGX = self.table()
        token_BTGX = np.broadcast_to(table_RGX[-2], (*padding_BT.shape, *table_RGX.shape[1:])).copy()
        token_BTGX[~padding_BT] = self._token_sums(corpus, table_RGX)
        return padding_BT, token_BTGX

    def _token_sums(self, corpus: Corpus, table_RGX: Float32) -> Float32:
        """Return the sum of the rows of each token of all texts, end to end [tokens, G, X]."""
        word = features.word_hashes(corpus.types)
        sum_of_type = table_RGX[self.index.rows(word)]
        if self.ngram_index is not None and self.ngram_rows is not None:
            outside = np.flatnonzero(sum_of_type[:, -1, -1] == 0)
            hashes, exist = features.ngram_hashes([corpus.types[i] for i in outside], self.features)
            ngram_RGX = np.concatenate([self.ngram_rows.dequantized(), self.reserved_rows()])
            row = np.where(exist, self.ngram_index.rows(hashes), self.ngram_index.absent)
            sum_of_type[outside, -ngram_RGX.shape[1] :] += ngram_RGX[row].sum(1)
        token_NGX = sum_of_type[corpus.token]
        if self.features.bigrams:
            # A text has one pair more than tokens, so the pairs of the texts before it shift those of a token.
            pair = np.arange(len(corpus.token)) + np.repeat(np.arange(len(corpus)), np.diff(corpus.start))
            pair_row = self.index.rows(bigram_hashes(corpus, word))
            token_NGX += table_RGX[pair_row[pair]] + table_RGX[pair_row[pair + 1]]
        return token_NGX
