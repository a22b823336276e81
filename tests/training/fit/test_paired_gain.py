"""Paired differences of losses."""

import numpy as np
import pytest
from scipy.stats import ttest_rel

from textcls_training.fit.paired_gain import PairedGain


def test_a_gain_is_as_many_standard_errors_as_the_paired_t_test_says() -> None:
    rng = np.random.default_rng(3)
    one_R, other_R = rng.random(40), rng.random(40) + 0.1
    found = PairedGain.of(one_R, other_R)
    assert found.nats / found.error == pytest.approx(ttest_rel(other_R, one_R).statistic)
    times = found.nats / found.error
    assert found.beyond(times - 0.01)
    assert not found.beyond(times + 0.01)


@pytest.mark.parametrize("rows", [0, 1])
def test_fewer_than_two_rows_prove_nothing(rows: int) -> None:
    assert not PairedGain.of(np.zeros(rows), np.ones(rows)).beyond(0.1)


def test_equal_losses_are_no_gain() -> None:
    assert not PairedGain.of(np.ones(5), np.ones(5)).beyond(0.0)
