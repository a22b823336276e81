"""The weights of views that validation rows fit: Newton's method on a handful of numbers.

Whatever the loss is, it depends on the weighted sum of the views' logits, so it is convex in the weights w. What moves
is their logarithm, which keeps them above 0. With slope s and curvature H of the loss by w, those by log w are w s and
w H w + diag(w s); of the second term only what is positive is kept, as in Gauss-Newton, so that every step goes down
(compare Lin, Lin and Weng 2007, "A note on Platt's probabilistic outputs", section 4). Views are drawn together by the
weight of one row.

Shapes: V views, F of them free to move, R rows, C labels.
"""

from collections.abc import Callable
from typing import Final, NamedTuple

import numpy as np

from textcls_training.data.arrays import Float64

LOG_RANGE: Final = (-4.0, 3.0)
_STEPS, _HALVINGS, _GAIN = 50, 20, 1e-10


class Slopes(NamedTuple):
    """A loss at some weights: its value, its slope [V] and its curvature [V, V] there."""

    value: float
    slope_V: Float64
    curvature_VV: Float64


def fit_weights(loss: Callable[[Float64], Slopes], views: int) -> Float64:
    """Return the weights [V] of least loss, whose logarithms lie in `LOG_RANGE`.

    Args:
        loss: summed over rows, and its derivatives, at given weights.
        views: how many there are; they start alike, summing to 1.
    """
    log_weight_V = np.full(views, -np.log(views))
    now = _by_logarithm(loss, log_weight_V)
    for _ in range(_STEPS):
        step_V = _step(log_weight_V, now)
        for _ in range(_HALVINGS):
            next_V = np.clip(log_weight_V - step_V, *LOG_RANGE)
            then = _by_logarithm(loss, next_V)
            if then.value <= now.value:
                break
            step_V = step_V / 2
        else:
            break
        gain = now.value - then.value
        log_weight_V, now = next_V, then
        if gain <= _GAIN * max(1.0, abs(now.value)):
            break
    return np.asarray(np.exp(log_weight_V))


def products(one_VRC: Float64, weight_RC: Float64) -> Float64:
    """Return the weighted products of all pairs of views [V, V], whose order of sums no number of threads changes."""
    weighted_VRC = one_VRC * weight_RC
    return np.array([[float((one_RC * other_RC).sum()) for other_RC in one_VRC] for one_RC in weighted_VRC])


def _by_logarithm(loss: Callable[[Float64], Slopes], log_weight_V: Float64) -> Slopes:
    """Return the loss with its pull, and its slope and (positive) curvature by the logarithms of the weights."""
    weight_V = np.exp(log_weight_V)
    value, slope_V, curvature_VV = loss(weight_V)
    apart_V = log_weight_V - log_weight_V.mean()
    slope_V = weight_V * slope_V
    curvature_VV = np.outer(weight_V, weight_V) * curvature_VV + np.diag(np.maximum(slope_V, 0))
    pull_VV = 2 * (np.eye(len(weight_V)) - 1 / len(weight_V))
    return Slopes(value + float((apart_V**2).sum()), slope_V + 2 * apart_V, curvature_VV + pull_VV)


def _step(log_weight_V: Float64, now: Slopes) -> Float64:
    """Return Newton's step of the weights that are not held by a bound."""
    low, high = LOG_RANGE
    held_V = ((log_weight_V <= low) & (now.slope_V > 0)) | ((log_weight_V >= high) & (now.slope_V < 0))
    free_F = np.flatnonzero(~held_V)
    curvature_FF = now.curvature_VV[np.ix_(free_F, free_F)]
    # Views that say nothing have no curvature, and no slope either.
    curvature_FF = curvature_FF + 1e-9 * np.eye(len(free_F))
    step_V = np.zeros(len(log_weight_V))
    step_V[free_F] = np.linalg.solve(curvature_FF, now.slope_V[free_F])
    return step_V
