"""Unlabelled texts: a bounded sample without copies that depends on the texts alone, and somebody's probabilities."""

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from weakref import WeakSet

import numpy as np
import pytest

from tests.command_line import write_rows
from textcls.data import BadRows
from textcls.errors import ConfigError, InputError
from textcls_training.data.probabilities import of_mappings
from textcls_training.data.unlabelled import UnlabelledText, UnlabelledTexts
from textcls_training.data.unlabelled_files import read_unlabelled

TEXTS = [f"message {i} of many" for i in range(500)]
ANSWERED = [("text", "p_no", "p_yes"), ("good", "0.1", "0.9"), ("bad", "0.7", "0.3")]


def sample(texts: list[str], limit: int = 1000, labelled: list[str] | None = None) -> UnlabelledTexts:
    return UnlabelledTexts.sample(map(UnlabelledText, texts), limit, labelled or [])


def read(path: Path, pattern: str | None = "p_*", **more: Any) -> UnlabelledTexts:
    found, _ = read_unlabelled([path], ["text"], ["no", "yes"], [], limit=100, pattern=pattern, **more)
    return found


def test_the_sample_is_the_same_in_whatever_order_the_texts_come() -> None:
    shuffled = random.Random(0).sample(TEXTS, len(TEXTS))
    assert sample(shuffled, 100).texts == sample(TEXTS, 100).texts
    assert len(sample(TEXTS, 100).texts) == 100
    assert set(sample(TEXTS).texts) == set(TEXTS)


def test_a_smaller_sample_lies_inside_a_larger_one() -> None:
    assert sample(TEXTS, 300).texts[:100] == sample(TEXTS, 100).texts


def test_copies_of_labelled_texts_are_left_out_and_counted() -> None:
    found = sample([*TEXTS, "Refund,  please"], labelled=["refund , PLEASE", TEXTS[3]])
    assert (found.given, found.copies, len(found.texts)) == (501, 2, 499)
    assert not {"Refund,  please", TEXTS[3]} & set(found.texts)


def test_copies_among_the_texts_count_once_and_texts_without_a_word_not_at_all() -> None:
    found = sample(["One  text", "one text", "", " ", *TEXTS[:3], *TEXTS[:3]])
    assert sorted(found.texts) == sorted(["One  text", *TEXTS[:3]])
    assert (found.given, found.copies) == (10, 0)


def test_probabilities_stay_with_their_texts() -> None:
    rows = [UnlabelledText(text, [i / 500, 1 - i / 500]) for i, text in enumerate(TEXTS)]
    found = UnlabelledTexts.sample(rows, 50, [])
    assert found.probability_UC is not None
    expected = [TEXTS.index(text) / 500 for text in found.texts]
    np.testing.assert_allclose(found.probability_UC[:, 0], expected, rtol=1e-6)


def test_the_hash_is_of_texts_and_probabilities() -> None:
    hashes = {
        UnlabelledTexts(texts=texts, probability_UC=answers, given=2, copies=0).sha256()
        for texts, answers in (
            (["a", "b"], None),
            (["ab", ""], None),
            (["a", "b"], np.eye(2, dtype=np.float32)),
            (["a", "b"], 1 - np.eye(2, dtype=np.float32)),
        )
    }
    assert len(hashes) == 4


def test_columns_of_probabilities_are_found_by_their_pattern(tmp_path: Path) -> None:
    found = read(write_rows(tmp_path / "answered.csv", ANSWERED))
    assert found.probability_UC is not None
    answers = dict(zip(found.texts, found.probability_UC.tolist(), strict=True))
    assert answers["good"] == pytest.approx([0.1, 0.9])
    assert answers["bad"] == pytest.approx([0.7, 0.3])
    assert read(tmp_path / "answered.csv", None).probability_UC is None


def test_probabilities_that_were_rounded_are_made_to_sum_to_one(tmp_path: Path) -> None:
    found = read(write_rows(tmp_path / "a.csv", [ANSWERED[0], ("good", "0.10", "0.89")]))
    assert found.probability_UC is not None
    assert found.probability_UC.sum() == pytest.approx(1)


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (
            [("text", "p_no"), ("good", "1")],
            r"a\.csv has no column 'p_yes' for the label 'yes'; beside the text it has 'p_no'\.$",
        ),
        (
            [(*ANSWERED[0], "p_maybe"), ("good", "0.1", "0.9", "0")],
            r"a\.csv: the column 'p_maybe' is for a label that no training row has; remove it",
        ),
        ([ANSWERED[0], ("a", "0", "1"), ("b", "x", "1")], r"line 3: the probability in column 'p_no' is 'x'; write a"),
        ([ANSWERED[0], ("a", "-0.5", "1.5")], r"line 2: the probability in column 'p_no' is '-0.5'; write a number"),
        ([ANSWERED[0], ("a", "nan", "1")], r"line 2: the probability in column 'p_no' is 'nan'; write a number from 0"),
        ([ANSWERED[0], ("a", "0.9", "0.9")], r"line 2: the probabilities in 'p_no' to 'p_yes' add up to 1.8 and not"),
        ([("txt", "p_no", "p_yes"), ("a", "0", "1")], r"has no column 'text'; it has 'txt', 'p_no', 'p_yes'\. Did you"),
        ([ANSWERED[0]], r"a\.csv has no rows\.$"),
    ],
)
def test_a_file_that_cannot_be_used_is_refused_in_a_sentence(
    rows: list[tuple[str, ...]], said: str, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=said):
        read(write_rows(tmp_path / "a.csv", rows))


def test_rows_with_wrong_probabilities_are_left_out_on_request(tmp_path: Path) -> None:
    bad = BadRows(skip=True)
    found = read(write_rows(tmp_path / "a.csv", [*ANSWERED, ("odd", "2", "2")]), bad=bad)
    assert (sorted(found.texts), bad.count) == (["bad", "good"], 1)


@pytest.mark.parametrize("pattern", ["p_", "*_*"])
def test_a_pattern_has_one_place_for_the_label(pattern: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"^The pattern of the columns of probabilities must hold one \* for the"):
        read(write_rows(tmp_path / "a.csv", ANSWERED), pattern)


@pytest.mark.parametrize(
    ("row", "said"),
    [
        (
            {"no": 1.0},
            r"^probabilities\[1\] has no probability of 'yes'; give one of each label\.$",
        ),
        ({"no": 0.5, "yes": 0.5, "so": 0.0}, r"^probabilities\[1\] has the label 'so', which no training row has\.$"),
        ([0.5, 0.5], r"^probabilities\[1\] is not a mapping from labels to probabilities but list\.$"),
    ],
)
def test_mappings_are_of_the_labels(row: Any, said: str) -> None:
    assert of_mappings([{"yes": 0.75, "no": 0.75}], ["no", "yes"], several=True) == [[0.75, 0.75]]
    assert of_mappings([{"yes": 0.75, "no": 0.25}], ["no", "yes"]) == [[0.25, 0.75]]
    with pytest.raises(InputError, match=said):
        of_mappings([{"no": 0.5, "yes": 0.5}, row], ["no", "yes"])


def test_of_however_many_texts_no_more_are_held_than_are_kept() -> None:
    held: WeakSet[Text] = WeakSet()
    most = 0

    def stream() -> Iterator[UnlabelledText]:
        nonlocal most
        for i in range(5000):
            text = Text(f"message {i} of many")
            held.add(text)
            most = max(most, len(held))
            yield UnlabelledText(text, [0.5, 0.5])

    found = UnlabelledTexts.sample(stream(), 100, ["message 7 of many"])
    assert (found.given, found.copies, len(found.texts)) == (5000, 1, 100)
    assert most <= 100 + 5


class Text(str):
    """A string that says when nobody holds it any more."""

    __slots__ = ("__weakref__",)


def test_what_is_said_of_labelled_texts_is_kept_apart_and_belongs_to_the_same_words() -> None:
    rows = [UnlabelledText("A  cat", [0.9, 0.1]), UnlabelledText("a dog", [0.2, 0.8])]
    found = UnlabelledTexts.sample(rows, 10, ["a CAT", "a bird"])
    assert (found.texts, found.copies) == (["a dog"], 1)
    assert [*found.of_labelled.values()] == [[0.9, 0.1]]
    assert found.sha256() != UnlabelledTexts.sample(rows[1:], 10, ["a cat"]).sha256()
    assert not UnlabelledTexts.sample([UnlabelledText("a cat")], 10, ["a cat"]).of_labelled


def test_of_copies_with_other_answers_the_means_count_in_any_order() -> None:
    rows = [UnlabelledText(f"text {i % 7}", [i / 30, 1 - i / 30]) for i in range(30)]
    rows += [UnlabelledText("known", [0.25, 0.75]), UnlabelledText("known", [0.75, 0.25])]
    for limit in (100, 3):
        found = UnlabelledTexts.sample(rows, limit, ["known"])
        turned = UnlabelledTexts.sample(rows[::-1], limit, ["known"])
        assert found.texts == turned.texts
        assert found.probability_UC is not None
        assert turned.probability_UC is not None
        np.testing.assert_allclose(found.probability_UC, turned.probability_UC, rtol=1e-6)
        for text, answer in zip(found.texts, found.probability_UC[:, 0].tolist(), strict=True):
            said = [row.probabilities[0] for row in rows if row.text == text and row.probabilities]
            assert answer == pytest.approx(sum(said) / len(said), rel=1e-6)
        assert list(found.of_labelled.values()) == [[0.5, 0.5]]


def test_answers_to_texts_that_share_a_hash_are_not_mixed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("textcls_training.data.unlabelled.hash_of", lambda text: 7)
    rows = [UnlabelledText("one", [0.9, 0.1]), UnlabelledText("two", [0.1, 0.9]), UnlabelledText("One", [0.7, 0.3])]
    found = UnlabelledTexts.sample(rows, 10, [])
    assert found.texts == ["one"]
    assert found.probability_UC is not None
    np.testing.assert_allclose(found.probability_UC, [[0.8, 0.2]], rtol=1e-6)
