"""Of a long text the sentences that decide are shown first, and the strongest token is always among them."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.explanations import opposed
from textcls.display.passages import LEAST, LONG, LONGEST, MOST, passages
from textcls.display.remarks import passages_line
from textcls.model.explanation import Explanation
from textcls.model.units import Unit


def spoken(*sentences: list[float]) -> Explanation:
    """An explanation of a text whose sentences have tokens of these values, the full stop with the last."""
    words, values = [], []
    for sentence in sentences:
        words += [*("Word" if not i else "word" for i in range(len(sentence) - 1)), "."]
        values += sentence
    return opposed(" ".join(words).replace(" .", "."), *values)


QUIET = [0.01] * 20


def test_a_text_that_is_not_long_is_shown_whole() -> None:
    explanation = spoken(*[QUIET] * (LONG // 20))
    assert passages(explanation, explanation.attribution()) == []
    assert passages_line(explanation, explanation.attribution()) == ""


def test_the_sentences_with_the_largest_sums_come_first_and_in_reading_order() -> None:
    loud, against = [0.5] * 20, [-0.4] * 20
    explanation = spoken(QUIET, against, QUIET, QUIET, loud, loud, QUIET, QUIET, QUIET)
    assert passages(explanation, explanation.attribution("good")) == [(20, 40), (80, 120)]
    assert passages_line(explanation, explanation.attribution("good")).startswith(
        "The sentences that decide: 60 of 180 tokens, 95."
    )


def test_the_strongest_token_is_shown_although_its_sentence_adds_up_to_nothing() -> None:
    loud = [0.2] * 20
    explanation = spoken(*[loud] * 12, [3.0, -3.0, *[0.0] * 18], *[QUIET] * 4)
    assert any(first <= 240 < behind for first, behind in passages(explanation, explanation.attribution("good")))


def test_what_adds_nothing_and_what_is_all_there_is_are_shown_whole() -> None:
    for explanation in (spoken(*[[0.0] * 20] * 20), spoken([0.1] * 151)):
        assert passages(explanation, explanation.attribution("good")) == []


@given(st.lists(st.integers(2, 200), min_size=1, max_size=30), st.integers(0, 2**32 - 1))
def test_they_are_apart_few_and_hold_the_strongest(sizes: list[int], seed: int) -> None:
    random = np.random.default_rng(seed)
    explanation = spoken(*(random.normal(size=size).tolist() for size in sizes))
    attribution = explanation.attribution("good")
    found = passages(explanation, attribution)
    if len(attribution.values) <= LONG:
        assert found == []
    if found:
        assert all(left[1] < right[0] for left, right in pairwise(found))
        assert sum(behind - first for first, behind in found) <= MOST * LONGEST
        strongest = int(np.abs(attribution.values).argmax())
        assert any(first <= strongest < behind for first, behind in found)
        assert min(LEAST, len(sizes)) >= 1


def test_of_a_long_text_by_words_the_sentences_that_decide_are_shown() -> None:
    by_token = spoken(*[[0.1, 0.1, 0.1]] * 200, [5.0, 5.0, 5.0])
    by_word = by_token.grouped("word")
    found = passages(by_word, by_word.attribution("good"))
    assert found
    assert found == passages(by_token, by_token.attribution("good"))


@pytest.mark.parametrize("unit", ["phrase", "sentence"])
def test_by_phrases_and_sentences_these_are_counted(unit: Unit) -> None:
    explanation = spoken(*[[0.1, 0.1, 0.1]] * 200, [5.0, 5.0, 5.0]).grouped(unit)
    attribution = explanation.attribution("good")
    assert len(attribution.values) == 201
    assert (200, 201) in passages(explanation, attribution)
