"""Targets of rows with several labels as a sparse matrix."""

import numpy as np
import pytest

from textcls_training.data.label_matrix import LabelMatrix, end_to_end

NAMES = ["a", "b", "c"]
SETS = [{"c": 1.0, "a": 0.25}, {}, {"b": 0.5}, {"a": 1.0, "b": 1.0}]
DENSE = np.array([[0.25, 0, 1], [0, 0, 0], [0, 0.5, 0], [1, 1, 0]], np.float32)
MATRIX = LabelMatrix.of(SETS, NAMES)


def test_the_probability_of_each_label_stands_in_its_column_whatever_the_order_of_a_set() -> None:
    np.testing.assert_array_equal(MATRIX.dense(np.arange(4)), DENSE)
    np.testing.assert_array_equal(MATRIX.dense(np.array([3, 1, 3])), DENSE[[3, 1, 3]])
    assert (len(MATRIX), MATRIX.lengths().tolist()) == (4, [2, 0, 1, 2])


def test_a_label_that_is_more_probable_than_not_is_there() -> None:
    np.testing.assert_array_equal(MATRIX.gold(), DENSE >= 0.5)


def test_rows_are_selected_in_any_order_and_joined_again() -> None:
    part, other = MATRIX.select(np.array([2, 0])), MATRIX.select(np.array([1, 3]))
    np.testing.assert_array_equal(part.dense(np.arange(2)), DENSE[[2, 0]])
    np.testing.assert_array_equal(end_to_end([part, other]).dense(np.arange(4)), DENSE[[2, 0, 1, 3]])
    assert end_to_end([part, other]).classes == 3


def test_the_mass_of_a_label_is_its_probability_times_the_weight_of_each_row() -> None:
    np.testing.assert_allclose(MATRIX.mass(), [1.25, 1.5, 1])
    np.testing.assert_allclose(MATRIX.mass(np.array([2, 1, 4, 0], np.float32)), [0.5, 2, 2])


def test_a_row_is_dealt_out_by_its_rarest_label_and_one_without_by_a_number_of_its_own() -> None:
    # By mass: c 1, a 1.25, b 1.5.
    assert MATRIX.rarest().tolist() == [2, 3, 1, 0]


def test_no_rows_make_an_empty_matrix() -> None:
    empty = LabelMatrix.of([], NAMES)
    assert (len(empty), empty.dense(np.zeros(0, np.int64)).shape, empty.mass().tolist()) == (0, (0, 3), [0, 0, 0])


def test_a_label_without_a_number_is_none() -> None:
    with pytest.raises(KeyError, match="z"):
        LabelMatrix.of([{"z": 1.0}], NAMES)
