"""Newton's method for the weights of views, beside a search that knows no derivatives."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import minimize

from textcls_training.fit import calibration, label_set_calibration
from textcls_training.fit.view_weights import LOG_RANGE, Slopes, fit_weights
from textcls_training.models.calibration import log_softmax

Float64 = NDArray[np.float64]
Loss = Callable[[Float64], Slopes]


def a_loss(views: int, rows: int = 200, labels: int = 4) -> Loss:
    """The loss of calibration, of random logits and labels that the first view knows something of."""
    rng = np.random.default_rng(views)
    logits_VRC = rng.normal(0, 2, (views, rows, labels))
    target_RC = np.eye(labels)[(logits_VRC[0] + rng.gumbel(size=(rows, labels))).argmax(1)]
    return lambda weight_V: calibration._loss_of_block(logits_VRC, target_RC, weight_V)


def captured(monkeypatch: pytest.MonkeyPatch) -> Loss:
    """The loss that label sets are fitted by."""
    found = []

    def fit(loss: Loss, views: int, *, shifted: bool) -> Float64:
        found.append(loss)
        return np.ones(views + shifted)

    monkeypatch.setattr(label_set_calibration, "fit_weights", fit)
    rng = np.random.default_rng(0)
    logits_VRC = rng.normal(0, 2, (2, 200, 5)).astype(np.float32)
    label_set_calibration.fit_ensemble(logits_VRC, (rng.random((200, 5)) < 0.3).astype(np.float32))
    return found[0]


def assert_slopes_are_right(loss: Loss, place: list[float]) -> None:
    place_P, tiny = np.array(place), 1e-5
    found = loss(place_P)
    for i, step_P in enumerate(np.eye(len(place)) * tiny):
        up, down = loss(place_P + step_P), loss(place_P - step_P)
        assert found.slope_P[i] == pytest.approx((up.value - down.value) / (2 * tiny), rel=1e-5)
        np.testing.assert_allclose(found.curvature_PP[i], (up.slope_P - down.slope_P) / (2 * tiny), rtol=1e-5)


def test_slope_and_curvature_of_one_label_equal_finite_differences() -> None:
    assert_slopes_are_right(a_loss(2), [0.4, 0.9])


def test_slope_and_curvature_of_label_sets_equal_finite_differences(monkeypatch: pytest.MonkeyPatch) -> None:
    assert_slopes_are_right(captured(monkeypatch), [0.4, 0.9, -0.7])


@pytest.mark.parametrize("views", [1, 2, 3])
def test_a_search_without_derivatives_finds_the_same_weights(views: int) -> None:
    loss = a_loss(views)

    def pulled(log_weight_V: Float64) -> float:
        return loss(np.exp(log_weight_V)).value + float(((log_weight_V - log_weight_V.mean()) ** 2).sum())

    options: Any = {"xatol": 1e-8, "fatol": 1e-10, "maxiter": 5000}
    found = minimize(pulled, np.zeros(views), method="Nelder-Mead", bounds=[LOG_RANGE] * views, options=options)
    np.testing.assert_allclose(fit_weights(loss, views), np.exp(found.x), rtol=1e-4)


def test_weights_stay_within_their_bounds_where_the_loss_falls_beyond_them() -> None:
    logits_RC = np.tile([5.0, -5.0], (100, 1))
    right, wrong = np.tile([1.0, 0.0], (100, 1)), np.tile([0.0, 1.0], (100, 1))
    low, high = np.exp(LOG_RANGE)
    assert fit_weights(lambda w: calibration._loss_of_block(logits_RC[None], wrong, w), 1)[0] == pytest.approx(low)
    weak_RC = logits_RC / 100
    assert fit_weights(lambda w: calibration._loss_of_block(weak_RC[None], right, w), 1)[0] == pytest.approx(high)


def test_views_that_say_nothing_keep_the_weights_that_they_began_with() -> None:
    silent_VRC, target_RC = np.zeros((2, 60, 3)), np.full((60, 3), 1 / 3)
    np.testing.assert_allclose(log_softmax(silent_VRC[0]), -np.log(3))
    np.testing.assert_allclose(fit_weights(lambda w: calibration._loss_of_block(silent_VRC, target_RC, w), 2), 0.5)


def test_a_shift_of_either_sign_is_found_beside_the_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    loss = captured(monkeypatch)

    def of_logarithms(place_P: Float64) -> float:
        return loss(np.array([*np.exp(place_P[:2]), place_P[2]])).value

    found = minimize(of_logarithms, np.zeros(3))
    weights = fit_weights(loss, 2, shifted=True)
    assert weights[2] == pytest.approx(found.x[2], abs=0.05)
    assert weights[2] < -0.5
