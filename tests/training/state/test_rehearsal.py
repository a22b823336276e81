"""Which rows a state keeps: a sample that depends on the rows alone."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from textcls_training.data.labelled_texts import LabelledTexts
from textcls_training.state.rehearsal import LEAST_OF_A_LABEL, NO_PART, Rehearsal, joined


def rows_of(first: int, last: int, labels: int = 3) -> LabelledTexts:
    return LabelledTexts(
        texts=[f"text {i}" for i in range(first, last)], labels=[f"l{i % labels}" for i in range(first, last)]
    )


def kept(rows: LabelledTexts, limit: int) -> Rehearsal:
    labels = np.array([int(label[1:]) for label in rows.labels], np.int64)
    return Rehearsal.of(rows, labels, np.full(len(labels), NO_PART), limit)


@settings(max_examples=25)
@given(st.integers(1, 400), st.integers(1, 400), st.integers(1, 200))
def test_a_sample_of_a_sample_and_new_rows_is_a_sample_of_all_rows(before: int, new: int, limit: int) -> None:
    first, second = rows_of(0, before), rows_of(before, before + new)
    again = kept(joined(kept(first, limit).rows, second), limit)
    assert set(again.rows.texts) == set(kept(joined(first, second), limit).rows.texts)


def test_all_rows_are_kept_in_their_order_up_to_the_limit_and_no_more_beyond() -> None:
    rows = rows_of(0, 50)
    whole, part = kept(rows, 50), kept(rows, 49)
    assert (whole.rows, whole.whole) == (rows, True)
    assert (len(part.rows.texts), part.whole) == (49, False)
    assert part.rows.texts == [text for text in rows.texts if text in set(part.rows.texts)]
    assert kept(rows, 0).rows.texts == []


def test_every_label_has_some_rows_in_a_sample() -> None:
    rows = rows_of(0, 3_000)
    rare = LabelledTexts(texts=[f"rare {i}" for i in range(LEAST_OF_A_LABEL)], labels=["l3"] * LEAST_OF_A_LABEL)
    found = kept(joined(rows, rare), 100).rows.labels
    assert len(found) == 100
    assert found.count("l3") == LEAST_OF_A_LABEL


def test_rows_come_back_from_their_arrays() -> None:
    several = LabelledTexts(texts=["a", "\ud800b", ""], label_sets=[{"x": 1.0}, {}, {"x": 0.5, "y": 1.0}])
    weighted = LabelledTexts(texts=["a", "b"], labels=["y", "x"], weights=[0.5, 2.0])
    for rows in (several, weighted):
        part = np.arange(len(rows.texts))
        found = Rehearsal.of_arrays(Rehearsal(rows, part, True).arrays(["x", "y"]), ["x", "y"], whole=True)
        assert found.rows == rows
        assert found.part.tolist() == part.tolist()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("text_start", [0, 5, 2, 6]),
        ("text_start", [1, 3, 4, 6]),
        ("text_start", [0, 2, 4, 5]),
        ("text_start", [0, 2, 4, 60]),
        ("text_start", []),
        ("label", [0, -1, 1]),
        ("label", [0, 2, 1]),
        ("label", [0, 1]),
        ("part", [0]),
        ("weight", [1.0]),
    ],
)
def test_arrays_that_no_rows_have_are_refused(name: str, value: list[float]) -> None:
    rows = LabelledTexts(texts=["ab", "cd", "ef"], labels=["x", "y", "x"])
    arrays = dict(Rehearsal(rows, np.arange(3), True).arrays(["x", "y"]))
    arrays[name] = np.array(value, np.float64 if name == "weight" else np.int64)
    with pytest.raises(ValueError, match=r"do not rise|a number of nothing|not as many"):
        Rehearsal.of_arrays(arrays, ["x", "y"], whole=True)


def test_sets_of_labels_that_no_rows_have_are_refused() -> None:
    rows = LabelledTexts(texts=["a", "b"], label_sets=[{"x": 1.0}, {"y": 1.0}])
    arrays = dict(Rehearsal(rows, np.arange(2), True).arrays(["x", "y"]))
    for name, value in (("set_start", [0, 3, 2]), ("set_label", [0, -1])):
        with pytest.raises(ValueError, match=r"do not rise|a number of nothing"):
            Rehearsal.of_arrays(arrays | {name: np.array(value)}, ["x", "y"], whole=True)
