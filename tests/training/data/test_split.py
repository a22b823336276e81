"""Which rows are held out: copies together, the same on every run, every label still taught."""

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from textcls_training.data import split
from textcls_training.data.arrays import Bools, Int64
from textcls_training.data.label_matrix import LabelMatrix
from textcls_training.data.split import hashes_of, masks_of


def validation_masks(texts: list[str], labels: Int64) -> Iterator[Bools]:
    return masks_of(hashes_of(texts), labels)


rows_strategy = st.lists(
    st.tuples(st.sampled_from([f"text number {i}" for i in range(12)]), st.integers(0, 3)), min_size=1, max_size=25
)


def many(rows: int) -> list[str]:
    return [f"message {i} of many" for i in range(rows)]


def alternating(rows: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.arange(rows, dtype=np.int64) % 2


@given(rows_strategy)
@settings(max_examples=300)
def test_copies_of_a_text_stay_on_one_side(rows: list[tuple[str, int]]) -> None:
    texts, labels = [text for text, _ in rows], np.array([label for _, label in rows], np.int64)
    assume(not split._recurs(hashes_of(texts)))
    for mask in validation_masks(texts, labels):
        held, kept = ({t for t, m in zip(texts, mask, strict=True) if m == side} for side in (True, False))
        assert not held & kept


def held_out_apart(texts: list[str]) -> bool:
    """Whether copies of a text stand on both sides of a split."""
    mask = next(validation_masks(texts, alternating(len(texts))))
    sides = ({text for text, held_out in zip(texts, mask, strict=True) if held_out == side} for side in (True, False))
    return bool(set.intersection(*sides))


def test_copies_are_split_up_where_texts_are_drawn_from_some_and_stay_together_where_a_file_was_doubled() -> None:
    draw = np.random.default_rng()
    drawn = [f"text {i}" for i in draw.integers(0, 150, 1500).tolist()]
    assert held_out_apart(drawn)
    assert not held_out_apart(many(300) * 4)
    assert not held_out_apart([*many(900), *(["some text", "another"] * 40)])  # Most later texts are new.
    assert not held_out_apart([f"text {i}" for i in range(300) for _ in range(3 + 2 * (i % 10 == 0))])  # Judges.


def test_of_several_labels_a_row_is_held_out_if_each_of_its_labels_is_taught_by_another() -> None:
    sets = [{"a": 1.0, "c": 1.0}, {"b": 1.0, "c": 1.0}] * 30 + [{"c": 1.0}, {"a": 1.0, "d": 1.0}]
    matrix = LabelMatrix.of(sets, "abcd")
    masks = list(masks_of(hashes_of(many(62)), matrix.rarest(), sets=matrix))
    assert np.stack(masks).sum(0).tolist() == [1] * 61 + [0]


def test_copies_of_few_templates_are_held_out_one_by_one() -> None:
    texts = [f"template number {i % 5}" for i in range(200)]
    masks = list(validation_masks(texts, alternating(200)))
    assert np.stack(masks).sum(0).tolist() == [1] * 200
    for mask in masks:
        assert {text for text, held_out in zip(texts, mask, strict=True) if not held_out} == set(texts)


def test_texts_with_the_same_tokens_are_copies() -> None:
    texts = [text for i in range(100) for text in (f"Message {i}, please", f"message  {i} , PLEASE ")]
    for mask in validation_masks(texts, np.zeros(200, np.int64)):
        assert (mask[::2] == mask[1::2]).all()


@given(rows_strategy)
@settings(max_examples=300)
def test_every_label_is_left_a_row_that_teaches_it(rows: list[tuple[str, int]]) -> None:
    texts, labels = [text for text, _ in rows], np.array([label for _, label in rows], np.int64)
    for mask in validation_masks(texts, labels):
        assert set(labels[~mask]) == set(labels)


@pytest.mark.parametrize("rows", [200, split.CROSS_FIT_BELOW + 100], ids=["few rows", "many rows"])
def test_the_order_of_the_rows_does_not_matter(rows: int) -> None:
    texts, labels = many(rows), alternating(rows)
    order = np.random.default_rng(0).permutation(rows)
    for mask, permuted in zip(
        validation_masks(texts, labels), validation_masks([texts[i] for i in order], labels[order]), strict=True
    ):
        assert (permuted == mask[order]).all()


def test_of_many_rows_a_tenth_is_held_out() -> None:
    rows = split.CROSS_FIT_BELOW
    (mask,) = validation_masks(many(rows), alternating(rows))
    assert 0.07 < mask.mean() < 0.13


def test_of_few_rows_each_fifth_is_held_out_in_turn() -> None:
    rows = split.CROSS_FIT_BELOW - 1
    masks = np.array(list(validation_masks(many(rows), alternating(rows))))
    assert len(masks) == 5
    assert (masks.sum(0) == 1).all()
    assert ((masks.mean(1) > 0.15) & (masks.mean(1) < 0.25)).all()


def test_a_rare_label_is_validated_too() -> None:
    labels = np.array([1] * 20 + [0] * 1980, np.int64)
    (mask,) = validation_masks(many(2000), labels)
    assert mask[:20].sum() == 2
    assert mask.sum() == 200


def test_of_very_many_labels_no_more_rows_are_held_out_than_their_numbers_have_room(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rows, labels = split.CROSS_FIT_BELOW, 500
    texts = [f"{text} {copy}" for text in many(rows // 2) for copy in ("once", "once")]
    (mask,) = validation_masks(texts, np.arange(rows) // 2 % labels)
    assert mask.sum() > 150
    monkeypatch.setattr(split, "MOST_VALIDATION_NUMBERS", 150 * labels)
    (fewer,) = validation_masks(texts, np.arange(rows) // 2 % labels)
    assert 140 <= fewer.sum() <= 150
    assert not (fewer & ~mask).any()
    assert (fewer[::2] == fewer[1::2]).all()


def test_of_very_many_labels_rows_are_held_out_also_where_one_text_is_most_of_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    labels = np.arange(2000) % 100
    monkeypatch.setattr(split, "MOST_VALIDATION_NUMBERS", 50 * 100)
    for copied in map(str, range(20)):
        (mask,) = validation_masks([copied] * 1000 + many(1000), labels)
        assert 30 <= mask.sum() <= 50


def test_the_split_is_as_ever() -> None:
    # A changed split would make every later report incomparable with the one before.
    masks = np.array(list(validation_masks(many(10), np.zeros(10, np.int64))))
    assert masks.argmax(0).tolist() == [1, 3, 0, 1, 3, 0, 2, 2, 4, 4]
