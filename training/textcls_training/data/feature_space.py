"""The hashed features that occur in the training texts, and which row of the embedding table each has.

`FeatureSpace` gives every type, and every sequence of neighbouring types, its rows of the table. Distinct features that
were seen get a row each if their hashes fall into different buckets; unseen ones get row 0, which is zero.

Shapes: O lengths of sequences, P places at which they end (one more per text than it has tokens).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from textcls.model import features
from textcls.model.features import FeatureConfig
from textcls_training.config.resolve import LEAST_BUCKETS
from textcls_training.data.arrays import Int32, Int64, starts
from textcls_training.data.compiling import compiled
from textcls_training.data.corpus import Corpus

# Buckets per feature, so that almost every one has a bucket of its own, and the maximum number of buckets.
BUCKETS_PER_FEATURE, MOST_BUCKETS = 8, 2**24
# The maximum number of rows of a view, for the most frequent features.
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
        row_of_bucket: index from bucket (hash modulo the number of buckets, a power of two) to row, 0 for unseen
            features, and for those that are too rare if there would be more than `MOST_ROWS`; rows are numbered in the
            order of their buckets.
        count: how often each row occurs in training.
        weight: c_r of each row: its idf divided by the highest idf and by the number of tokens that own it: each of the
            two tokens of a bigram owns half. Row 0 has weight 0.
    """

    config: FeatureConfig
    row_of_bucket: Int32
    count: Int64
    weight: NDArray[np.float32]

    @property
    def name(self) -> str:
        """Return the name of a view of these features: what it reads."""
        return "pieces" if self.config.ngram_sizes else "words"

    @classmethod
    def fit(cls, corpus: Corpus, config: FeatureConfig, least_buckets: int = LEAST_BUCKETS) -> "FeatureSpace":
        """Give each feature of the training corpus its row and weight.

        Args:
            corpus: the training texts.
            config: which features a token has.
            least_buckets: a power of two. With few texts the features of other texts are mostly unseen, and one in ten
                of these falls into the bucket of a seen one, which does not happen in a saved model: the more buckets,
                the closer the predictions for validation rows are to those of the saved model.
        """
        hashes = _Hashes(corpus, config)
        type_count, texts, earlier = corpus.type_counts(), len(corpus), corpus.earlier
        occurs = type_count > 0
        has_ngram = hashes.has_ngram & occurs[:, None]
        ngram, word = hashes.ngram[has_ngram], hashes.word[occurs]
        more = len(earlier.pair) if earlier is not None and config.orders else 0
        buckets = max(least_buckets, _enough_buckets(len(ngram) + hashes.sequences + more + len(word)))
        count = np.zeros(buckets, np.int32)
        owners = np.ones(buckets, np.int8)
        # From the weakest kind to the strongest: if two share a bucket, the stronger one's factor counts.
        _count(ngram, np.repeat(type_count, has_ngram.sum(1)), 1, count, owners)
        for order in reversed(config.orders):
            for _, (sequence_P,) in sequence_parts(corpus, hashes.word, (order,)):
                _count(sequence_P, np.ones(len(sequence_P), np.int64), order, count, owners)
        if earlier is not None:
            texts += earlier.texts
            counted = (earlier.pair_count > 0) & bool(config.orders)
            _count(earlier.pair[counted], earlier.pair_count[counted], 2, count, owners)
        _count(word, type_count[occurs], 1, count, owners)
        count[0] = 0  # Bucket 0 means no feature.
        least = _least_count(count, MOST_ROWS)
        rows = int(np.count_nonzero(count >= least))
        count_V, owners_V = np.zeros(rows + 1, np.int64), np.ones(rows + 1, np.int8)
        _number_rows(count, owners, least, count_V, owners_V)
        # Smooth idf (Robertson 2004, as in scikit-learn), with occurrences instead of texts: no sort is needed.
        idf = np.log((1 + texts) / (1 + np.minimum(count_V[1:], texts))) + 1
        weight = idf / idf.max(initial=1.0) / owners_V[1:]
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
        """Return the rows that each word owns alone [N, K]: its own, and those of its n-grams; 0 for none."""
        ngram, exist = features.ngram_hashes(words, self.config)
        word = self.rows(features.word_hashes(words))
        return np.concatenate([word[:, None], np.where(exist, self.rows(ngram), 0)], 1)

    def encode(self, corpus: Corpus) -> "EncodedFeatures":
        """Look up the rows of all types and sequences of `corpus`."""
        hashes = _Hashes(corpus, self.config)
        row_of_type = np.concatenate(
            [self.rows(hashes.word)[:, None], np.where(hashes.has_ngram, self.rows(hashes.ngram), 0)], 1
        )
        known = row_of_type > 0
        orders = self.config.orders
        row_OP: Int32 = corpus.spill.empty(hashes.sequences, np.int32).reshape(len(orders), places(corpus))
        for where, hash_OP in sequence_parts(corpus, hashes.word, orders):
            row_OP[:, where] = self.rows(hash_OP)
        return EncodedFeatures(corpus, RowLists(row_of_type[known], starts(known.sum(1))), row_OP, orders)


def rows_in(hash_F: features.Uint32, bucket_V: Int64, buckets: int) -> Int64:
    """Return the row of each hash in a table whose rows, numbered from 1, have these ascending buckets; 0 for none."""
    if not len(bucket_V):
        return np.zeros(len(hash_F), np.int64)
    found_F = (hash_F & np.uint32(buckets - 1)).astype(np.int64)
    place_F = np.minimum(np.searchsorted(bucket_V, found_F), len(bucket_V) - 1)
    return np.where(bucket_V[place_F] == found_F, place_F + 1, 0)


class _Hashes:
    """The hashes of all features of a corpus: those of its types, and of each sequence in reading order.

    Types are hashed once, however many selections of the texts are trained on. Sequences, which outnumber tokens, are
    hashed some at a time.
    """

    def __init__(self, corpus: Corpus, config: FeatureConfig) -> None:
        known = corpus.of_types
        if config not in known:
            known[config] = features.word_hashes(corpus.types), *features.ngram_hashes(corpus.types, config)
        self.word, self.ngram, self.has_ngram = known[config]
        self.sequences = len(config.orders) * places(corpus)


def places(corpus: Corpus) -> int:
    """Return how many places there are at which sequences of tokens end."""
    return len(corpus.token) + len(corpus)


def sequence_parts(
    corpus: Corpus, word: features.Uint32, orders: Sequence[int]
) -> Iterator[tuple[slice, features.Uint32]]:
    """Yield the hashes of the sequences of some texts at a time [O, some], and their places among all."""
    if not orders:
        return
    first = 0
    for part in corpus.parts():
        hash_OP = sequence_hashes(part, word, orders)
        yield slice(first, first + hash_OP.shape[1]), hash_OP
        first += hash_OP.shape[1]


def sequence_hashes(corpus: Corpus, word: features.Uint32, orders: Sequence[int]) -> features.Uint32:
    """Return the hash of the sequence of each length that ends at each place [O, P], 0 for one that the limit cuts off.

    A text of n tokens has n + 1 places: the last one is its END (`PADDING`). None begins before START. Sequences with a
    token that is too rare to have a type are 0 as well: a saved model never meets them.
    """
    ends, texts = corpus.start[1:], np.arange(len(corpus))
    last = np.insert(word[corpus.token], ends, np.uint32(features.end_hash()))
    first = corpus.start[:-1] + texts
    none = np.zeros(len(last), np.bool_)
    none[(ends + texts)[corpus.full]] = True  # Bucket 0: it is not known whether the text ends there.
    if corpus.has_rare:
        none |= last == word[0]
    found, sequence, left_out = [], last, none
    for order in range(2, max(orders, default=1) + 1):
        sequence = features.bigram_hashes(_before(sequence, first, np.uint32(features.START)), last)
        left_out = none | _before(left_out, first, np.bool_(order > 2))
        if order in orders:
            found.append(np.where(left_out, np.uint32(0), sequence))
    return np.array(found, np.uint32).reshape(len(found), len(last))


def _before(at_P: NDArray[Any], first: Int64, edge: Any) -> NDArray[Any]:
    """Return the value one place before each, and `edge` at the first places of texts."""
    before = np.roll(at_P, 1)
    before[first] = edge
    return before


@compiled
def _count(hash_N: features.Uint32, times_N: Int64, owners: int, count_B: Int32, owners_B: NDArray[np.int8]) -> None:
    """Add to the counts of the buckets of some hashes, and record how many tokens own the features in these buckets."""
    last = np.uint32(len(count_B) - 1)
    for n in range(len(hash_N)):
        bucket = hash_N[n] & last
        count_B[bucket] += times_N[n]
        owners_B[bucket] = owners


@compiled
def _number_rows(
    count_B: Int32, owners_B: NDArray[np.int8], least: int, count_V: Int64, owners_V: NDArray[np.int8]
) -> None:
    """Number the buckets with enough occurrences from 1 on, in place of their counts, and all others 0.

    Also written: what was recorded for each row. No other array is as large as the buckets: new pages cost most here.
    """
    row = 0
    for b in range(len(count_B)):
        if count_B[b] >= least:
            row += 1
            count_V[row], owners_V[row] = count_B[b], owners_B[b]
            count_B[b] = row
        else:
            count_B[b] = 0


def _least_count(count_B: Int32, most: int) -> int:
    """Return how often a feature must occur to be among the `most` frequent, or fewer in case of ties."""
    if np.count_nonzero(count_B) <= most:
        return 1
    seen = count_B[count_B > 0]
    return int(np.partition(seen, len(seen) - most - 1)[len(seen) - most - 1]) + 1


def _enough_buckets(features: int) -> int:
    """Return the smallest power of two with room for `features`, within bounds."""
    wanted = max(LEAST_BUCKETS, min(MOST_BUCKETS, BUCKETS_PER_FEATURE * features))
    return 1 << (wanted - 1).bit_length()


@dataclass(frozen=True, slots=True)
class EncodedFeatures:
    """A corpus as rows.

    Attributes:
        corpus: the texts.
        type_rows: the rows of each type.
        sequence_row: the row of the sequence of each length that ends at each place [O, P], as in `sequence_hashes`.
        orders: the lengths O.
    """

    corpus: Corpus
    type_rows: RowLists
    sequence_row: Int32
    orders: tuple[int, ...]

    def __len__(self) -> int:
        return len(self.corpus)
