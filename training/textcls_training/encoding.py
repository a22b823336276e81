"""From texts to rows: which features occur in the training texts, and the batches that training reads.

`Corpus` holds tokens as numbers of distinct tokens ("types"); `FeatureSpace` gives every type, and every pair of
neighbouring types, its rows of the table. Distinct features that were seen get a row each as long as their hashes fall
into different buckets; unseen ones get row 0, which is nothing. Everything is a flat array: padding appears only in
`Batch`.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from textcls import features, tokenizer
from textcls.features import FeatureConfig

Int32 = NDArray[np.int32]
Int64 = NDArray[np.int64]
Bools = NDArray[np.bool_]


class BucketRule(NamedTuple):
    """How large a directory is: buckets a feature, and the bounds of their number (powers of two)."""

    per_feature: int
    least: int
    most: int


# In training almost every feature has a bucket of its own; a saved model trades a few collisions for its size.
TRAINING_BUCKETS = BucketRule(8, 2**12, 2**24)
SAVED_BUCKETS = BucketRule(8, 2**12, 2**22)
NGRAM_WEIGHT = 0.4


def _starts(lengths: Int64) -> Int64:
    """Where each of several lists begins when they stand end to end, and where the last one ends."""
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])


def _ranges(first: Int64, length: Int64) -> Int64:
    """Return first[0], first[0] + 1, ... (length[0] of them), then those of the next, end to end."""
    ends = np.cumsum(length)
    return np.arange(ends[-1] if len(ends) else 0) + np.repeat(first - ends + length, length)


@dataclass(frozen=True, slots=True)
class Corpus:
    """Tokens of many texts: `types[token[start[i]:start[i + 1]]]` are those of text i; `full` ones reach the limit."""

    types: list[str]
    token: Int32
    start: Int64
    full: Bools

    def __len__(self) -> int:
        return len(self.start) - 1

    @classmethod
    def of(cls, texts: Sequence[str], max_tokens: int) -> "Corpus":
        """Tokenise `texts`; of each, the first `max_tokens` tokens are read."""
        number: dict[str, int] = {}
        found, flat = [], []
        for text in texts:
            tokens = tokenizer.tokenize(text)
            found.append(len(tokens))
            tokens = tokens[:max_tokens]
            flat.append(np.fromiter((number.setdefault(t, len(number)) for t in tokens), np.int32, len(tokens)))
        lengths = np.array(found, np.int64)
        token = np.concatenate([np.zeros(0, np.int32), *flat])
        return cls(list(number), token, _starts(np.minimum(lengths, max_tokens)), lengths >= max_tokens)

    def select(self, which: Int64) -> "Corpus":
        """Return the texts `which`, with the same numbering of types."""
        first = self.start[which]
        length = self.start[which + 1] - first
        return Corpus(self.types, self.token[_ranges(first, length)], _starts(length), self.full[which])


@dataclass(frozen=True, slots=True)
class RowLists:
    """Ragged lists of table rows: list i is `row[start[i]:start[i + 1]]`."""

    row: Int32
    start: Int64

    def take(self, which: Int64) -> tuple[Int32, Int64]:
        """Return the rows of the lists `which`, end to end, and how many each has."""
        first = self.start[which]
        count = self.start[which + 1] - first
        return self.row[_ranges(first, count)], count


@dataclass(frozen=True, slots=True)
class FeatureSpace:
    """The features that training has seen.

    Attributes:
        config: which features a token has.
        row_of_bucket: directory from bucket (hash modulo the number of buckets, a power of two) to row, 0 for unseen;
            rows are numbered in the order of their buckets.
        count: how often each row occurs in training.
        weight: c_r of each row: its idf over the highest idf, less for bigrams (half, as each of the two tokens owns
            half of it) and for n-grams (`NGRAM_WEIGHT`). Row 0 weighs nothing.
    """

    config: FeatureConfig
    row_of_bucket: Int32
    count: Int64
    weight: NDArray[np.float32]

    @classmethod
    def fit(cls, corpus: Corpus, config: FeatureConfig) -> "FeatureSpace":
        """Give each feature of the training corpus its row and weight."""
        hashes = _Hashes(corpus, config)
        type_count = np.bincount(corpus.token, minlength=len(corpus.types))
        occurs = type_count > 0
        has_ngram = hashes.has_ngram & occurs[:, None]
        # From the weakest kind to the strongest: where two share a bucket, the stronger one's factor counts.
        kinds = (
            (NGRAM_WEIGHT, hashes.ngram[has_ngram], np.repeat(type_count, has_ngram.sum(1))),
            (0.5, hashes.bigram, None),
            (1.0, hashes.word[occurs].ravel(), np.repeat(type_count[occurs], config.word_hashes)),
        )
        buckets = _enough_buckets(TRAINING_BUCKETS, sum(len(found) for _, found, _ in kinds))
        count = np.zeros(buckets)
        factor = np.zeros(buckets, np.float32)
        for kind_factor, found, times in kinds:
            bucket = found & np.uint32(buckets - 1)
            count += np.bincount(bucket, times, buckets)
            factor[bucket] = kind_factor
        count[0] = 0  # Bucket 0 stands for no feature.
        seen = np.flatnonzero(count)
        row_of_bucket = np.zeros(buckets, np.int32)
        row_of_bucket[seen] = np.arange(1, len(seen) + 1)
        # Smooth idf (Robertson 2004 as scikit-learn has it), with occurrences in the place of texts: no sort is needed.
        idf = np.log((1 + len(corpus)) / (1 + np.minimum(count[seen], len(corpus)))) + 1
        weight = idf / idf.max(initial=1.0) * factor[seen]
        return cls(
            config, row_of_bucket, np.append(0, count[seen]).astype(np.int64), np.append(0, weight).astype(np.float32)
        )

    def compact(self, min_count: int) -> tuple["FeatureSpace", Int64]:
        """Return a space with a small directory, without the rows that occur less than `min_count` times.

        Of rows that now fall into one bucket the most frequent stays. Also returns the old number of each new row.
        """
        kept = np.where(self.count >= min_count, np.arange(len(self.count)), 0)
        buckets = min(self.buckets, _enough_buckets(SAVED_BUCKETS, int(np.count_nonzero(kept))))
        rivals = kept[self.row_of_bucket].reshape(-1, buckets)
        winner = np.take_along_axis(rivals, self.count[rivals].argmax(0)[None], 0)[0]
        seen = winner > 0
        seen[0] = False
        old = np.append(0, winner[seen])
        row_of_bucket = np.where(seen, np.cumsum(seen), 0).astype(np.int32)
        return FeatureSpace(self.config, row_of_bucket, self.count[old], self.weight[old]), old

    @property
    def buckets(self) -> int:
        """Number of buckets, a power of two."""
        return len(self.row_of_bucket)

    def rows(self, hashes: features.Uint32) -> Int32:
        """Return the row of each hash; 0 where training has not seen the feature."""
        found: Int32 = self.row_of_bucket[hashes & np.uint32(self.buckets - 1)]
        return found

    def encode(self, corpus: Corpus) -> "Encoded":
        """Look up the rows of all types and bigrams of `corpus`."""
        hashes = _Hashes(corpus, self.config)
        row_of_type = np.concatenate(
            [self.rows(hashes.word), np.where(hashes.has_ngram, self.rows(hashes.ngram), 0)], 1
        )
        known = row_of_type > 0
        return Encoded(corpus, RowLists(row_of_type[known], _starts(known.sum(1))), self.rows(hashes.bigram))


class _Hashes:
    """The hashes of all features of a corpus: those of its types, and of each pair of neighbours in reading order.

    A text of n tokens has n + 1 pairs: the first one is with START, the last one with END (`PADDING`).
    """

    def __init__(self, corpus: Corpus, config: FeatureConfig) -> None:
        self.word = features.word_hashes(corpus.types, config.word_hashes)
        self.ngram, self.has_ngram = features.ngram_hashes(corpus.types, config)
        self.bigram = _bigram_hashes(corpus, self.word[:, 0]) if config.bigrams else np.zeros(0, np.uint32)


def _bigram_hashes(corpus: Corpus, word: features.Uint32) -> features.Uint32:
    ends = corpus.start[1:]
    token = word[corpus.token]
    left = np.insert(token, corpus.start[:-1], np.uint32(features.START))
    right = np.insert(token, ends, np.uint32(features.end_hash()))
    hashes = features.bigram_hashes(left, right)
    hashes[(ends + np.arange(len(corpus)))[corpus.full]] = 0  # Bucket 0: whether the text ends there is not known.
    return hashes


def _enough_buckets(rule: BucketRule, features: int) -> int:
    """Return the least power of two with room for `features`, within the bounds of `rule`."""
    wanted = max(rule.least, min(rule.most, rule.per_feature * features))
    return 1 << (wanted - 1).bit_length()


@dataclass(frozen=True, slots=True)
class Encoded:
    """A corpus as rows: those of each type, and (if bigrams are on) those of its pairs in reading order."""

    corpus: Corpus
    type_rows: RowLists
    bigram_row: Int32

    def __len__(self) -> int:
        return len(self.corpus)

    def lengths(self) -> Int64:
        """Number of tokens of each text."""
        return np.diff(self.corpus.start)

    def batch(self, which: Int64) -> "Batch":
        """Collect the texts `which`, in that order."""
        start = self.corpus.start[which]
        length = self.corpus.start[which + 1] - start
        tokens = int(length.sum())
        mask = np.arange(max(1, length.max(initial=0))) < length[:, None]
        place = np.full(mask.shape, tokens)
        place[mask] = np.arange(tokens)

        index = _ranges(start, length)
        types, type_of_token = np.unique(self.corpus.token[index].astype(np.int64), return_inverse=True)
        row, size = self.type_rows.take(types)
        units = [type_of_token]
        if len(self.bigram_row):
            # A text has one pair more than tokens, so the pairs of the texts before it shift those of a token.
            left = len(types) + np.arange(tokens) + np.repeat(np.arange(len(which)), length)
            units += [left, left + 1]
            pair_row = self.bigram_row[_ranges(start + which, length + 1)]
            row = np.concatenate([row, pair_row])
            size = np.concatenate([size, np.ones(len(pair_row), np.int64)])
        arrays = (row.astype(np.int64), size, np.stack(units, 1), place, mask)
        return Batch(*(torch.from_numpy(a) for a in arrays))


@dataclass(frozen=True, slots=True)
class Batch:
    """Texts as the model reads them.

    A "unit" is a bag of rows: first one for each distinct type of the batch, then one for each pair of neighbours.
    What several tokens share is summed and updated once. R rows, U units, N tokens.

    Attributes:
        row_R: rows of all units, end to end.
        size_U: how many rows each unit has.
        unit_NK: the units of each token: its type, and its left and right bigram where bigrams are on.
        place_BT: which of the N tokens stands at each place of the padded batch; N where none does.
        mask_BT: True where one does.
    """

    row_R: Tensor
    size_U: Tensor
    unit_NK: Tensor
    place_BT: Tensor
    mask_BT: Tensor

    def to(self, device: torch.device) -> "Batch":
        """Move to `device`."""
        return Batch(*(getattr(self, name).to(device) for name in self.__slots__))

    def spread(self, unit_UX: Tensor) -> Tensor:
        """Sum up what each token owns, [B, T, X]; zero at padding."""
        token_NX = torch.stack([unit_UX[unit_N] for unit_N in self.unit_NK.unbind(1)]).sum(0)
        return torch.cat([token_NX, unit_UX.new_zeros(1, unit_UX.shape[1])])[self.place_BT]


def epoch_batches(lengths: Int64, batch_size: int, rng: np.random.Generator) -> Iterator[Int64]:
    """Yield every text once, in random batches of similar length: shuffle, sort within pools, shuffle the batches."""
    order = rng.permutation(len(lengths))
    pool = 32 * batch_size
    pools = (order[i : i + pool] for i in range(0, len(order), pool))
    ordered = np.concatenate([p[np.argsort(lengths[p], kind="stable")] for p in pools])
    batches = [ordered[i : i + batch_size] for i in range(0, len(ordered), batch_size)]
    for i in rng.permutation(len(batches)):
        yield batches[i]


def plain_batches(lengths: Int64, batch_size: int) -> Iterator[Int64]:
    """Yield every text once, by length: the way of evaluation."""
    order = np.argsort(lengths, kind="stable")
    for i in range(0, len(order), batch_size):
        yield order[i : i + batch_size]
