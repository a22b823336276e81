"""The hashed features that occur in the training texts, and which row of the embedding table each has.

`FeatureSpace` gives every type, and every pair of neighbouring types, its rows of the table. Distinct features that
were seen get a row each as long as their hashes fall into different buckets; unseen ones get row 0, which is nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from textcls import features
from textcls.features import FeatureConfig
from textcls_training.compiling import compiled
from textcls_training.config.resolve import LEAST_BUCKETS
from textcls_training.data.arrays import Float32, Int32, Int64, starts
from textcls_training.data.corpus import Corpus

# Buckets a feature, so that almost every one has a bucket of its own, and the most that there are.
BUCKETS_PER_FEATURE, MOST_BUCKETS = 8, 2**24


@dataclass(frozen=True, slots=True)
class RowLists:
    """Ragged lists of table rows: list i is `row[start[i]:start[i + 1]]`."""

    row: Int32
    start: Int64


@dataclass(frozen=True, slots=True)
class FeatureSpace:
    """The features that training has seen.

    Attributes:
        config: which features a token has.
        row_of_bucket: index from bucket (hash modulo the number of buckets, a power of two) to row, 0 for unseen;
            rows are numbered in the order of their buckets.
        count: how often each row occurs in training.
        weight: c_r of each row: its idf over the highest idf, half of that for bigrams, as each of the two tokens owns
            half of one. Row 0 weighs nothing.
    """

    config: FeatureConfig
    row_of_bucket: Int32
    count: Int64
    weight: NDArray[np.float32]

    @classmethod
    def fit(cls, corpus: Corpus, config: FeatureConfig, least_buckets: int = LEAST_BUCKETS) -> "FeatureSpace":
        """Give each feature of the training corpus its row and weight.

        Args:
            corpus: the training texts.
            config: which features a token has.
            least_buckets: a power of two. Of few texts the features of others are mostly unseen, and one in ten of
                these falls into the bucket of a seen one, which it does not in a saved model: the more buckets, the
                closer are the answers to validation rows to what the saved model would say.
        """
        hashes = _Hashes(corpus, config)
        type_count, texts = corpus.type_count(), len(corpus)
        pair, pair_times = hashes.bigram, np.ones(len(hashes.bigram), np.int64)
        if corpus.earlier is not None:
            texts += corpus.earlier.texts
            if config.bigrams:
                counted = corpus.earlier.pair_count > 0
                pair = np.append(pair, corpus.earlier.pair[counted])
                pair_times = np.append(pair_times, corpus.earlier.pair_count[counted])
        occurs = type_count > 0
        has_ngram = hashes.has_ngram & occurs[:, None]
        # From the weakest kind to the strongest: where two share a bucket, the stronger one's factor counts.
        kinds = (
            (1.0, hashes.ngram[has_ngram], np.repeat(type_count, has_ngram.sum(1))),
            (0.5, pair, pair_times),
            (1.0, hashes.word[occurs], type_count[occurs]),
        )
        buckets = max(least_buckets, _enough_buckets(sum(len(found) for _, found, _ in kinds)))
        count = np.zeros(buckets, np.int32)
        factor = np.zeros(buckets, np.float32)
        for kind_factor, found, times in kinds:
            _count(found, times, np.float32(kind_factor), count, factor)
        count[0] = 0  # Bucket 0 stands for no feature.
        seen = np.flatnonzero(count)
        row_of_bucket = np.zeros(buckets, np.int32)
        row_of_bucket[seen] = np.arange(1, len(seen) + 1)
        # Smooth idf (Robertson 2004 as scikit-learn has it), with occurrences in the place of texts: no sort is needed.
        idf = np.log((1 + texts) / (1 + np.minimum(count[seen], texts))) + 1
        weight = idf / idf.max(initial=1.0) * factor[seen]
        return cls(
            config, row_of_bucket, np.append(0, count[seen]).astype(np.int64), np.append(0, weight).astype(np.float32)
        )

    @property
    def buckets(self) -> int:
        """Number of buckets, a power of two."""
        return len(self.row_of_bucket)

    def rows(self, hashes: features.Uint32) -> Int32:
        """Return the row of each hash; 0 where training has not seen the feature."""
        found: Int32 = self.row_of_bucket[hashes & np.uint32(self.buckets - 1)]
        return found

    def word_rows(self, words: Sequence[str]) -> Int32:
        """Return the rows that each word owns by itself [N, K]: its own, and those of its n-grams; 0 for none."""
        ngram, exist = features.ngram_hashes(words, self.config)
        word = self.rows(features.word_hashes(words))
        return np.concatenate([word[:, None], np.where(exist, self.rows(ngram), 0)], 1)

    def encode(self, corpus: Corpus) -> "EncodedFeatures":
        """Look up the rows of all types and bigrams of `corpus`."""
        hashes = _Hashes(corpus, self.config)
        row_of_type = np.concatenate(
            [self.rows(hashes.word)[:, None], np.where(hashes.has_ngram, self.rows(hashes.ngram), 0)], 1
        )
        known = row_of_type > 0
        return EncodedFeatures(corpus, RowLists(row_of_type[known], starts(known.sum(1))), self.rows(hashes.bigram))


def rows_in(hash_F: features.Uint32, bucket_V: Int64, buckets: int) -> Int64:
    """Return the row of each hash in a table whose rows, numbered from 1, have these buckets, rising; 0 for none."""
    if not len(bucket_V):
        return np.zeros(len(hash_F), np.int64)
    found_F = (hash_F & np.uint32(buckets - 1)).astype(np.int64)
    place_F = np.minimum(np.searchsorted(bucket_V, found_F), len(bucket_V) - 1)
    return np.where(bucket_V[place_F] == found_F, place_F + 1, 0)


class _Hashes:
    """The hashes of all features of a corpus: those of its types, and of each pair of neighbours in reading order.

    A text of n tokens has n + 1 pairs: the first one is with START, the last one with END (`PADDING`). Types are hashed
    once, however many selections of the texts are trained on.
    """

    def __init__(self, corpus: Corpus, config: FeatureConfig) -> None:
        known = corpus.of_types
        if config not in known:
            known[config] = features.word_hashes(corpus.types), *features.ngram_hashes(corpus.types, config)
        self.word, self.ngram, self.has_ngram = known[config]
        self.bigram = bigram_hashes(corpus, self.word) if config.bigrams else np.zeros(0, np.uint32)


def bigram_hashes(corpus: Corpus, word: features.Uint32) -> features.Uint32:
    """Return the hash of each pair of neighbours in reading order, 0 for one that the limit cuts off."""
    ends = corpus.start[1:]
    token = word[corpus.token]
    left = np.insert(token, corpus.start[:-1], np.uint32(features.START))
    right = np.insert(token, ends, np.uint32(features.end_hash()))
    hashes = features.bigram_hashes(left, right)
    hashes[(ends + np.arange(len(corpus)))[corpus.full]] = 0  # Bucket 0: whether the text ends there is not known.
    return hashes


@compiled
def _count(hash_N: features.Uint32, times_N: Int64, kind_factor: np.float32, count_B: Int32, factor_B: Float32) -> None:
    """Add to the counts of the buckets of some hashes, and let the factor of their kind be that of the buckets."""
    last = np.uint32(len(count_B) - 1)
    for n in range(len(hash_N)):
        bucket = hash_N[n] & last
        count_B[bucket] += times_N[n]
        factor_B[bucket] = kind_factor


def _enough_buckets(features: int) -> int:
    """Return the least power of two with room for `features`, within bounds."""
    wanted = max(LEAST_BUCKETS, min(MOST_BUCKETS, BUCKETS_PER_FEATURE * features))
    return 1 << (wanted - 1).bit_length()


@dataclass(frozen=True, slots=True)
class EncodedFeatures:
    """A corpus as rows: those of each type, and (if bigrams are on) those of its pairs in reading order."""

    corpus: Corpus
    type_rows: RowLists
    bigram_row: Int32

    def __len__(self) -> int:
        return len(self.corpus)
