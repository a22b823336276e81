"""The tables of a saved model, and how its front end reads them. Shapes as in `textcls_training.lexicon`."""

from dataclasses import dataclass
from typing import Final

import numpy as np

from textcls import features
from textcls.features import FeatureConfig
from textcls_training.arrays import Bools, Float32
from textcls_training.encoding import Corpus, bigram_hashes
from textcls_training.lexicon.directory import Directory
from textcls_training.lexicon.rounding import Rounded

# The score of padding: it takes no part in a softmax, and 16 bits can hold it.
NO_SCORE: Final = -3e4


@dataclass(frozen=True, slots=True)
class Lexicon:
    """The tables of a saved model.

    Attributes:
        features: what a token owns.
        folded: whether columns are values and a score, or else those of a vector.
        rows: directory of words, and behind them bigrams.
        words: what words say in the first view.
        bigrams: what bigrams say in it.
        pieces: what words say in the second view, their n-grams included; None without n-grams.
        ngrams: directory of n-grams; None without.
        ngram_rows: what n-grams say in the second view; None without.
    """

    features: FeatureConfig
    folded: bool
    rows: Directory
    words: Rounded
    bigrams: Rounded
    pieces: Rounded | None = None
    ngrams: Directory | None = None
    ngram_rows: Rounded | None = None

    def marks(self) -> Float32:
        """Return the two rows behind those of a directory, padding and nothing [2, G, X] of one view."""
        mark_2GX = np.zeros((2, *self.words.shape[1:]), np.float32)
        if self.folded:
            mark_2GX[0, :, -2] = NO_SCORE
        mark_2GX[0, :, -1] = 1
        return mark_2GX

    def table(self) -> Float32:
        """Return what words and bigrams say in all views [R + 2, G, X]."""
        bigram_RGX = self.bigrams.rows()
        views = [np.concatenate([self.words.rows(), bigram_RGX, self.marks()])]
        if self.pieces is not None:
            views.append(np.concatenate([self.pieces.rows(), np.zeros_like(bigram_RGX), self.marks()]))
        return np.concatenate(views, 1)

    def read(self, corpus: Corpus) -> tuple[Bools, Float32]:
        """Return padding [B, T] and token sums [B, T, G, X] as the front end of a saved model does."""
        length = np.diff(corpus.start)
        padding_BT = np.arange(max(1, length.max(initial=0))) >= length[:, None]
        table_RGX = self.table()
        token_BTGX = np.broadcast_to(table_RGX[-2], (*padding_BT.shape, *table_RGX.shape[1:])).copy()
        token_BTGX[~padding_BT] = self._sums(corpus, table_RGX)
        return padding_BT, token_BTGX

    def _sums(self, corpus: Corpus, table_RGX: Float32) -> Float32:
        word = features.word_hashes(corpus.types)
        sum_of_type = table_RGX[self.rows.rows(word)]
        if self.ngrams is not None and self.ngram_rows is not None:
            unknown = np.flatnonzero(sum_of_type[:, -1, -1] == 0)
            hashes, exist = features.ngram_hashes([corpus.types[i] for i in unknown], self.features)
            ngram_RGX = np.concatenate([self.ngram_rows.rows(), self.marks()])
            row = np.where(exist, self.ngrams.rows(hashes), self.ngrams.nothing)
            sum_of_type[unknown, -ngram_RGX.shape[1] :] += ngram_RGX[row].sum(1)
        token_NGX = sum_of_type[corpus.token]
        if self.features.bigrams:
            # A text has one pair more than tokens, so the pairs of the texts before it shift those of a token.
            pair = np.arange(len(corpus.token)) + np.repeat(np.arange(len(corpus)), np.diff(corpus.start))
            pair_row = self.rows.rows(bigram_hashes(corpus, word))
            token_NGX += table_RGX[pair_row[pair]] + table_RGX[pair_row[pair + 1]]
        return token_NGX
