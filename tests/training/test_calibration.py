"""The temperature."""

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from textcls_training import calibration
from textcls_training.calibration import fit_temperature, log_loss


def sampled(temperature: float, rows: int = 4000) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Logits, and labels drawn from softmax(logits / temperature)."""
    rng = np.random.default_rng(0)
    logits = rng.normal(0, 3, (rows, 4)).astype(np.float32)
    noise = rng.gumbel(size=logits.shape)
    return logits, (logits / temperature + noise).argmax(1)


def test_log_loss_of_a_case_worked_by_hand() -> None:
    logits = np.array([[math.log(3), 0], [0, 0]], np.float32)
    expected = (math.log(4 / 3) + math.log(2)) / 2
    assert log_loss(logits, np.array([0, 1])) == pytest.approx(expected)
    # At temperature 1/2 the odds are squared: 9 to 1.
    assert log_loss(logits, np.array([0, 1]), 0.5) == pytest.approx((math.log(10 / 9) + math.log(2)) / 2)


@pytest.mark.parametrize("temperature", [0.5, 1.0, 3.0])
def test_the_temperature_that_made_the_labels_is_found_again(temperature: float) -> None:
    assert fit_temperature(*sampled(temperature)) == pytest.approx(temperature, rel=0.08)


def test_no_other_temperature_has_a_lower_loss() -> None:
    # Of many rows, where smoothing the targets hardly matters.
    logits, labels = sampled(2.0, rows=4000)
    best = fit_temperature(logits, labels)
    loss = log_loss(logits, labels, best)
    assert all(log_loss(logits, labels, best * factor) > loss for factor in (0.9, 0.97, 1.03, 1.1))


def test_rows_that_are_all_right_do_not_prove_certainty() -> None:
    labels = np.arange(100) % 2
    logits = np.where(labels[:, None] == np.arange(2), 2.0, -2.0).astype(np.float32)
    sharpened = logits / fit_temperature(logits, labels)
    surest = 1 / (1 + np.exp(-(sharpened[0, 0] - sharpened[0, 1])))
    assert surest == pytest.approx(101 / 102, abs=1e-3)


def test_too_few_rows_are_not_calibrated() -> None:
    logits, labels = sampled(3.0, rows=calibration.MIN_ROWS)
    assert fit_temperature(logits[:-1], labels[:-1]) == 1
    assert fit_temperature(logits, labels) != 1
    assert fit_temperature(logits[:0], labels[:0]) == 1
