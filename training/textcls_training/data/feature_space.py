"""The hashed features that occur in the training texts, and which row of the embedding table each has.

`FeatureSpace` gives every type, and every pair of neighbouring types, its rows of the table. Distinct features that
were seen get a row each as long as their hashes fall into different buckets; unseen ones get row 0, which is nothing.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from textcls.model import features
from textcls.model.features import FeatureConfig
from textcls_training.config.resolve import LEAST_BUCKETS
from textcls_training.data.arrays import Bools, Int32, Int64, starts
from textcls_training.data.compiling import compiled
from textcls_training.data.corpus import Corpus

# Buckets a feature, so that almost every one has a bucket of its own, and the most that there are.
BUCKETS_PER_FEATURE, MOST_BUCKETS = 8, 2**24
# A view has at most so many rows, for the features that come most often.
MOST_ROWS = 2**22


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
        row_of_bucket: index from bucket (hash modulo the number of buckets, a power of two) to row, 0 for unseen, and
            for those that are too rare where there would be more than `MOST_ROWS`; rows are numbered in the order of
            their buckets.
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
        type_count, texts, earlier = corpus.type_counts(), len(corpus), corpus.earlier
        occurs = type_count > 0
        has_ngram = hashes.has_ngram & occurs[:, None]
        ngram, word = hashes.ngram[has_ngram], hashes.word[occurs]
        more_pairs = len(earlier.pair) if earlier is not None and config.bigrams else 0
        buckets = max(least_buckets, _enough_buckets(len(ngram) + hashes.bigrams + more_pairs + len(word)))
        count = np.zeros(buckets, np.int32)
        shared = np.zeros(buckets, np.bool_)
        # From the weakest kind to the strongest: where two share a bucket, the stronger one's factor counts.
        _count(ngram, np.repeat(type_count, has_ngram.sum(1)), False, count, shared)
        for _, bigram in hashes.bigram_parts():
            _count(bigram, np.ones(len(bigram), np.int64), True, count, shared)
        if earlier is not None:
            texts += earlier.texts
            counted = (earlier.pair_count > 0) & config.bigrams
            _count(earlier.pair[counted], earlier.pair_count[counted], True, count, shared)
        _count(word, type_count[occurs], False, count, shared)
        count[0] = 0  # Bucket 0 stands for no feature.
        least = _least_count(count, MOST_ROWS)
        rows = int(np.count_nonzero(count >= least))
        count_V, shared_V = np.zeros(rows + 1, np.int64), np.zeros(rows + 1, np.bool_)
        _number_rows(count, shared, least, count_V, shared_V)
        # Smooth idf (Robertson 2004 as scikit-learn has it), with occurrences in the place of texts: no sort is needed.
        idf = np.log((1 + texts) / (1 + np.minimum(count_V[1:], texts))) + 1
        weight = idf / idf.max(initial=1.0) * np.where(shared_V[1:], 0.5, 1.0)
        return cls(config, count, count_V, np.append(0, weight).astype(np.float32))

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
        bigram_row: Int32 = corpus.spill.empty(hashes.bigrams, np.int32)
        for where, bigram in hashes.bigram_parts():
            bigram_row[where] = self.rows(bigram)
        return EncodedFeatures(corpus, RowLists(row_of_type[known], starts(known.sum(1))), bigram_row)


def rows_in(hash_F: features.Uint32, bucket_V: Int64, buckets: int) -> Int64:
    """Return the row of each hash in a table whose rows, numbered from 1, have these buckets, rising; 0 for none."""
    if not len(bucket_V):
        return np.zeros(len(hash_F), np.int64)
    found_F = (hash_F & np.uint32(buckets - 1)).astype(np.int64)
    place_F = np.minimum(np.searchsorted(bucket_V, found_F), len(bucket_V) - 1)
    return np.where(bucket_V[place_F] == found_F, place_F + 1, 0)


class _Hashes:
    """The hashes of all features of a corpus: those of its types, and of each pair of neighbours in reading order.

    Types are hashed once, however many selections of the texts are trained on. Pairs, of which there are more than
    tokens, are hashed some at a time.
    """

    def __init__(self, corpus: Corpus, config: FeatureConfig) -> None:
        known = corpus.of_types
        if config not in known:
            known[config] = features.word_hashes(corpus.types), *features.ngram_hashes(corpus.types, config)
        self.word, self.ngram, self.has_ngram = known[config]
        self.bigrams = len(corpus.token) + len(corpus) if config.bigrams else 0
        self._corpus = corpus

    def bigram_parts(self) -> Iterator[tuple[slice, features.Uint32]]:
        """Yield hashes of pairs, and where they stand among all."""
        return bigram_parts(self._corpus, self.word) if self.bigrams else iter(())


def bigram_parts(corpus: Corpus, word: features.Uint32) -> Iterator[tuple[slice, features.Uint32]]:
    """Yield the hashes of the pairs of some texts at a time, and where they stand among those of all texts."""
    first = 0
    for part in corpus.parts():
        hashes = bigram_hashes(part, word)
        yield slice(first, first + len(hashes)), hashes
        first += len(hashes)


def bigram_hashes(corpus: Corpus, word: features.Uint32) -> features.Uint32:
    """Return the hash of each pair of neighbours in reading order, 0 for one that the limit cuts off.

    A text of n tokens has n + 1 pairs: the first one is with START, the last one with END (`PADDING`). Pairs with a
    token that is too rare to have a type are 0 as well: a saved model never meets them.
    """
    ends = corpus.start[1:]
    token = word[corpus.token]
    left = np.insert(token, corpus.start[:-1], np.uint32(features.START))
    right = np.insert(token, ends, np.uint32(features.end_hash()))
    hashes = features.bigram_hashes(left, right)
    hashes[(ends + np.arange(len(corpus)))[corpus.full]] = 0  # Bucket 0: whether the text ends there is not known.
    if corpus.has_rare:
        hashes[(left == word[0]) | (right == word[0])] = 0
    return hashes


@compiled
def _count(hash_N: features.Uint32, times_N: Int64, shared: bool, count_B: Int32, shared_B: Bools) -> None:
    """Add to the counts of the buckets of some hashes, and note whether two tokens share what is in these buckets."""
    last = np.uint32(len(count_B) - 1)
    for n in range(len(hash_N)):
        bucket = hash_N[n] & last
        count_B[bucket] += times_N[n]
        shared_B[bucket] = shared


@compiled
def _number_rows(count_B: Int32, shared_B: Bools, least: int, count_V: Int64, shared_V: Bools) -> None:
    """Number the buckets of at least so many occurrences from 1 on, in place of their counts, and all others 0.

    Written besides: what was noted of each row. No other array is as large as the buckets: new pages cost most here.
    """
    row = 0
    for b in range(len(count_B)):
        if count_B[b] >= least:
            row += 1
            count_V[row], shared_V[row] = count_B[b], shared_B[b]
            count_B[b] = row
        else:
            count_B[b] = 0


def _least_count(count_B: Int32, most: int) -> int:
    """Return how often a feature must come to be among the `most` frequent, or fewer where many come as often."""
    if np.count_nonzero(count_B) <= most:
        return 1
    seen = count_B[count_B > 0]
    return int(np.partition(seen, len(seen) - most - 1)[len(seen) - most - 1]) + 1


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
