"""Logistic regression on sentence vectors: its strength and its temperature fitted on rows that it has not seen.

Shapes: R rows, D width of a vector and one for the bias, C labels, S strengths.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax

from textcls_training.data.arrays import Float32, Float64, Int64
from textcls_training.fit import calibration

# Inverse weight decays, as scikit-learn's C; vectors have length 1.
STRENGTHS: Final = (1.0, 10.0, 100.0)
_MOST_STEPS: Final = 300


class LinearHead(NamedTuple):
    """A fitted head: logits = [x, 1] @ weight_DC, of which `temperature` makes honest probabilities."""

    weight_DC: Float64
    temperature: float
    strength: float

    def probabilities(self, x_RD: Float64) -> Float32:
        """Return what it answers to vectors without the bias [R, D - 1]: probabilities [R, C]."""
        return softmax(_with_bias(x_RD) @ self.weight_DC / self.temperature, axis=1).astype(np.float32)


def fit(x_RD: Float64, label_R: Int64, classes: int, masks: Sequence[NDArray[np.bool_]]) -> LinearHead:
    """Fit a head whose strength and temperature have the least cross-entropy on held-out rows.

    Args:
        x_RD: sentence vectors of length 1, without the bias.
        label_R: their labels.
        classes: how many labels there are.
        masks: the rows that are held out, of each split.
    """
    x_RD = _with_bias(x_RD)
    held_R = np.concatenate([np.flatnonzero(mask) for mask in masks] or [np.zeros(0, np.int64)])
    if not len(held_R):
        return LinearHead(_weights(x_RD, label_R, classes, STRENGTHS[1]), 1.0, STRENGTHS[1])
    logits_SRC = np.concatenate([_held_out(x_RD, label_R, classes, mask) for mask in masks], axis=1)
    found = [calibration.fit(logits_RC[None].astype(np.float32), label_R[held_R]) for logits_RC in logits_SRC]
    losses = [
        calibration.log_loss(logits_RC.astype(np.float32), label_R[held_R], fitted.temperature)
        for logits_RC, fitted in zip(logits_SRC, found, strict=True)
    ]
    best = int(np.argmin(losses))
    strength = STRENGTHS[best]
    return LinearHead(_weights(x_RD, label_R, classes, strength), found[best].temperature, strength)


def _with_bias(x_RD: Float64) -> Float64:
    return np.concatenate([x_RD, np.ones((len(x_RD), 1))], axis=1)


def _held_out(x_RD: Float64, label_R: Int64, classes: int, mask: NDArray[np.bool_]) -> Float64:
    """Return the logits [S, held-out rows, C] of each strength, learned from the other rows."""
    logits, weight_DC = [], None
    for strength in STRENGTHS:
        weight_DC = _weights(x_RD[~mask], label_R[~mask], classes, strength, weight_DC)
        logits.append(x_RD[mask] @ weight_DC)
    return np.stack(logits)


def _weights(x_RD: Float64, label_R: Int64, classes: int, strength: float, start_DC: Float64 | None = None) -> Float64:
    """Return the weights of least cross-entropy, summed over rows, plus |weights|^2 / (2 strength) but of the bias."""
    shape = (x_RD.shape[1], classes)
    one_hot_RC = np.eye(classes)[label_R]
    decay_D1 = np.full((shape[0], 1), 1 / strength)
    decay_D1[-1] = 1e-6  # else of all biases only the differences are determined

    def loss(flat: Float64) -> tuple[float, Float64]:
        weight_DC = flat.reshape(shape)
        logits_RC = x_RD @ weight_DC
        value = -(one_hot_RC * log_softmax(logits_RC, axis=1)).sum() + 0.5 * (decay_D1 * weight_DC**2).sum()
        slope_DC = x_RD.T @ (softmax(logits_RC, axis=1) - one_hot_RC) + decay_D1 * weight_DC
        return float(value), slope_DC.ravel()

    start = np.zeros(shape) if start_DC is None else start_DC
    found = minimize(loss, start.ravel(), jac=True, method="L-BFGS-B", options={"maxiter": _MOST_STEPS})
    return np.asarray(found.x).reshape(shape)
