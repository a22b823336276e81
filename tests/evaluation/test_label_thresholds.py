"""Thresholds of labels that reach a precision or a recall, worked by hand."""

from typing import Any

import numpy as np
import pytest

from textcls import ConfigError
from textcls.evaluation.label_set_evaluation import FEW_ROWS, choose
from textcls.evaluation.label_thresholds import Goal, counted, reaching

# Precision from the top: 1, 1, 2/3, 3/4, 3/5.
FALLING = np.array([0.9, 0.8, 0.7, 0.6, 0.5])
RIGHT = np.array([1.0, 1, 0, 1, 0])


@pytest.mark.parametrize(("share", "threshold"), [(0.9, 0.75), (0.75, 0.55), (0.7, 0.55), (0.6, 0.2)])
def test_a_precision_is_reached_by_the_lowest_threshold_that_does(share: float, threshold: float) -> None:
    order = np.array([3, 0, 4, 1, 2])
    assert reaching(Goal("precision", share), FALLING, RIGHT) == pytest.approx(threshold)
    assert reaching(Goal("precision", share), FALLING[order], RIGHT[order]) == pytest.approx(threshold)


@pytest.mark.parametrize(("share", "threshold"), [(0.3, 0.85), (0.5, 0.75), (2 / 3, 0.75), (0.7, 0.55), (1.0, 0.55)])
def test_a_recall_is_reached_by_the_highest_threshold_that_does(share: float, threshold: float) -> None:
    assert reaching(Goal("recall", share), FALLING, RIGHT) == pytest.approx(threshold)


def test_rows_of_one_probability_stand_or_fall_together() -> None:
    tied = np.array([0.9, 0.8, 0.8 - 1e-9, 0.3])
    assert reaching(Goal("precision", 0.9), tied, np.array([1.0, 1, 0, 0])) == pytest.approx(0.85)
    assert reaching(Goal("recall", 0.5), tied, np.array([0.0, 1, 0, 0])) == pytest.approx(0.6, abs=0.1)


def test_where_nothing_reaches_the_goal_there_is_no_threshold() -> None:
    assert reaching(Goal("precision", 0.9), np.array([0.9, 0.8]), np.array([0.0, 1])) is None
    for goal in (Goal("precision", 0.1), Goal("recall", 0.1)):
        assert reaching(goal, FALLING, np.zeros(5)) is None
        assert reaching(goal, np.zeros(0), np.zeros(0)) is None


def test_a_row_counts_partly_as_it_is_and_partly_as_its_probability_expects() -> None:
    np.testing.assert_allclose(counted(np.array([0.5, 0.2]), np.array([1.0, 0]), 0.25), [0.875, 0.05])


def test_many_rows_choose_a_threshold_by_themselves_and_few_lean_on_their_probabilities() -> None:
    many = np.tile(FALLING, FEW_ROWS)[:, None]
    chosen = choose(Goal("precision", 0.75), many, np.tile(RIGHT, FEW_ROWS)[:, None].astype(bool))
    assert chosen.thresholds == pytest.approx((0.55,))
    assert (chosen.few, chosen.unreached) == ((), ())
    # Alone these three rows would say 0.55 as well; that the last two are as good as their probabilities says 0.2.
    few = choose(Goal("precision", 0.65), FALLING[:, None], RIGHT[:, None].astype(bool))
    assert few.thresholds == pytest.approx((0.2,))
    assert (few.few, few.unreached) == ((0,), ())


def test_a_label_that_never_reaches_the_goal_is_assigned_where_its_probability_promises_it() -> None:
    probabilities = np.array([[0.9, 0.1]] * FEW_ROWS + [[0.95, 0.2]])
    gold = np.array([[False, True]] * FEW_ROWS + [[False, False]])
    chosen = choose(Goal("precision", 0.99), probabilities, gold)
    assert chosen.thresholds == (0.99, 0.99)
    assert (chosen.few, chosen.unreached) == ((0,), (0, 1))
    assert Goal("recall", 0.99).promised == 0.5


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ((0.9, 0.9), "A target precision and a target recall each choose the thresholds; give one of them."),
        ((0, None), "A target precision is a number above 0 and up to 1, not 0."),
        ((None, 1.5), "A target recall is a number above 0 and up to 1, not 1.5."),
    ],
)
def test_goals_that_make_no_sense_are_refused(given: Any, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        Goal.of(*given)


def test_without_a_share_there_is_no_goal() -> None:
    assert Goal.of(None, None) is None
    assert Goal.of(0.5, None) == Goal("precision", 0.5)
    assert Goal.of(None, 0.5) == Goal("recall", 0.5)
