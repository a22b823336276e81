"""Rows that a model has learned from are known again, whatever their order, their number, and what stands beside."""

import math
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from textcls import ArtifactError
from textcls.evaluation.learned_rows import LearnedRows
from textcls.model.learned_texts import KEPT, LearnedTexts, hash_of


def share(training: Sequence[str], rows: Sequence[str]) -> float:
    """Which share of rows is said to be some of a training."""
    return counted({"learned_texts": LearnedTexts.of(training).to_json()}, rows)


def counted(training: dict[str, Any], rows: Sequence[str]) -> float:
    info: Any = SimpleNamespace(training=training, text_of=str)
    found = LearnedRows(info)
    assert [text for text, _ in found.over((text, "") for text in rows)] == [*rows]
    return found.share


def texts(first: int, last: int) -> list[str]:
    return [f"text number {i}" for i in range(first, last)]


@pytest.mark.parametrize("rows", [10, KEPT - 1, KEPT, 3 * KEPT, 40 * KEPT])
def test_all_rows_of_a_training_are_known_in_any_order(rows: int) -> None:
    training = texts(0, rows)
    assert share(training, training[::-1]) == 1
    assert share(training, texts(rows, 3 * rows)) == 0


def test_about_so_many_are_told_as_there_are() -> None:
    assert 0.4 < share(texts(0, 5000), texts(2500, 7500)) < 0.6
    assert share(texts(0, 100), texts(60, 140)) == 0.5
    # Some texts recur in any rows.
    assert share(texts(0, 5000), texts(4900, 7500)) == 0


def test_new_rows_whose_texts_recur_as_in_the_training_are_new() -> None:
    templates = texts(0, 200) * 10
    assert share([*templates, *texts(300, 600)], [*templates, *texts(1000, 1300)]) == 0
    # One text in half of the rows is one text.
    assert share(["thanks", *texts(0, 300)], ["thanks"] * 500 + texts(1000, 1500)) == 0


def test_the_very_rows_of_a_training_are_known_though_all_their_texts_recur() -> None:
    doubled = texts(0, 300) * 2
    training = {"learned_texts": LearnedTexts.of(doubled).to_json(), "rows": len(doubled)}
    assert counted(training, doubled[::-1]) == 1
    assert counted(training, doubled[:300]) == 0


def test_one_text_that_is_known_is_chance_and_spaces_around_it_do_not_count() -> None:
    assert share(texts(0, 10), ["text number 3"]) == 0
    assert share(texts(0, 10), [" text number 3\n", "text number 4 "]) == 1
    assert share(["\ud800", "b", "c"], ["\ud800", "c"]) == 1


def test_rows_are_known_in_any_case_and_with_any_spaces_but_of_files_of_an_older_version() -> None:
    training, shouted = texts(0, 100), [f" {text.upper().replace(' ', '  ')}" for text in texts(0, 100)]
    assert share(training, shouted) == 1
    exact = LearnedTexts(tuple(sorted(hash_of(text, folded=False) for text in training)), 0.0, folded=False)
    older = {"learned_texts": exact.to_json()}
    assert "folded" not in older["learned_texts"]
    assert (counted(older, training), counted(older, shouted)) == (1, 0)
    assert LearnedTexts.of(shouted).joined(exact) == LearnedTexts.of(training)


@given(st.lists(st.text(max_size=3), max_size=60), st.integers(1, 5))
def test_the_order_and_later_copies_of_rows_change_nothing_but_how_often_texts_recur(
    rows: list[str], times: int
) -> None:
    found = LearnedTexts.of(rows)
    assert LearnedTexts.of(rows[::-1]) == found
    again = LearnedTexts.of(rows * times)
    assert again.hashes == found.hashes == tuple(sorted(set(found.hashes)))
    assert again.recurring == (found.recurring if times == 1 else min(1.0, len(rows)))


def test_no_more_is_held_than_is_kept() -> None:
    found = LearnedTexts.of(f"{i}" for i in range(20 * KEPT))
    assert len(found.hashes) == KEPT
    assert LearnedTexts.of(f"{i}" for i in range(20 * KEPT - 1, -1, -1)) == found


def test_a_file_without_hashes_says_nothing_and_a_damaged_one_is_refused() -> None:
    assert counted({}, texts(0, 10)) == 0
    damaged: Any
    many = LearnedTexts(tuple(range(KEPT + 1)), 0.0).to_json()
    numbers = [{"hashes": "", "recurring": recurring} for recurring in (math.nan, -1, 10**400, "a", None)]
    for damaged in ({}, {"hashes": "?", "recurring": 0}, {"hashes": "AAA=", "recurring": 0}, [], many, *numbers):
        with pytest.raises(ArtifactError, match="What the model says of its training texts is damaged"):
            counted({"learned_texts": damaged}, [])
