"""Corpus and feature space against dictionaries and loops."""

import math
from collections import Counter, defaultdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.training.helpers import plain_bigrams, plain_features, plain_trigrams
from textcls.model import tokenizer
from textcls.model.features import FeatureConfig
from textcls_training.data.corpus import Corpus
from textcls_training.data.feature_space import FeatureSpace

CONFIGS = (
    FeatureConfig(ngram_sizes=(3, 5)),
    FeatureConfig(bigrams=False, ngram_sizes=(2,), max_chars=4),
    FeatureConfig(bigrams=False),
    FeatureConfig(ngram_sizes=(3, 5), trigrams=True),
)
every_config = pytest.mark.parametrize(
    "config", CONFIGS, ids=["words, bigrams, n-grams", "words, n-grams", "words alone", "words to n-grams, trigrams"]
)
SEQUENCES = ("bigram", "trigram")

TEXTS = ("my card, my card!", "", "Card lost \u6771\u4eac", "aaaaaa refund", "  ", "my", "refund refund my card")

texts_strategy = st.lists(
    st.lists(st.sampled_from(["my", "card", "!", "\u6771", "refund", "aaaa"]), max_size=6).map(" ".join),
    min_size=1,
    max_size=6,
)


def plain_space(texts: tuple[str, ...], config: FeatureConfig) -> tuple[int, dict[int, int], dict[int, float]]:
    """Number of buckets, and by bucket the count and the weight."""
    seen: Counter[tuple[str, int]] = Counter()
    for text in texts:
        for owned in plain_features(text, config):
            seen.update(f for f in owned if f[0] not in SEQUENCES)
        if config.bigrams:
            seen.update(("bigram", h) for h in plain_bigrams(tokenizer.tokenize(text)))
        if config.trigrams:
            seen.update(("trigram", h) for h in plain_trigrams(tokenizer.tokenize(text)))
    # Room for every word and n-gram of each distinct token and for each sequence of the texts, at eight buckets each.
    types = sorted({token for text in texts for token in tokenizer.tokenize(text)})
    by_type = sum(kind not in SEQUENCES for token in types for kind, _ in next(plain_features(token, config)))
    places = len(config.orders) * sum(times for (kind, _), times in seen.items() if kind == "bigram")
    buckets = max(2**12, 2 ** math.ceil(math.log2(8 * max(1, by_type + places))))
    count: Counter[int] = Counter()
    kinds = defaultdict(set)
    factors = {"word": 1.0, "bigram": 1 / 2, "trigram": 1 / 3, "ngram": 1.0}
    for (kind, h), times in seen.items():
        count[h % buckets] += times
        kinds[h % buckets].add(kind)
    del count[0]
    idf = {b: math.log((1 + len(texts)) / (1 + min(n, len(texts)))) + 1 for b, n in count.items()}
    factor = {b: next(f for kind, f in factors.items() if kind in kinds[b]) for b in count}
    return buckets, dict(count), {b: idf[b] / max(idf.values()) * factor[b] for b in count}


def test_a_corpus_holds_the_tokens_of_each_text_up_to_the_limit() -> None:
    corpus = Corpus.of(TEXTS, 3)
    spelled = [corpus.types[i] for i in corpus.token]
    found = [spelled[a:b] for a, b in zip(corpus.start, corpus.start[1:], strict=False)]
    assert found == [tokenizer.tokenize(text)[:3] for text in TEXTS]
    assert len(corpus) == len(TEXTS)
    assert corpus.lengths().tolist() == [len(tokens) for tokens in found]
    assert len(set(corpus.types)) == len(corpus.types)


@given(texts_strategy, st.data())
@settings(max_examples=100)
def test_selected_texts_are_those_asked_for_in_that_order(texts: list[str], data: st.DataObject) -> None:
    which = data.draw(st.lists(st.integers(0, len(texts) - 1), max_size=8))
    chosen = Corpus.of(texts, 64).select(np.array(which, np.int64))
    spelled = [chosen.types[i] for i in chosen.token]
    found = [spelled[a:b] for a, b in zip(chosen.start, chosen.start[1:], strict=False)]
    assert found == [tokenizer.tokenize(texts[i]) for i in which]


@every_config
@given(texts_strategy)
@settings(max_examples=15)
def test_a_feature_space_equals_a_dictionary(config: FeatureConfig, texts: list[str]) -> None:
    space = FeatureSpace.fit(Corpus.of(texts, 64), config)
    buckets, count, weight = plain_space(tuple(texts), config)
    assert space.buckets == buckets
    assert sorted(np.flatnonzero(space.row_of_bucket).tolist()) == sorted(count)
    assert space.row_of_bucket[sorted(count)].tolist() == list(range(1, len(count) + 1))
    assert space.count.tolist() == [0, *(count[b] for b in sorted(count))]
    np.testing.assert_allclose(space.weight, [0, *(weight[b] for b in sorted(weight))], rtol=1e-6)


def test_there_are_eight_buckets_a_feature_or_more() -> None:
    words = [" ".join(f"w{i}" for i in range(n)) for n in (512, 513)]
    found = [FeatureSpace.fit(Corpus.of([text], 2048), FeatureConfig(bigrams=False)).buckets for text in words]
    assert found == [4096, 8192]


def test_with_more_buckets_hardly_an_unseen_word_has_the_row_of_a_seen_one() -> None:
    seen, unseen = ([f"{name}{i}" for i in range(2000)] for name in ("seen", "unseen"))
    corpus, config = Corpus.of([" ".join(seen)], 2048), FeatureConfig(bigrams=False)
    few, many = FeatureSpace.fit(corpus, config), FeatureSpace.fit(corpus, config, 2**20)
    assert (few.buckets, many.buckets) == (2**14, 2**20)
    assert (few.word_rows(unseen) > 0).mean() > 0.05
    assert (many.word_rows(unseen) > 0).mean() < 0.01
    assert (many.word_rows(seen) > 0).all()


def test_features_have_as_many_buckets_as_they_need_where_that_is_more_than_the_least() -> None:
    corpus = Corpus.of([" ".join(f"w{i}" for i in range(513))], 2048)
    assert FeatureSpace.fit(corpus, FeatureConfig(bigrams=False), 2**10).buckets == 8192
