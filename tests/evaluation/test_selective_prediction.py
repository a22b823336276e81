"""The threshold for a target precision, worked out by hand, and beside all thresholds tried one by one."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from textcls import ConfigError
from textcls.evaluation.selective_prediction import SAME, OperatingPoint, at, choose

CONFIDENCE = np.array([0.6, 0.9, 0.8, 0.7, 0.95], np.float32)
RIGHT = np.array([False, True, False, True, True])


@pytest.mark.parametrize(
    ("target", "threshold", "accepted", "right"),
    [
        (1.0, 0.9, 2, 2),  # 0.95 and 0.9; between 0.8 and 0.9 lies 0.85, of one digit 0.8 and 0.9 are too near
        (0.75, 0.65, 4, 3),  # with 0.8 it is 2 of 3, with 0.7 again 3 of 4
        (0.7, 0.65, 4, 3),
        (0.6, 0.0, 5, 3),  # all rows
        (0.0, 0.0, 5, 3),
    ],
)
def test_the_lowest_threshold_that_reaches_the_target_is_taken(
    target: float, threshold: float, accepted: int, right: int
) -> None:
    found, reached = choose(target, CONFIDENCE, RIGHT)
    assert reached
    assert (found.accepted, found.right) == (accepted, right)
    assert found.threshold == pytest.approx(threshold, abs=0.06)
    assert found.coverage == accepted / 5


def test_rows_of_equal_confidence_stand_or_fall_together() -> None:
    confidence = np.array([0.9, 0.8, 0.8, 0.8 + SAME / 10, 0.5])
    right = np.array([True, True, True, False, True])
    found, reached = choose(1.0, confidence, right)
    assert (found.accepted, found.right, reached) == (1, 1, True)
    found, reached = choose(0.8, confidence, right)
    assert (found.accepted, found.right, found.threshold, reached) == (5, 4, 0.0, True)


def test_a_target_that_no_threshold_reaches_gives_the_best_that_one_does() -> None:
    right = np.array([True, True, True, True, False])  # the surest answer is wrong
    found, reached = choose(0.9, CONFIDENCE, right)
    assert not reached
    assert (found.accepted, found.right, found.threshold) == (5, 4, 0.0)
    found, reached = choose(0.1, CONFIDENCE, np.zeros(5, np.bool_))
    assert (found.accepted, found.precision, reached) == (5, 0.0, False)


def test_a_share_that_is_exactly_the_target_reaches_it() -> None:
    for rows in range(1, 60):
        confidence, right = np.full(rows, 0.5), np.arange(rows) < rows - 1
        assert choose((rows - 1) / rows, confidence, right)[1]
    assert choose(0.95, np.full(20, 0.5), np.arange(20) < 19)[1]


def test_the_threshold_is_short_and_well_between_the_rows_it_parts() -> None:
    confidence = np.array([0.83141, 0.83129, 0.2], np.float32)
    found, _ = choose(1.0, confidence, np.array([True, False, False]))
    assert found.threshold == 0.83135
    found, _ = choose(1.0, np.array([0.9, 0.2]), np.array([True, False]))
    assert found.threshold == 0.6


def test_the_bound_of_the_precision_is_that_of_clopper_and_pearson() -> None:
    # Of n answers that are all right, the bound p solves p^n = 0.05.
    assert OperatingPoint(0.5, 30, 20, 20).lower_bound() == pytest.approx(0.05 ** (1 / 20))
    # One answer of two: p solves 1 - (1 - p)^2 = 0.05.
    assert OperatingPoint(0.5, 30, 2, 1).lower_bound() == pytest.approx(1 - 0.95**0.5)
    assert OperatingPoint(0.5, 30, 2, 0).lower_bound() == 0
    assert OperatingPoint(0.5, 30, 0, 0).lower_bound() == 0


def test_without_answers_there_is_no_precision() -> None:
    found = at(0.99, CONFIDENCE, RIGHT)
    assert (found.accepted, found.coverage, found.precision) == (0, 0.0, None)
    assert found.as_json()["precision"] is None


@pytest.mark.parametrize("target", [-0.1, 1.1, float("nan")])
def test_a_target_that_is_no_share_is_refused(target: float) -> None:
    with pytest.raises(ConfigError, match="A target precision is a number from 0 to 1"):
        choose(target, CONFIDENCE, RIGHT)
    with pytest.raises(ConfigError, match="There are no rows to choose a threshold on"):
        choose(0.5, CONFIDENCE[:0], RIGHT[:0])


@given(st.lists(st.tuples(st.integers(1, 12), st.booleans()), min_size=1, max_size=30), st.integers(0, 20))
def test_no_other_threshold_reaches_the_target_with_more_rows(rows: list[tuple[int, bool]], twentieths: int) -> None:
    confidence = np.array([n / 13 for n, _ in rows], np.float32)
    right = np.array([yes for _, yes in rows])
    target = twentieths / 20
    found, reached = choose(target, confidence, right)
    tried = [at(float(c), confidence, right) for c in confidence]
    good = [one for one in tried if one.precision is not None and one.precision >= target]
    assert reached == bool(good)
    if good:
        assert found.accepted == max(one.accepted for one in good)
        assert found.precision is not None
        assert found.precision >= target
    else:
        assert found.precision == max(one.precision or 0.0 for one in tried)
