"""Corpus, feature space and batches against dictionaries and loops."""

import math
from collections import Counter, defaultdict
from collections.abc import Iterator

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from textcls import features, tokenizer
from textcls.features import FeatureConfig
from textcls_training import encoding
from textcls_training.encoding import Corpus, Encoded, FeatureSpace
from textcls_training.model import HashEmbedding

CONFIGS = (
    FeatureConfig(ngram_sizes=(3, 5)),
    FeatureConfig(word_hashes=3, ngram_sizes=(2,), max_chars=4),
    FeatureConfig(bigrams=False),
)
every_config = pytest.mark.parametrize(
    "config", CONFIGS, ids=["words, bigrams, n-grams", "three hashes", "words alone"]
)

TEXTS = ("my card, my card!", "", "Card lost \u6771\u4eac", "aaaaaa refund", "  ", "my", "refund refund my card")
NEW_TEXTS = ("refund my \u6771 unseen", "", "card", "nothing known here")

texts_strategy = st.lists(
    st.lists(st.sampled_from(["my", "card", "!", "\u6771", "refund", "aaaa"]), max_size=6).map(" ".join),
    min_size=1,
    max_size=6,
)


def plain_bigrams(tokens: list[str]) -> list[int]:
    """The hash of START and the first token, of each two neighbours, and of the last token and END."""
    word = features.word_hashes(tokens, 1)[:, 0]
    left = np.append(np.uint32(features.START), word)
    return [int(h) for h in features.bigram_hashes(left, np.append(word, np.uint32(features.end_hash())))]


def plain_features(text: str, config: FeatureConfig) -> Iterator[list[tuple[str, int]]]:
    """The features (kind, hash) that each token of `text` owns; a bigram is owned by both of its tokens."""
    tokens = tokenizer.tokenize(text)
    bigram = plain_bigrams(tokens)
    for i, token in enumerate(tokens):
        owned = [("word", h) for h in features.word_hashes([token], config.word_hashes)[0].tolist()]
        hashes, exist = features.ngram_hashes([token], config)
        owned += [("ngram", h) for h in hashes[exist].tolist()]
        if config.bigrams:
            owned += [("bigram", h) for h in bigram[i : i + 2]]
        yield owned


def plain_space(texts: tuple[str, ...], config: FeatureConfig) -> tuple[int, dict[int, int], dict[int, float]]:
    """Number of buckets, and by bucket the count and the weight."""
    seen: Counter[tuple[str, int]] = Counter()
    for text in texts:
        for owned in plain_features(text, config):
            seen.update(f for f in owned if f[0] != "bigram")
        if config.bigrams:
            seen.update(("bigram", h) for h in plain_bigrams(tokenizer.tokenize(text)))
    # Room for every word and n-gram of each distinct token and for each bigram of the texts, at eight buckets each.
    types = sorted({token for text in texts for token in tokenizer.tokenize(text)})
    by_type = sum(kind != "bigram" for token in types for kind, _ in next(plain_features(token, config)))
    places = sum(times for (kind, _), times in seen.items() if kind == "bigram")
    buckets = max(2**12, 2 ** math.ceil(math.log2(8 * max(1, by_type + places))))
    count: Counter[int] = Counter()
    kinds = defaultdict(set)
    for (kind, h), times in seen.items():
        count[h % buckets] += times
        kinds[h % buckets].add(kind)
    del count[0]
    idf = {b: math.log((1 + len(texts)) / (1 + min(n, len(texts)))) + 1 for b, n in count.items()}
    factor = {b: 1.0 if "word" in kinds[b] else 0.5 if "bigram" in kinds[b] else encoding.NGRAM_WEIGHT for b in count}
    return buckets, dict(count), {b: idf[b] / max(idf.values()) * factor[b] for b in count}


def fitted(config: FeatureConfig) -> tuple[FeatureSpace, HashEmbedding]:
    space = FeatureSpace.fit(Corpus.of(TEXTS, 64), config)
    torch.manual_seed(0)
    return space, HashEmbedding.fresh(torch.from_numpy(space.weight), dim=4, std=1.0)


def token_vectors(encoded: Encoded, embedding: HashEmbedding, which: list[int]) -> tuple[Tensor, Tensor, Tensor]:
    """Vectors [B, T, D], energies [B, T, 1] and mask of the texts `which`, as training computes them."""
    batch = encoded.batch(np.array(which, np.int64))
    unit_UD, energy_U1 = embedding.units(batch)
    return batch.spread(unit_UD).detach(), batch.spread(energy_U1), batch.mask_BT


def test_a_corpus_holds_the_tokens_of_each_text_up_to_the_limit() -> None:
    corpus = Corpus.of(TEXTS, 3)
    spelled = [corpus.types[i] for i in corpus.token]
    found = [spelled[a:b] for a, b in zip(corpus.start, corpus.start[1:], strict=False)]
    assert found == [tokenizer.tokenize(text)[:3] for text in TEXTS]
    assert len(corpus) == len(TEXTS)
    assert len(set(corpus.types)) == len(corpus.types)


@given(texts_strategy, st.data())
@settings(deadline=None, max_examples=100)
def test_selected_texts_are_those_asked_for_in_that_order(texts: list[str], data: st.DataObject) -> None:
    which = data.draw(st.lists(st.integers(0, len(texts) - 1), max_size=8))
    chosen = Corpus.of(texts, 64).select(np.array(which, np.int64))
    spelled = [chosen.types[i] for i in chosen.token]
    found = [spelled[a:b] for a, b in zip(chosen.start, chosen.start[1:], strict=False)]
    assert found == [tokenizer.tokenize(texts[i]) for i in which]


@every_config
@given(texts_strategy)
@settings(deadline=None, max_examples=15)
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


@every_config
@pytest.mark.parametrize("texts", [TEXTS, NEW_TEXTS], ids=["training texts", "new texts"])
def test_a_batch_sums_up_the_rows_of_each_token(config: FeatureConfig, texts: tuple[str, ...]) -> None:
    space, embedding = fitted(config)
    which = [3, 0, 1, 0, 2]
    x_BTD, energy_BT1, mask_BT = token_vectors(space.encode(Corpus.of(texts, 64)), embedding, which)
    assert mask_BT.sum(1).tolist() == [len(tokenizer.tokenize(texts[i])) for i in which]
    assert mask_BT.shape[1] == mask_BT.sum(1).max()
    for b, i in enumerate(which):
        for t, owned in enumerate(plain_features(texts[i], config)):
            assert mask_BT[b, t]
            rows = [int(space.row_of_bucket[h % space.buckets]) for _, h in owned]
            vector = sum(embedding.weight_V[r] * embedding.table_VD[r] for r in rows)
            torch.testing.assert_close(x_BTD[b, t], vector)
            torch.testing.assert_close(energy_BT1[b, t, 0], sum(embedding.weight_V[r] ** 2 for r in rows))
    assert not x_BTD[~mask_BT].any()
    assert not energy_BT1[~mask_BT].any()


@every_config
def test_a_batch_without_a_single_token_has_one_column_of_padding(config: FeatureConfig) -> None:
    space, embedding = fitted(config)
    x_BTD, energy_BT1, mask_BT = token_vectors(space.encode(Corpus.of(TEXTS, 64)), embedding, [1, 4])
    assert x_BTD.shape == (2, 1, 4)
    assert not x_BTD.any()
    assert not energy_BT1.any()
    assert not mask_BT.any()


@pytest.mark.parametrize("min_count", [1, 2])
def test_a_compact_space_keeps_the_most_frequent_of_the_rows_that_share_a_bucket(min_count: int) -> None:
    # 8 buckets a feature in training are 2**14 of them; the saved directory needs 2**12 or more for those left.
    rng = np.random.default_rng(0)
    texts = [" ".join(f"w{i}" for i in rng.geometric(0.004, 30)) for _ in range(60)]
    space = FeatureSpace.fit(Corpus.of(texts, 64), FeatureConfig(bigrams=True))
    less, old = space.compact(min_count)
    by_bucket = defaultdict(list)
    for bucket, row in enumerate(space.row_of_bucket.tolist()):
        if row and space.count[row] >= min_count and bucket % less.buckets:
            by_bucket[bucket % less.buckets].append(row)
    assert less.buckets < space.buckets or min_count == 1
    assert np.flatnonzero(less.row_of_bucket).tolist() == sorted(by_bucket)
    assert less.row_of_bucket[sorted(by_bucket)].tolist() == list(range(1, len(by_bucket) + 1))
    assert [old[0], less.count[0], less.weight[0]] == [0, 0, 0]
    for bucket, rows in by_bucket.items():
        row = less.row_of_bucket[bucket]
        assert old[row] in rows
        assert less.count[row] == space.count[old[row]] == space.count[rows].max()
        assert less.weight[row] == space.weight[old[row]]


def test_the_batches_of_an_epoch_hold_every_text_once_with_similar_lengths_together() -> None:
    lengths = np.random.default_rng(0).integers(0, 500, 1000)
    batches = list(encoding.epoch_batches(lengths, 8, np.random.default_rng(1)))
    assert sorted(np.concatenate(batches).tolist()) == list(range(1000))
    assert sorted({len(batch) for batch in batches}) == [8]
    assert np.mean([np.ptp(lengths[batch]) for batch in batches]) < 50
    # Short and long batches alternate, else the epoch would end on long texts.
    assert abs(np.mean([lengths[b].mean() for b in batches[:60]]) - lengths.mean()) < 75


def test_the_batches_of_an_epoch_follow_the_generator_alone() -> None:
    lengths = np.arange(100)
    one, same, other = (
        [batch.tolist() for batch in encoding.epoch_batches(lengths, 8, np.random.default_rng(seed))]
        for seed in (1, 1, 2)
    )
    assert one == same
    assert one != other


def test_the_batches_of_an_evaluation_hold_every_text_once_by_length() -> None:
    lengths = np.array([3, 0, 7, 1, 5])
    assert [batch.tolist() for batch in encoding.plain_batches(lengths, 2)] == [[1, 3], [0, 4], [2]]
