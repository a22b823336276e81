"""Fit the weights of views on validation rows: Newton's method on a handful of numbers.

Whatever the loss is, it depends on the weighted sum of the views' logits, so it is convex in the weights w. What moves
is their logarithm, which keeps them above 0. With slope s and curvature H of the loss by w, those by log w are w s and
w H w + diag(w s); of the second term only what is positive is kept, as in Gauss-Newton, so that every step goes down
(compare Lin, Lin and Weng 2007, "A note on Platt's probabilistic outputs", section 4). Views are drawn together by the
weight of one row.

Shapes: V views, P what moves: views, and a shift if there is one; F of it free to move, R rows, C labels.
"""

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

import numpy as np

from textcls_training.data.arrays import Float64

LOG_RANGE: Final = (-4.0, 3.0)
_STEPS, _HALVINGS, _GAIN = 50, 20, 1e-10


class Slopes(NamedTuple):
    """A loss at some weights: its value, its slope [P] and its curvature [P, P] there."""

    value: float
    slope_P: Float64
    curvature_PP: Float64


def fit_weights(
    loss: Callable[[Float64], Slopes],
    views: int,
    *,
    shifted: bool = False,
    near: Sequence[float] = (),
    gain: float = _GAIN,
) -> Float64:
    """Return the weights [V] with the least loss, whose logarithms lie in `LOG_RANGE`.

    Args:
        loss: returns the loss, summed over rows, and its derivatives, at given weights.
        views: the number of views.
        shifted: whether the loss has one more parameter, of either sign, that starts at 0 and is returned last.
        near: the initial weights; by default equal, summing to 1.
        gain: a step that lowers the loss by no more than this relative amount is the last one.
    """
    start_V = np.log(near) if near else np.full(views, -np.log(views))
    place_P = np.append(np.clip(start_V, *LOG_RANGE), np.zeros(int(shifted)))
    now = _by_logarithm(loss, place_P, views)
    for _ in range(_STEPS):
        step_P = _step(place_P, now, views)
        for _ in range(_HALVINGS):
            next_P = place_P - step_P
            next_P[:views] = np.clip(next_P[:views], *LOG_RANGE)
            then = _by_logarithm(loss, next_P, views)
            if then.value <= now.value:
                break
            step_P = step_P / 2
        else:
            break
        gained = now.value - then.value
        place_P, now = next_P, then
        if gained <= gain * max(1.0, abs(now.value)):
            break
    return np.append(np.exp(place_P[:views]), place_P[views:])


def products(one_VRC: Float64, weight_RC: Float64) -> Float64:
    """Return the weighted products of all pairs of views [V, V], summed in an order independent of threads."""
    weighted_VRC = one_VRC * weight_RC
    return np.array([[float((one_RC * other_RC).sum()) for other_RC in one_VRC] for one_RC in weighted_VRC])


def _by_logarithm(loss: Callable[[Float64], Slopes], place_P: Float64, views: int) -> Slopes:
    """Return the loss with its penalty, and its gradient and (positive) curvature by the logarithms of the weights."""
    weight_V, shift = np.exp(place_P[:views]), place_P[views:]
    value, slope_P, curvature_PP = loss(np.append(weight_V, shift))
    factor_P = np.append(weight_V, np.ones_like(shift))
    apart_P = np.append(place_P[:views] - place_P[:views].mean(), np.zeros_like(shift))
    slope_P = factor_P * slope_P
    curvature_PP = np.outer(factor_P, factor_P) * curvature_PP
    curvature_PP[:views, :views] += np.diag(np.maximum(slope_P[:views], 0))
    curvature_PP[:views, :views] += 2 * (np.eye(views) - 1 / views)
    return Slopes(value + float((apart_P**2).sum()), slope_P + 2 * apart_P, curvature_PP)


def _step(place_P: Float64, now: Slopes, views: int) -> Float64:
    """Return Newton's step for the parameters that are not at a bound."""
    low, high = LOG_RANGE
    held_P = ((place_P <= low) & (now.slope_P > 0)) | ((place_P >= high) & (now.slope_P < 0))
    held_P[views:] = False
    free_F = np.flatnonzero(~held_P)
    curvature_FF = now.curvature_PP[np.ix_(free_F, free_F)]
    # Views that say nothing have neither curvature nor slope.
    curvature_FF = curvature_FF + 1e-9 * np.eye(len(free_F))
    step_P = np.zeros(len(place_P))
    step_P[free_F] = np.linalg.solve(curvature_FF, now.slope_P[free_F])
    return step_P
