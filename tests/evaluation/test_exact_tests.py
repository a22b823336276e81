"""The exact tests are those of SciPy, whose module of statistics takes a second to import."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest, fisher_exact

from textcls.evaluation.comparison.paired import Agreement
from textcls.evaluation.reporting.slices import _fisher
from textcls.evaluation.selective_prediction import CONFIDENCE, OperatingPoint

COUNTS = st.one_of(st.integers(0, 12), st.integers(0, 3_000))


@given(COUNTS, COUNTS)
def test_an_uneven_split_of_differing_answers_is_as_probable_as_scipy_says(first: int, second: int) -> None:
    expected = binomtest(first, first + second).pvalue if first + second else 1.0
    assert Agreement(5, first, second, 5, 0).p_value() == pytest.approx(expected, rel=1e-9)


def test_an_even_split_of_millions_is_as_probable_as_scipy_says() -> None:
    for first, second in ((10_000_000, 10_000_003), (5_000_000, 5_010_000)):
        expected = binomtest(first, first + second).pvalue
        assert Agreement(5, first, second, 5, 0).p_value() == pytest.approx(expected, rel=1e-7)
    assert Agreement(5, 2**31, 5, 5, 0).p_value() == 0


@given(COUNTS.filter(bool), COUNTS)
def test_the_bound_of_a_precision_is_that_of_clopper_and_pearson(right: int, wrong: int) -> None:
    expected = binomtest(right, right + wrong, alternative="greater").proportion_ci(CONFIDENCE, "exact").low
    found = OperatingPoint(0.5, right + wrong, right + wrong, right).lower_bound()
    assert found == pytest.approx(expected, rel=1e-9)


@given(COUNTS, COUNTS, COUNTS, COUNTS)
def test_the_test_of_slices_is_that_of_fisher(hits: int, missed: int, other_hits: int, other_missed: int) -> None:
    expected = fisher_exact(np.array([[hits, missed], [other_hits, other_missed]])).pvalue
    assert _fisher(hits, hits + missed, other_hits, other_hits + other_missed) == pytest.approx(expected, rel=1e-7)
