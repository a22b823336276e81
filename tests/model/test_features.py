"""The hashes of features: golden values, a plain form of the n-gram polynomial, and the graph of a saved model."""

import json
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import mmh3
import numpy as np
import onnxruntime
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper

from textcls.errors import ConfigError
from textcls.model import features, tokenizer
from textcls.model.features import FeatureConfig
from textcls_training.export import token_nodes
from textcls_training.export.builder import make_model
from textcls_training.export.token_nodes import StringGraphBuilder

GOLDEN: dict[str, Any] = json.loads(
    (Path(__file__).parent.parent / "golden" / "features_v1.json").read_text(encoding="utf-8")
)
TOKENS: list[dict[str, Any]] = GOLDEN["tokens"]
WRAP = 2**32

CONFIGS = (
    FeatureConfig(ngram_sizes=(3, 5)),
    FeatureConfig(ngram_sizes=(2, 4)),
    FeatureConfig(),
    FeatureConfig(bigrams=False),
    FeatureConfig(bigrams=False, ngram_sizes=(2, 3, 4, 5, 6), max_chars=5),
    FeatureConfig(ngram_sizes=(4,), max_chars=2),
    FeatureConfig(ngram_sizes=(7, 8), max_chars=20),
)
CONFIG_NAMES = [f"bigrams {c.bigrams}, {c.ngram_sizes} of {c.max_chars}" for c in CONFIGS]

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


class Hashes(NamedTuple):
    """What a text's tokens own: hashes of words, left and right bigrams (0 where unknown), n-grams."""

    words: list[int]
    left: list[int]
    right: list[int]
    ngrams: list[list[int]]


def plain_hashes(text: str, config: FeatureConfig, max_tokens: int) -> Hashes:
    """The hashes of each token of `text`, as the rule says it."""
    every = tokenizer.tokenize(text)
    tokens = every[:max_tokens]
    word = [mmh3.hash(token, 0, signed=False) for token in tokens]
    pairs = zip([features.START, *word], [*word, mmh3.hash(" ", 0, signed=False)], strict=True)
    bigram = [(a * features.BIGRAM_MULTIPLIER + b) % WRAP for a, b in pairs]
    if len(every) >= max_tokens:
        bigram[-1] = 0
    if not (config.bigrams and tokens):
        bigram = []
    return Hashes(word, bigram[:-1], bigram[1:], [plain_ngrams(token, config) for token in tokens])


@cache
def hash_graph(config: FeatureConfig, max_tokens: int) -> onnxruntime.InferenceSession:
    """The part of a saved model that makes hashes: text -> tokens, those of words and bigrams, n-grams, which exist."""
    g = StringGraphBuilder("front")
    tokens_1bt = token_nodes.token_strings(g, max_tokens)
    found = [tokens_1bt, token_nodes.word_hashes(g, tokens_1bt, config)]
    if config.ngram_sizes:
        flat = g.node("Reshape", tokens_1bt, g.integers(-1))
        found += token_nodes.ngram_hashes(g, flat, config)
    text = helper.make_tensor_value_info("text", TensorProto.STRING, ["batch"])
    kinds = (TensorProto.STRING, TensorProto.UINT32, TensorProto.UINT32, TensorProto.BOOL)
    outputs = [helper.make_tensor_value_info(name, kind, None) for name, kind in zip(found, kinds, strict=False)]
    graph = helper.make_graph(g.nodes, "hashes", [text], outputs, g.constants)
    return onnxruntime.InferenceSession(make_model(graph).SerializeToString(), providers=["CPUExecutionProvider"])


def graph_hashes(texts: Sequence[str], config: FeatureConfig, max_tokens: int) -> list[Hashes]:
    """The same as a saved model finds them."""
    given = np.array([tokenizer.clean(text) for text in texts], object)
    tokens, hashes, *ngrams = hash_graph(config, max_tokens).run(None, {"text": given})
    real = tokens[0] != features.PADDING
    grams: list[list[int]] = [[] for _ in range(real.size)]
    if ngrams:
        assert not ngrams[1][~real.ravel()].any()
        grams = [row[exist].tolist() for row, exist in zip(*ngrams, strict=True)]
    found = []
    for i, mask in enumerate(real):
        words, left, right = [kind[i][mask].tolist() for kind in hashes] + [[]] * (3 - len(hashes))
        own = grams[i * len(mask) : (i + 1) * len(mask)]
        found.append(Hashes(words, left, right, [gram for gram, is_real in zip(own, mask, strict=True) if is_real]))
    return found


@pytest.mark.parametrize("case", TOKENS, ids=[ascii(case["token"]) for case in TOKENS])
def test_a_golden_token_has_its_hashes_as_ever(case: dict[str, Any]) -> None:
    assert features.word_hashes([case["token"]]).tolist() == [case["word"]]
    for sizes, hashes in case["ngrams"].items():
        config = FeatureConfig(ngram_sizes=tuple(int(n) for n in sizes.split(",")))
        assert existing_ngrams(case["token"], config) == hashes


@pytest.mark.parametrize("case", GOLDEN["bigrams"], ids=[ascii(tuple(c["tokens"])) for c in GOLDEN["bigrams"]])
def test_a_golden_bigram_has_its_hash_as_ever(case: dict[str, Any]) -> None:
    word = features.word_hashes(case["tokens"])
    assert features.bigram_hashes(word[:1], word[1:]).tolist() == [case["hash"]]


def test_the_hash_behind_the_last_token_is_as_ever() -> None:
    assert features.end_hash() == GOLDEN["end"]
    last, end = features.word_hashes(["refund"]), np.array([features.end_hash()], np.uint32)
    assert features.bigram_hashes(last, end).tolist() == [GOLDEN["refund, end"]]


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
@settings(max_examples=200)
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
@settings(max_examples=60)
def test_the_graph_makes_the_hashes_of_the_rule(config: FeatureConfig, texts: list[str], max_tokens: int) -> None:
    assert graph_hashes(texts, config, max_tokens) == [plain_hashes(text, config, max_tokens) for text in texts]


@pytest.mark.parametrize("config", CONFIGS, ids=CONFIG_NAMES)
@pytest.mark.parametrize(
    "text", ["", "a", "ab", "ab " + "x" * 40, "one two " * 50, "end. ", " \t", "a\u3000"], ids=ascii
)
def test_the_graph_makes_the_hashes_of_a_text_alone(config: FeatureConfig, text: str) -> None:
    assert graph_hashes([text], config, 64) == [plain_hashes(text, config, 64)]


@given(st.lists(texts_of_words, min_size=1, max_size=5))
@settings(max_examples=60)
def test_behind_a_text_the_graph_sees_padding_alone(texts: list[str]) -> None:
    given_ = np.array([tokenizer.clean(text) for text in texts], object)
    ((tokens,),) = hash_graph(CONFIGS[2], 64).run(None, {"text": given_})[:1]
    for text, row in zip(texts, tokens.tolist(), strict=True):
        expected = tokenizer.tokenize(text)[:64]
        assert row[: len(expected)] == expected
        assert set(row[len(expected) :]) <= {features.PADDING}
        assert len(row) > len(expected) or len(expected) == 64


def test_a_cut_text_is_a_short_one_without_the_bigram_of_its_end() -> None:
    config = FeatureConfig(ngram_sizes=(3, 5))
    (cut,), (short,) = graph_hashes(["one two three"], config, 2), graph_hashes(["one two"], config, 3)
    assert cut.right[-1] == 0
    assert short.right[-1] != 0
    assert cut._replace(right=[]) == short._replace(right=[])
    assert cut.right[:-1] == short.right[:-1]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
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


def test_words_with_bigrams_and_words_with_ngrams_are_two_views() -> None:
    assert FeatureConfig(ngram_sizes=(3, 5), max_chars=9).views() == (
        FeatureConfig(max_chars=9),
        FeatureConfig(bigrams=False, ngram_sizes=(3, 5), max_chars=9),
    )
    assert FeatureConfig(bigrams=False, ngram_sizes=(4,)).views() == (
        FeatureConfig(bigrams=False),
        FeatureConfig(bigrams=False, ngram_sizes=(4,)),
    )


@pytest.mark.parametrize("bigrams", [True, False])
def test_without_ngrams_there_is_one_view(bigrams: bool) -> None:
    assert FeatureConfig(bigrams=bigrams).views() == (FeatureConfig(bigrams=bigrams),)


def test_a_configuration_survives_json() -> None:
    config = FeatureConfig(bigrams=False, ngram_sizes=(3, 5), max_chars=9)
    fields = {"bigrams": False, "ngram_sizes": [3, 5], "max_chars": 9}
    assert FeatureConfig.from_json(json.loads(json.dumps(fields))) == config
