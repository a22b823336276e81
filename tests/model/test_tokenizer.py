"""The token rule: golden vectors, a second form of the rule written as a loop, and the graph of a saved model."""

import json
import random
import unicodedata
from collections.abc import Callable, Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper

from tests.chance import THOROUGH
from textcls.model import _unicode, features, tokenizer
from textcls_training.export import token_nodes
from textcls_training.export.builder import make_model
from textcls_training.export.token_nodes import StringGraphBuilder

Cut = Callable[[Sequence[str]], list[list[str]]]

GOLDEN: list[dict[str, Any]] = json.loads(
    (Path(__file__).parent.parent / "golden" / "tokens_v1.json").read_text(encoding="utf-8")
)
CODE_POINTS = [c for c in range(0x110000) if not 0xD800 <= c <= 0xDFFF]
NO_LIMIT = 2**31
LOWER = dict(_unicode.LOWER)

# One or two of every kind of character that has ever mattered, so that they meet often.
TRICKY = (
    "aZ_09 .!'\t\n\r\x0b\x1c\x1f\x85\xa0\u1680\u2003\u2028\u202f\u3000\u200b\u200d\u2060\ufeff\0\x01\x7f"
    "\xe9\xdf\u1e9e\u0130\u0131\u03a3\u03c2\u212a\u212b\u01c5\u24b6\u2167\xb2\u0301\u0303\u0323\ufe0f\u20e3"
    "\u0915\u094d\u0947\u0e01\u0e31\u0e33\u0eaa\u0eb5\u179f\u17d2\u1019\u103a\u1039\u0645\u064e\u05e9\u05c1"
    "\u6771\u3005\u3006\u3007\U00020000\u304b\u3099\u30fc\uff70\uff9e\u30fb\uc548\u1112\u1161\u3105\ua000"
    "\U0001f469\U0001f3fd\U0001f1e9\U00010400\U0001d518\U000e0101\ue000\uffff\U0010ffff\ud800\udfff"
)
any_text = st.text(st.characters(exclude_categories=()), max_size=40)
tricky_text = st.text(st.sampled_from(TRICKY), max_size=40)


@cache
def code_points(table: str) -> frozenset[int]:
    """All members of one of the frozen tables of ranges."""
    return frozenset(c for first, last in getattr(_unicode, table) for c in range(first, last + 1))


def loop_tokens(text: str) -> list[str]:
    """The rule of DESIGN section 2, one character after the other."""
    tokens: list[str] = []
    open_run = ""
    for character in text.replace("\0", " "):
        point = LOWER.get(ord(character), ord(character))
        if 0xD800 <= point <= 0xDFFF:
            point = 0xFFFD
        goes_on = (open_run == "word" and point in code_points("WORD")) or (
            open_run == "unspaced" and point in code_points("MARK")
        )
        if goes_on:
            tokens[-1] += chr(point)
        elif point in code_points("SPACE"):
            open_run = ""
        else:
            tokens.append(chr(point))
            open_run = next((kind for kind in ("word", "unspaced") if point in code_points(kind.upper())), "")
    return tokens


@pytest.fixture(scope="module")
def graph_tokens() -> Cut:
    """Cut texts as the graph of a saved model does."""
    g = StringGraphBuilder("front")
    tokens = token_nodes.token_strings(g, NO_LIMIT)
    text, found = (helper.make_tensor_value_info(name, TensorProto.STRING, None) for name in ("text", tokens))
    graph = helper.make_graph(g.nodes, "tokens", [text], [found], g.constants)
    session = onnxruntime.InferenceSession(make_model(graph).SerializeToString(), providers=["CPUExecutionProvider"])

    def cut(texts: Sequence[str]) -> list[list[str]]:
        given = np.array([tokenizer.shortened(tokenizer.clean(text)) for text in texts], object)
        ((rows,),) = session.run(None, {"text": given})
        return [[t for t in row if t != features.PADDING] for row in rows.tolist()]

    return cut


@pytest.mark.parametrize("case", GOLDEN, ids=[case["name"] for case in GOLDEN])
def test_a_golden_text_is_cut_as_ever(case: dict[str, Any]) -> None:
    tokens = [token for token, _, _ in case["tokens"]]
    spans = [(start, end) for _, start, end in case["tokens"]]
    assert tokenizer.tokenize(case["text"]) == tokens
    assert list(tokenizer.token_spans(case["text"])) == spans


def test_the_graph_cuts_the_golden_texts_as_ever(graph_tokens: Cut) -> None:
    expected = [[token for token, _, _ in case["tokens"]] for case in GOLDEN]
    assert graph_tokens([case["text"] for case in GOLDEN]) == expected


@given(st.lists(st.one_of(any_text, tricky_text), min_size=1, max_size=8))
@settings(max_examples=300)
def test_graph_python_and_the_rule_as_a_loop_cut_any_text_alike(graph_tokens: Cut, texts: list[str]) -> None:
    expected = [loop_tokens(text) for text in texts]
    assert [tokenizer.tokenize(text) for text in texts] == expected
    assert graph_tokens(texts) == expected


LONG = st.sampled_from("aÉ\U00010400_7") | st.just("\u0e01\u0e31") | st.sampled_from([" ", ".", "\u6771", "\u0301"])
long_text = st.lists(st.tuples(LONG, st.sampled_from([1, 2, 127, 128, 129, 300])), max_size=8).map(
    lambda runs: "".join(character * count for character, count in runs)
)


@given(long_text)
@settings(max_examples=200)
def test_of_a_long_token_the_first_characters_are_read_and_no_token_is_lost(graph_tokens: Cut, text: str) -> None:
    expected = [token[: tokenizer.LONGEST] for token in loop_tokens(text)]
    assert tokenizer.tokenize(text) == expected
    assert graph_tokens([text]) == [expected]
    assert len(list(tokenizer.token_spans(text))) == len(expected)


def test_graph_and_python_agree_on_every_code_point_alone_and_among_neighbours(graph_tokens: Cut) -> None:
    # Alone, in a word, and behind a Han character: that tells word, unspaced, mark, space and other apart. A space
    # between the groups ends whatever went before.
    points = CODE_POINTS if THOROUGH else CODE_POINTS[random.randrange(5) :: 5]
    groups = [f"{chr(c)} x{chr(c)}x \u6771{chr(c)}" for c in points]
    for first in range(0, len(groups), 2**15):
        texts = [" ".join(groups[i : i + 64]) for i in range(first, min(first + 2**15, len(groups)), 64)]
        for text, tokens in zip(texts, graph_tokens(texts), strict=True):
            assert tokens == tokenizer.tokenize(text)


def test_lower_casing_never_changes_how_a_text_is_cut() -> None:
    for kind in ("WORD", "UNSPACED", "MARK", "SPACE"):
        members = code_points(kind)
        assert not [hex(c) for c, low in _unicode.LOWER if (c in members) != (low in members)]


def test_no_code_point_is_of_two_kinds_and_marks_belong_to_words() -> None:
    word, unspaced, mark, space = (code_points(kind) for kind in ("WORD", "UNSPACED", "MARK", "SPACE"))
    assert not word & unspaced
    assert not (word | unspaced) & space
    assert mark < word


def test_letters_marks_and_digits_are_those_of_unicode() -> None:
    # The tables are younger than any interpreter, so only what both know is compared.
    wordlike = code_points("WORD") | code_points("UNSPACED")
    known = [c for c in CODE_POINTS if unicodedata.category(chr(c)) not in ("Cn", "Co")]
    differ = [hex(c) for c in known if (c in wordlike) != (unicodedata.category(chr(c))[0] in "LMN" or c == ord("_"))]
    assert not differ


def test_white_space_is_what_python_calls_white_space() -> None:
    assert code_points("SPACE") == {c for c in CODE_POINTS if chr(c).isspace()}


def test_all_of_ascii_follows_the_general_rule_in_pairs() -> None:
    every = [chr(a) + chr(b) for a in range(128) for b in range(128)]
    assert [tokenizer.tokenize(text) for text in every] == [loop_tokens(text) for text in every]
    # The same texts beside a character that is not ASCII, which switches the fast path off.
    assert [tokenizer.tokenize(f"\u6771 {text}")[1:] for text in every] == [loop_tokens(text) for text in every]


@given(st.one_of(any_text, tricky_text))
@settings(max_examples=300)
def test_a_span_holds_the_token_as_it_was_written(text: str) -> None:
    spans = list(tokenizer.token_spans(text))
    assert [tokenizer.lower(tokenizer.clean(text[start:end])) for start, end in spans] == tokenizer.tokenize(text)
    assert all(start < end for start, end in spans)
    assert all(end <= start for (_, end), (start, _) in pairwise(spans))
    covered = {i for start, end in spans for i in range(start, end)}
    assert all(text[i].isspace() or text[i] == "\0" for i in range(len(text)) if i not in covered)


@given(st.one_of(any_text, tricky_text))
@settings(max_examples=300)
def test_cleaning_and_lower_casing_work_one_character_at_a_time(text: str) -> None:
    assert len(tokenizer.clean(text)) == len(tokenizer.lower(text)) == len(text)
    assert tokenizer.lower(text) == "".join(tokenizer.lower(character) for character in text)
    assert tokenizer.clean(text) == "".join(tokenizer.clean(character) for character in text)
    tokenizer.clean(text).encode("utf-8")  # raises if a surrogate is left


def test_a_nul_is_read_as_one_space_and_moves_no_offset() -> None:
    assert tokenizer.clean("a\0\0b") == "a  b"
    assert list(tokenizer.token_spans("a\0\0b")) == [(0, 1), (3, 4)]


def test_an_unpaired_surrogate_is_read_as_the_replacement_character() -> None:
    assert tokenizer.clean("x\ud83dy\ude00") == "x\ufffdy\ufffd"
    assert tokenizer.tokenize("x\ud83dy") == ["x", "\ufffd", "y"]


@pytest.mark.parametrize(
    ("text", "lowered"),
    [
        ("\u0130STANBUL", "istanbul"),
        ("\u03a3\u039f\u03a3", "\u03c3\u03bf\u03c3"),
        ("STRA\u1e9eE \xdf", "stra\xdfe \xdf"),
        ("\u212a\u212b\U00010400", "k\xe5\U00010428"),
        ("ABC xyz", "abc xyz"),
    ],
    ids=["dotted I", "no final sigma", "sharp s", "letterlike and astral", "ASCII"],
)
def test_lower_casing_knows_no_neighbours(text: str, lowered: str) -> None:
    assert tokenizer.lower(text) == lowered


@pytest.mark.parametrize("limit", [0, 1, 3, 4, 5, 99])
def test_a_limit_keeps_the_first_spans(limit: int) -> None:
    assert list(tokenizer.token_spans("one two, three", limit)) == [(0, 3), (4, 7), (7, 8), (9, 14)][:limit]


@pytest.mark.parametrize("text", ["a" * 100_000, "\u0915\u0947" * 50_000], ids=["ASCII", "Devanagari"])
def test_one_word_of_a_hundred_thousand_characters_is_one_token(graph_tokens: Cut, text: str) -> None:
    assert tokenizer.tokenize(text) == [text[: tokenizer.LONGEST]]
    assert list(tokenizer.token_spans(text)) == [(0, 100_000)]
    assert graph_tokens([text]) == [[text[: tokenizer.LONGEST]]]


@pytest.mark.parametrize(
    ("text", "tokens"),
    [("aB1 " * 25_000, ["ab1"] * 25_000), ("\u6771\u3099!." * 25_000, ["\u6771\u3099", "!", "."] * 25_000)],
    ids=["ASCII", "Han"],
)
def test_a_hundred_thousand_characters_of_many_tokens_are_all_cut(
    graph_tokens: Cut, text: str, tokens: list[str]
) -> None:
    assert len(text) == 100_000
    assert tokenizer.tokenize(text) == tokens
    assert sum(1 for _ in tokenizer.token_spans(text)) == len(tokens)
    assert graph_tokens([text]) == [tokens]


def test_texts_without_tokens_stand_beside_others_in_a_batch(graph_tokens: Cut) -> None:
    assert graph_tokens(["", " \u3000\0", "a", ""]) == [[], [], ["a"], []]
    assert graph_tokens(["", "\n"]) == [[], []]
