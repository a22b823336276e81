"""The hashes of features: golden values, a plain form of the n-gram polynomial, and the graph of a saved model."""

import json
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import mmh3
import numpy as np
import onnxruntime
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from textcls import features, tokenizer
from textcls.errors import ConfigError
from textcls.features import FeatureConfig
from textcls_training.encoding import Corpus, FeatureSpace
from textcls_training.frontend import build_frontend

GOLDEN: dict[str, Any] = json.loads((Path(__file__).parent / "golden" / "features_v1.json").read_text(encoding="utf-8"))
TOKENS: list[dict[str, Any]] = GOLDEN["tokens"]
BUCKETS = 2**16
WRAP = 2**32

CONFIGS = (
    FeatureConfig(ngram_sizes=(3, 5)),
    FeatureConfig(ngram_sizes=(2, 4), word_hashes=2),
    FeatureConfig(word_hashes=3),
    FeatureConfig(bigrams=False),
    FeatureConfig(bigrams=False, word_hashes=2, ngram_sizes=(2, 3, 4, 5, 6), max_chars=5),
    FeatureConfig(ngram_sizes=(4,), max_chars=2),
    FeatureConfig(ngram_sizes=(7, 8), max_chars=20),
)
CONFIG_NAMES = [f"words {c.word_hashes}, bigrams {c.bigrams}, {c.ngram_sizes} of {c.max_chars}" for c in CONFIGS]

words = st.text(st.sampled_from("abcXYZ019_\xe9\u0301\u0915\u094d\u6771\u30fc\U0001f469\u200d\U00010400!"), max_size=16)
texts_of_words = st.lists(words, max_size=8).map(" ".join)
texts_strategy = st.lists(st.one_of(texts_of_words, st.text(max_size=30)), min_size=1, max_size=6)


def plain_ngrams(token: str, config: FeatureConfig) -> list[int]:
    """The hashes of the n-grams of `token`, size by size, written down as the rule says it."""
    codes = [mmh3.hash(c, features.CHARACTER_SEED, signed=False) for c in token[: config.max_chars]]
    codes = [features.START, *codes, features.END]
    found = []
    for n in config.ngram_sizes if len(token) > 1 else ():
        for first in range(len(codes) - n + 1):
            value = 0
            for code in codes[first : first + n]:
                value = (value * features.NGRAM_MULTIPLIER + code) % WRAP
            found.append(value)
    return found


def existing_ngrams(token: str, config: FeatureConfig) -> list[int]:
    hashes, exist = features.ngram_hashes([token], config)
    found: list[int] = hashes[exist].tolist()
    return found


def plain_rows(text: str, config: FeatureConfig, max_tokens: int) -> list[list[int]]:
    """The buckets of each token of `text`, sorted, 0 left out."""
    every = tokenizer.tokenize(text)
    tokens = every[:max_tokens]
    word = [mmh3.hash(token, 0, signed=False) for token in tokens]
    pairs = zip([features.START, *word], [*word, mmh3.hash(" ", 0, signed=False)], strict=True)
    bigram = [(a * features.BIGRAM_MULTIPLIER + b) % WRAP for a, b in pairs]
    if len(every) >= max_tokens:
        bigram[-1] = 0
    found = []
    for i, token in enumerate(tokens):
        hashes = [mmh3.hash(token, seed, signed=False) for seed in range(config.word_hashes)]
        if config.bigrams:
            hashes += bigram[i : i + 2]
        hashes += plain_ngrams(token, config)
        found.append(sorted(h % BUCKETS for h in hashes if h % BUCKETS))
    return found


def full_space(config: FeatureConfig) -> FeatureSpace:
    """A space in which every bucket is known and has its own number as its row."""
    every = np.arange(BUCKETS, dtype=np.int32)
    return FeatureSpace(config, every, np.ones(BUCKETS, np.int64), np.ones(BUCKETS, np.float32))


@cache
def frontend(config: FeatureConfig, max_tokens: int) -> onnxruntime.InferenceSession:
    model = build_frontend(full_space(config), max_tokens)
    return onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])


def graph_rows(texts: Sequence[str], config: FeatureConfig, max_tokens: int) -> list[list[list[int]]]:
    """The rows of each token of each text as a saved model finds them, sorted, 0 left out."""
    given = np.array([tokenizer.clean(text) for text in texts], object)
    _, rows, mask, *ngrams = frontend(config, max_tokens).run(None, {"text": given})
    every = np.concatenate([rows.transpose(0, 2, 1), *ngrams], 2)
    assert not every[~mask].any()
    return [
        [sorted(int(r) for r in token if r) for token in text[real]] for text, real in zip(every, mask, strict=True)
    ]


def twin_rows(texts: Sequence[str], config: FeatureConfig, max_tokens: int) -> list[list[list[int]]]:
    """The same from the arrays that training reads."""
    corpus = Corpus.of(texts, max_tokens)
    batch = full_space(config).encode(corpus).batch(np.arange(len(texts)))
    ends = np.cumsum(batch.size_U.numpy())
    units = [batch.row_R.numpy()[end - size : end].tolist() for end, size in zip(ends, batch.size_U, strict=True)]
    tokens = [sorted(r for unit in of_token.tolist() for r in units[unit] if r) for of_token in batch.unit_NK]
    return [tokens[a:b] for a, b in zip(corpus.start, corpus.start[1:], strict=False)]


@pytest.mark.parametrize("case", TOKENS, ids=[ascii(case["token"]) for case in TOKENS])
def test_a_golden_token_has_its_hashes_as_ever(case: dict[str, Any]) -> None:
    assert features.word_hashes([case["token"]], 4).tolist() == [case["words"]]
    for sizes, hashes in case["ngrams"].items():
        config = FeatureConfig(ngram_sizes=tuple(int(n) for n in sizes.split(",")))
        assert existing_ngrams(case["token"], config) == hashes


@pytest.mark.parametrize("case", GOLDEN["bigrams"], ids=[ascii(tuple(c["tokens"])) for c in GOLDEN["bigrams"]])
def test_a_golden_bigram_has_its_hash_as_ever(case: dict[str, Any]) -> None:
    left, right = features.word_hashes(case["tokens"], 1)
    assert features.bigram_hashes(left, right).tolist() == [case["hash"]]


def test_the_hash_behind_the_last_token_is_as_ever() -> None:
    assert features.end_hash() == GOLDEN["end"]
    (last,) = features.word_hashes(["refund"], 1)
    assert features.bigram_hashes(last, np.array([features.end_hash()], np.uint32)).tolist() == [GOLDEN["refund, end"]]


def test_the_marks_around_a_token_are_as_ever() -> None:
    assert GOLDEN["START"] == features.START
    assert GOLDEN["END"] == features.END


def test_no_code_point_but_the_space_has_the_hash_of_the_end_mark() -> None:
    # The graph tells where a token ends by this very number, so no character of a token may have it.
    points = [c for c in range(0x110000) if not 0xD800 <= c <= 0xDFFF]
    same = [c for c in points if mmh3.hash(chr(c), features.CHARACTER_SEED, signed=False) == features.END]
    assert same == [ord(features.PADDING)]


def test_no_token_looks_like_padding() -> None:
    assert tokenizer.tokenize(f"a{features.PADDING}b{features.PADDING * 3}") == ["a", "b"]


@given(st.lists(st.text(min_size=1, max_size=20), min_size=1, max_size=5), st.sampled_from(CONFIGS))
@settings(deadline=None, max_examples=200)
def test_ngrams_of_many_tokens_are_those_of_each_by_the_plain_rule(tokens: list[str], config: FeatureConfig) -> None:
    hashes, exist = features.ngram_hashes(tokens, config)
    assert [row[real].tolist() for row, real in zip(hashes, exist, strict=True)] == [
        plain_ngrams(token, config) for token in tokens
    ]


def test_ngrams_look_at_the_first_characters_and_at_the_end_mark_behind_them() -> None:
    config = FeatureConfig(ngram_sizes=(3,))
    assert len(existing_ngrams("abcdefghijkl", config)) == 12
    assert existing_ngrams("abcdefghijklm", config) == existing_ngrams("abcdefghijkl", config)
    assert existing_ngrams("abcdefghijkm", config) != existing_ngrams("abcdefghijkl", config)


@pytest.mark.parametrize("token", ["a", "!", "\u6771", "\U0001f469"])
def test_a_token_of_one_character_has_no_ngrams(token: str) -> None:
    assert not existing_ngrams(token, FeatureConfig(ngram_sizes=(2, 3)))


@pytest.mark.parametrize("config", CONFIGS, ids=CONFIG_NAMES)
@given(texts=texts_strategy, max_tokens=st.sampled_from([1, 3, 64]))
@settings(deadline=None, max_examples=60)
def test_the_graph_and_training_read_the_same_rows(config: FeatureConfig, texts: list[str], max_tokens: int) -> None:
    expected = [plain_rows(text, config, max_tokens) for text in texts]
    assert graph_rows(texts, config, max_tokens) == expected
    assert twin_rows(texts, config, max_tokens) == expected


@pytest.mark.parametrize("config", CONFIGS, ids=CONFIG_NAMES)
@pytest.mark.parametrize("text", ["", "a", "ab", "ab " + "x" * 40, "one two " * 50], ids=ascii)
def test_the_graph_reads_a_text_alone_as_training_does(config: FeatureConfig, text: str) -> None:
    assert graph_rows([text], config, 64) == [plain_rows(text, config, 64)] == twin_rows([text], config, 64)


def test_a_cut_text_is_a_short_one_without_the_bigram_of_its_end() -> None:
    config = FeatureConfig(ngram_sizes=(3, 5))
    ((cut,), (short,)) = graph_rows(["one two three"], config, 2), graph_rows(["one two"], config, 3)
    assert cut[0] == short[0]
    assert set(cut[1]) < set(short[1])
    assert len(cut[1]) == len(short[1]) - 1


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"word_hashes": 0}, r"word_hashes must be 1 to 4, not 0\."),
        ({"word_hashes": 5}, r"word_hashes must be 1 to 4, not 5\."),
        ({"ngram_sizes": (1,)}, r"n-gram sizes .* from 2 to 8 in rising order, not \(1,\)\."),
        ({"ngram_sizes": (9,)}, r"n-gram sizes .* not \(9,\)\."),
        ({"ngram_sizes": (5, 3)}, r"n-gram sizes .* not \(5, 3\)\."),
        ({"ngram_sizes": (3, 3)}, r"n-gram sizes .* not \(3, 3\)\."),
        ({"max_chars": 1}, r"max_chars must be 2 to 1000, not 1\."),
        ({"max_chars": 1001}, r"max_chars must be 2 to 1000, not 1001\."),
    ],
    ids=ascii,
)
def test_a_bad_value_is_named_in_the_error(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        FeatureConfig(**fields)


def test_a_configuration_survives_json() -> None:
    config = FeatureConfig(word_hashes=2, bigrams=False, ngram_sizes=(3, 5), max_chars=9)
    fields = {"word_hashes": 2, "bigrams": False, "ngram_sizes": [3, 5], "max_chars": 9}
    assert FeatureConfig.from_json(json.loads(json.dumps(fields))) == config
