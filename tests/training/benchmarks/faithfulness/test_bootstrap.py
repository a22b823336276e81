import math

import numpy as np
import pytest

from faithfulness.bootstrap import Estimate, difference, estimate, f1_of_means, verdict


def column(*values: float) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    return np.array(values)[:, None]


def test_the_mean_leaves_out_what_is_not_defined() -> None:
    found = estimate(column(1, 2, math.nan, 3))
    assert (found.value, found.count) == (2, 3)
    assert found.low is not None
    assert found.high is not None
    assert 1 <= found.low < 2 < found.high <= 3


def test_no_interval_is_claimed_for_fewer_than_two_texts() -> None:
    assert estimate(column(0.5)) == Estimate(0.5, None, None, 1)
    assert estimate(column(math.nan)) == Estimate(None, None, None, 0)


def test_the_interval_of_a_mean_is_about_that_of_the_normal_distribution() -> None:
    values = np.random.default_rng(1).normal(size=(400, 1))
    found = estimate(values)
    assert found.low is not None
    assert found.high is not None
    half = 1.96 * float(values.std()) / 20
    assert (found.high - found.low) / 2 == pytest.approx(half, rel=0.15)


def test_the_same_seed_gives_the_same_interval() -> None:
    values = np.random.default_rng(1).normal(size=(30, 1))
    assert estimate(values, seed=5) == estimate(values, seed=5) != estimate(values, seed=6)


def test_differences_are_paired() -> None:
    # Values differ widely, their differences do not at all.
    one = np.random.default_rng(2).normal(size=(20, 1))
    found = difference(one + 0.25, one)
    assert (found.value, found.low, found.high) == pytest.approx((0.25, 0.25, 0.25))


def test_a_pair_is_left_out_if_either_side_is_not_defined() -> None:
    assert difference(column(1, math.nan, 3), column(1, 2, math.nan)).count == 1


def test_f1_is_of_the_mean_precision_and_the_mean_recall() -> None:
    assert f1_of_means(np.array([[1.0, 0.0], [0.5, 1.0]])) == pytest.approx(2 * 0.75 * 0.5 / 1.25)
    assert f1_of_means(np.zeros((2, 2))) == 0


@pytest.mark.parametrize(
    ("low", "high", "higher", "word"),
    [
        (0.1, 0.2, True, "better"),
        (0.1, 0.2, False, "worse"),
        (-0.2, -0.1, True, "worse"),
        (-0.2, -0.1, False, "better"),
        (-0.1, 0.1, True, "not worse"),
        (0.0, 0.0, True, "not worse"),
        (None, None, True, None),
    ],
)
def test_a_verdict_is_about_the_whole_interval(
    low: float | None, high: float | None, higher: bool, word: str | None
) -> None:
    assert verdict(Estimate(0.0, low, high, 9), higher) == word
