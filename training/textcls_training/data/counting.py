"""Counting the tokens and pairs of texts for a later training without these texts, and passing it the counts."""

from dataclasses import replace

import numpy as np

from textcls.model import features
from textcls.model.features import FeatureConfig, Uint32
from textcls_training.data.arrays import Int64
from textcls_training.data.corpus import MOST_TYPES, Corpus
from textcls_training.data.earlier_counts import Counted, EarlierCounts, added
from textcls_training.data.feature_space import sequence_parts


def counts_of(corpus: Corpus) -> EarlierCounts:
    """Return the counts of a corpus, including those of the earlier texts that it knows of.

    With more than `MOST_TYPES` types only the most frequent are counted.
    """
    earlier, pairs, texts = corpus.earlier, _pairs(corpus), len(corpus)
    if earlier is not None:
        pairs, texts = added(pairs, (earlier.pair, earlier.pair_count)), texts + earlier.texts
    count = corpus.type_counts()
    if corpus.has_rare:
        count[0] = 0
    kept = np.flatnonzero(count)
    if len(kept) > MOST_TYPES:
        kept = np.sort(kept[np.argsort(-count[kept], kind="stable")[:MOST_TYPES]])
    return EarlierCounts([corpus.types[i] for i in kept.tolist()], count[kept], *pairs, texts)


def after(corpus: Corpus, counts: EarlierCounts, counted: Int64) -> Corpus:
    """Return a corpus that knows of earlier texts, whose types come after its own.

    Args:
        corpus: the texts at hand.
        counts: of earlier texts.
        counted: which texts at hand are among the earlier ones, so that they are not counted twice.
    """
    known = {name: i for i, name in enumerate(corpus.types)}
    types = [*corpus.types, *(name for name in counts.types if name not in known)]
    number = {name: i for i, name in enumerate(types)}
    count = np.zeros(len(types), np.int64)
    count[[number[name] for name in counts.types]] = counts.count
    again = replace(corpus.select(counted), types=types)
    count -= again.type_counts()
    pair, times = _pairs(again)
    there = np.isin(pair, counts.pair)
    pair_count = counts.pair_count.copy()
    pair_count[np.searchsorted(counts.pair, pair[there])] -= times[there]
    earlier = EarlierCounts(
        types, np.maximum(count, 0), counts.pair, np.maximum(pair_count, 0), counts.texts - len(counted)
    )
    return replace(corpus, types=types, of_types={}, earlier=earlier)


def feature_hashes(counts: EarlierCounts, config: FeatureConfig) -> Uint32:
    """Return the hashes of all features of earlier texts, the strongest kind last."""
    hash_UN, exist_UN = features.ngram_hashes(counts.types, config)
    pairs = counts.pair if config.bigrams else counts.pair[:0]
    return np.concatenate([hash_UN[exist_UN], pairs, features.word_hashes(counts.types)])


def _pairs(corpus: Corpus) -> Counted:
    """Return the hashes of the pairs of neighbours, in ascending order, and how often each occurs."""
    found: Counted = np.zeros(0, np.uint32), np.zeros(0, np.int64)
    for _, (pair,) in sequence_parts(corpus, features.word_hashes(corpus.types), (2,)):
        found = added(found, np.unique(pair, return_counts=True))
    return found
