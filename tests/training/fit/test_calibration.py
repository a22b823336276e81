"""What validation rows fit: ensemble weights and the temperature."""

import math
from collections.abc import Iterator, Sequence
from typing import Any, cast

import numpy as np
import pytest
from numpy.typing import NDArray

from textcls_training.data.arrays import Float32, Int64
from textcls_training.fit import calibration
from textcls_training.fit.calibration import log_losses
from textcls_training.fit.validation import LabelValidation
from textcls_training.models.calibration import Calibration

Float64 = NDArray[np.float64]


def sampled(*weights: float, rows: int = 4000) -> tuple[Float32, Int64]:
    """Logits of a view for each weight, and labels drawn from softmax(sum of weight * logits)."""
    rng = np.random.default_rng(0)
    logits_VRC = rng.normal(0, 3, (len(weights), rows, 4)).astype(np.float32)
    noise_RC = rng.gumbel(size=logits_VRC.shape[1:])
    return logits_VRC, (np.tensordot(weights, logits_VRC, 1) + noise_RC).argmax(1)


def weights_of(found: Calibration) -> Float64:
    return np.array(found.ensemble_weights) / found.temperature


def test_the_log_loss_of_a_case_worked_by_hand() -> None:
    logits = np.array([[math.log(3), 0], [0, 0]], np.float32)
    expected = (math.log(4 / 3) + math.log(2)) / 2
    assert log_losses(logits, np.array([0, 1])).mean() == pytest.approx(expected)
    # At temperature 1/2 the odds are squared: 9 to 1.
    assert log_losses(logits, np.array([0, 1]), 0.5).mean() == pytest.approx((math.log(10 / 9) + math.log(2)) / 2)


def test_views_together_are_their_sum_by_ensemble_weights() -> None:
    logits_VRC = np.array([[[4, 0]], [[0, 8]]], np.float32)
    combined_RC = Calibration((0.25, 0.75), 3.0).combine(logits_VRC)
    np.testing.assert_array_equal(combined_RC, [[1, 6]])
    assert combined_RC.dtype == np.float32


@pytest.mark.parametrize("temperature", [0.5, 1.0, 3.0])
def test_the_temperature_that_made_the_labels_is_found_again(temperature: float) -> None:
    found = calibration.fit(*sampled(1 / temperature))
    assert found.ensemble_weights == (1.0,)
    assert found.temperature == pytest.approx(temperature, rel=0.08)


@pytest.mark.parametrize("weights", [(0.5, 0.5), (0.9, 0.1), (0.2, 1.0), (0.3, 0.6, 0.1)], ids=str)
def test_the_weights_that_made_the_labels_are_found_again(weights: tuple[float, ...]) -> None:
    np.testing.assert_allclose(weights_of(calibration.fit(*sampled(*weights))), weights, rtol=0.1, atol=0.02)


def test_a_view_of_pure_noise_counts_for_nearly_nothing() -> None:
    assert calibration.fit(*sampled(0.6, 0.0)).ensemble_weights[1] < 0.05


@pytest.mark.parametrize("weights", [(0.5, 0.5), (1.0, -1.0), (0.0, 0.0), (-1.0,), (50.0, 0.0)], ids=str)
@pytest.mark.parametrize("rows", [0, 49, 50, 300])
def test_ensemble_weights_are_never_negative_and_sum_to_one(weights: tuple[float, ...], rows: int) -> None:
    found = calibration.fit(*sampled(*weights, rows=rows))
    assert len(found.ensemble_weights) == len(weights)
    assert min(found.ensemble_weights) >= 0
    assert sum(found.ensemble_weights) == pytest.approx(1)
    assert 0 < found.temperature < 100


def test_views_that_say_the_same_count_the_same() -> None:
    (logits_RC,), labels = sampled(0.5)
    found = calibration.fit(np.stack([logits_RC, logits_RC]), labels)
    assert found.ensemble_weights == pytest.approx((0.5, 0.5), abs=1e-3)
    assert found.temperature == pytest.approx(calibration.fit(logits_RC[None], labels).temperature, rel=1e-3)


@pytest.mark.parametrize("weights", [(0.5, 0.5), (0.9, 0.01), (0.0, 3.0)], ids=str)
def test_wherever_a_search_begins_it_ends_at_the_same_loss(weights: tuple[float, ...]) -> None:
    logits_VRC, labels = sampled(*weights)
    best = calibration.fit(logits_VRC, labels)
    for begun in (best, Calibration((0.5, 0.5), 20.0), Calibration((0.98, 0.02), 0.1)):
        found = calibration.fit(logits_VRC, labels, near=begun)
        losses = [log_losses(one.combine(logits_VRC), labels, one.temperature).mean() for one in (best, found)]
        assert losses[1] == pytest.approx(losses[0], rel=1e-4)


def test_validation_rows_choose_the_epoch_that_they_would_with_a_search_from_the_beginning_for_each(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    logits_VRC, labels = sampled(0.8, 0.2, rows=600)
    rng = np.random.default_rng(1)
    for worse in ((3.0, 1.0, 0.2, 0.5, 0.9), (3.0, 2.0, 1.0, 0.5, 0.2), (0.2, 0.2, 0.2, 3.0, 4.0)):
        by_epoch = [logits_VRC + rng.normal(0, noise, logits_VRC.shape).astype(np.float32) for noise in worse]
        begun, fit = list[Calibration | None](), calibration.fit

        def from_the_beginning(
            logits_VRC: Float32, labels: Int64, near: Calibration | None = None, *, fit: Any = fit, begun: Any = begun
        ) -> Calibration:
            begun.append(near)
            return cast(Calibration, fit(logits_VRC, labels))

        found = LabelValidation(labels).epoch(by_epoch)
        with monkeypatch.context() as patch:
            patch.setattr(calibration, "fit", from_the_beginning)
            assert LabelValidation(labels).epoch(by_epoch) == found
        assert [one is None for one in begun] == [True, *[False] * 4]


def test_what_is_kept_is_added_up_in_one_order_whatever_a_search_does(monkeypatch: pytest.MonkeyPatch) -> None:
    # That another order gives other last bits depends on the processor: what is looked at is how rows are parted.
    parted: list[int] = []
    parts = calibration._blocks

    def seen(rows: int, classes: int, numbers: int) -> Iterator[slice]:
        parted.append(numbers)
        return parts(rows, classes, numbers)

    monkeypatch.setattr(calibration, "_blocks", seen)
    logits_VRC, labels = sampled(0.9, 0.1, rows=1500)
    kept = calibration.fit(logits_VRC, labels)
    assert set(parted) == {calibration.BLOCK}
    parted.clear()
    calibration.fit(logits_VRC, labels, near=kept)
    assert set(parted) == {calibration.SMALL_BLOCK}


def test_no_other_weights_have_a_lower_loss() -> None:
    # Of many rows, where smoothing the targets hardly matters.
    logits_VRC, labels = sampled(0.4, 0.2)
    best_V = weights_of(calibration.fit(logits_VRC, labels))

    def loss(weight_V: Float64) -> float:
        return float(log_losses(np.tensordot(weight_V, logits_VRC, 1).astype(np.float32), labels).mean())

    for factors in ((0.9, 1), (1.1, 1), (1, 0.9), (1, 1.1), (0.95, 1.05), (1.05, 0.95), (0.95, 0.95), (1.05, 1.05)):
        assert loss(best_V * factors) > loss(best_V)


def test_rows_that_are_all_right_do_not_prove_certainty() -> None:
    labels = np.arange(100) % 2
    logits = np.where(labels[:, None] == np.arange(2), 2.0, -2.0).astype(np.float32)
    sharpened = logits / calibration.fit(logits[None], labels).temperature
    surest = 1 / (1 + np.exp(-(sharpened[0, 0] - sharpened[0, 1])))
    assert surest == pytest.approx(101 / 102, abs=1e-3)


@pytest.mark.parametrize("weights", [(0.3,), (0.3, 0.1)], ids=["one view", "two views"])
def test_too_few_rows_are_not_calibrated(weights: Sequence[float]) -> None:
    logits_VRC, labels = sampled(*weights, rows=calibration.MIN_ROWS)
    equal = Calibration((1 / len(weights),) * len(weights), 1.0)
    assert calibration.fit(logits_VRC[:, :-1], labels[:-1]) == equal
    assert calibration.fit(logits_VRC[:, :0], labels[:0]) == equal
    assert calibration.fit(logits_VRC, labels).temperature != 1


def test_rows_in_blocks_have_the_losses_and_the_calibration_of_all_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng()
    logits_VRC = rng.normal(0, 2, (2, 301, 7)).astype(np.float32)
    label_R = (logits_VRC[0] + rng.gumbel(size=(301, 7))).argmax(1)
    whole, losses_R = calibration.fit(logits_VRC, label_R), log_losses(logits_VRC[0], label_R, 1.5)
    monkeypatch.setattr(calibration, "BLOCK", 70)
    blocks = calibration.fit(logits_VRC, label_R)
    np.testing.assert_array_equal(log_losses(logits_VRC[0], label_R, 1.5), losses_R)
    assert blocks.ensemble_weights == pytest.approx(whole.ensemble_weights, rel=1e-6)
    assert blocks.temperature == pytest.approx(whole.temperature, rel=1e-6)
