"""Counting the tokens and pairs of texts, for a training to come that will not have them."""

import numpy as np

from textcls import features
from textcls.features import FeatureConfig, Uint32
from textcls_training.data.arrays import Int64
from textcls_training.data.corpus import Corpus
from textcls_training.data.earlier_counts import EarlierCounts
from textcls_training.data.feature_space import bigram_hashes


def counts_of(corpus: Corpus) -> EarlierCounts:
    """Return the counts of a corpus, with those of the earlier texts that it knows of."""
    earlier = corpus.earlier
    pair, times = _pairs(corpus)
    texts = len(corpus)
    if earlier is not None:
        pair, times = _added(np.append(pair, earlier.pair), np.append(times, earlier.pair_count))
        texts += earlier.texts
    return EarlierCounts(corpus.types, corpus.type_count(), pair, times, texts)


def without(counts: EarlierCounts, corpus: Corpus) -> EarlierCounts:
    """Return counts less those of some of the counted texts, whose tokens are numbered alike."""
    count = counts.count - np.bincount(corpus.token, minlength=len(counts.types))[: len(counts.types)]
    pair, times = _pairs(corpus)
    left = counts.pair_count.copy()
    known = np.isin(pair, counts.pair)
    left[np.searchsorted(counts.pair, pair[known])] -= times[known]
    least = np.int64(0)
    return EarlierCounts(
        counts.types, np.maximum(count, least), counts.pair, np.maximum(left, least), counts.texts - len(corpus)
    )


def feature_hashes(counts: EarlierCounts, config: FeatureConfig) -> Uint32:
    """Return the hashes of all features of earlier texts, the strongest kind last."""
    hash_UN, exist_UN = features.ngram_hashes(counts.types, config)
    pairs = counts.pair if config.bigrams else counts.pair[:0]
    return np.concatenate([hash_UN[exist_UN], pairs, features.word_hashes(counts.types)])


def _pairs(corpus: Corpus) -> tuple[Uint32, Int64]:
    """Return the hashes of the pairs of neighbours, rising, and how often each occurs."""
    found, times = np.unique(bigram_hashes(corpus, features.word_hashes(corpus.types)), return_counts=True)
    return found, times


def _added(hash_P: Uint32, times_P: Int64) -> tuple[Uint32, Int64]:
    found, number = np.unique(hash_P, return_inverse=True)
    times = np.zeros(len(found), np.int64)
    np.add.at(times, number, times_P)
    return found, times
