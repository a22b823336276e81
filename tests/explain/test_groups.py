"""Two groups of texts compared: differences by hand, exact sums, what chance gives, and what it does not."""

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.command_line import read_rows
from textcls import Classifier, ConfigError, InputError, compare_groups
from textcls.model import tokenizer


@pytest.fixture(scope="module")
def texts(sample_path: Path) -> list[str]:
    return [row["text"] for row in read_rows(sample_path)]


def evidence_a_text(classifier: Classifier, texts: list[str], label: str, word: str | None = None) -> float:
    """What all words, or one of them, add to a text in the mean."""
    total = 0.0
    for explanation in classifier.explain(texts):
        for token, value in zip(explanation.tokens, explanation.evidence(label).tolist(), strict=True):
            total += value * (word is None or tokenizer.lower(token.text) == word)
    return total / len(texts)


def test_a_difference_is_that_of_what_a_word_adds_to_a_text_in_the_mean(
    classifier: Classifier, texts: list[str]
) -> None:
    first = [f"Refund, please: {text}" for text in texts[:100]]
    second = texts[100:300]
    found = compare_groups(classifier, first, second, labels=["billing", "returns"])
    assert (found.first, found.second, found.mirrored) == (100, 200, False)
    for label in found.labels:
        by_hand = evidence_a_text(classifier, first, label.label) - evidence_a_text(classifier, second, label.label)
        assert label.difference == pytest.approx(by_hand, abs=1e-4)
        terms = {term.text: term for term in (*label.more, *label.less)}
        for word in ("refund", "please"):
            by_hand = evidence_a_text(classifier, first, label.label, word)
            by_hand -= evidence_a_text(classifier, second, label.label, word)
            assert terms[word].difference == pytest.approx(by_hand, abs=1e-5)
            assert terms[word].in_first == 1.0
            assert terms[word].in_second == sum(word in tokenizer.tokenize(text)[:64] for text in second) / 200
        answered = [answer.label == label.label for answer in classifier.predict(first)]
        assert label.answered_first == np.mean(answered)


def test_the_same_texts_and_halves_by_chance_have_no_differences(classifier: Classifier, texts: list[str]) -> None:
    assert all(not label.more + label.less for label in compare_groups(classifier, texts, texts).labels)
    shuffled = random.Random(7).sample(texts, len(texts))
    halves = compare_groups(classifier, shuffled[:437], shuffled[437:])
    assert halves.words > 100
    assert sum(bool(label.more + label.less) for label in halves.labels) <= 1


def test_a_word_of_few_texts_is_not_compared(classifier: Classifier, texts: list[str]) -> None:
    first = [f"{text} zyx" if i < 9 else text for i, text in enumerate(texts[:300])]
    found = compare_groups(classifier, first, texts[300:600], top=999)
    assert "zyx" not in {term.text for label in found.labels for term in (*label.more, *label.less)}


def test_groups_without_texts_and_labels_that_are_none_are_refused(classifier: Classifier) -> None:
    with pytest.raises(InputError, match="The second group has no texts"):
        compare_groups(classifier, ["one"], [])
    with pytest.raises(ConfigError, match="no label 'weather'"):
        compare_groups(classifier, ["one"], ["two"], labels=["weather"])


def test_texts_of_several_labels_are_compared_by_what_is_assigned(several_labels: Classifier) -> None:
    first, second = ["my card was charged twice"] * 20, ["where is my parcel"] * 20
    found = compare_groups(several_labels, first, second)
    assigned = set(several_labels.predict(first[0]).assigned)
    assert {label.label for label in found.labels if label.answered_first} == assigned
    assert any(label.more for label in found.labels)


def test_two_groups_turned_round_are_the_mirror_image(classifier: Classifier) -> None:
    first, second = ["refund please"] * 15 + ["where is it"] * 45, ["where is it"] * 60
    one, other = (
        compare_groups(classifier, *groups, labels=["returns"]) for groups in ((first, second), (second, first))
    )
    assert one.words == other.words == 5
    assert "refund" in {term.text for term in one.labels[0].more}
    mirrored = [(term.text, -term.difference) for term in one.labels[0].more]
    assert [(term.text, term.difference) for term in other.labels[0].less] == mirrored


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("hello", "The texts are one string"),
        ({"a": 1}, "A dict is not a sequence of texts"),
        ({"a", "b"}, "A set has no order"),
        (None, "The texts are not a sequence but NoneType"),
    ],
)
def test_what_is_no_group_of_texts_is_refused(classifier: Classifier, given: Any, said: str) -> None:
    with pytest.raises(InputError, match=said):
        compare_groups(classifier, given, ["one"])
    with pytest.raises(ConfigError, match="top must be a whole number from 1, not -1"):
        compare_groups(classifier, ["one"], ["two"], top=-1)


def test_groups_differ_by_words_also_where_letters_stand_without_spaces(classifier: Classifier) -> None:
    assert compare_groups(classifier, ["ช่วยลดความเสี่ยง"] * 12, ["my card was charged"] * 12).words == 8
