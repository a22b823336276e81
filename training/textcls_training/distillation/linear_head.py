"""Logistic regression on sentence vectors: its strength and its calibration fitted on rows that it has not seen.

Some dozens of such fits are made of a few hundred rows. What they share is done once: rows are written in their
principal components, of which there are no more than rows, and these are scaled so that the loss is about equally
curved along all (`_Problem`). A fit starts where the last one, of nearly the same rows or a weaker strength, ended.

Shapes: R rows, D width of a vector, K components and one for the bias, C labels.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from textcls_training.data.arrays import Float32, Float64
from textcls_training.data.dataset import Dataset
from textcls_training.fit.validation import Validation, validation_of
from textcls_training.models.calibration import AnyCalibration, LabelSetCalibration, sigmoid

# Inverse weight decays, as scikit-learn's C; vectors have length 1. A stronger one is tried if the last was the best.
STRENGTHS: Final = (1.0, 10.0, 100.0)
# If no row can be held out.
_USUAL: Final = 10.0
_MOST_STEPS: Final = 300
# Of the bias: else of all biases only the differences are determined.
_BIAS_DECAY: Final = 1e-6
# Where the search ends: at this slope along all scaled components, or at this gain, as a share of the loss.
_SLOPE: Final = 1e-3
_GAIN: Final = 1e-6


class LinearHead(NamedTuple):
    """A fitted head: logits = x @ weight_DC + bias_C, of which `calibration` makes honest probabilities."""

    weight_DC: Float64
    bias_C: Float64
    calibration: AnyCalibration
    strength: float

    def probabilities(self, x_RD: Float64) -> Float32:
        """Return what it answers to vectors [R, D]: probabilities [R, C]."""
        return self.calibration.probabilities(x_RD @ self.weight_DC + self.bias_C).astype(np.float32)

    def calibrated(self) -> tuple[Float64, Float64]:
        """Return weights [D, C] and biases [C] whose logits are calibrated as they are."""
        if isinstance(self.calibration, LabelSetCalibration):
            scale_C, shift_C = np.array(self.calibration.scale), np.array(self.calibration.shift)
            return self.weight_DC * scale_C, self.bias_C * scale_C + shift_C
        return self.weight_DC / self.calibration.temperature, self.bias_C / self.calibration.temperature


def fit(x_RD: Float64, rows: Dataset, classes: int, masks: Sequence[NDArray[np.bool_]]) -> LinearHead:
    """Fit a head whose strength and calibration have the least cross-entropy on held-out rows.

    Where rows may have several labels, that is a logistic regression a label, of one strength.

    Args:
        x_RD: sentence vectors of length 1.
        rows: what they are to be answered.
        classes: how many labels there are.
        masks: the rows that are held out, of each split.
    """
    problem = _Problem.of(x_RD, rows.target(classes), several=rows.several)
    held_R = np.concatenate([np.flatnonzero(mask) for mask in masks] or [np.zeros(0, np.int64)])
    held_out = _HeldOut(problem, masks, validation_of([rows.select(held_R)]))
    if not len(held_R):
        nothing = np.zeros((1, 0, classes), np.float32)
        calibration = held_out.validation.calibrate(nothing)
        return problem.head(problem.solve(_USUAL, problem.zeros()), calibration, _USUAL)
    best = held_out.judge(STRENGTHS[0], problem.zeros())
    for strength in STRENGTHS[1:]:
        found = held_out.judge(strength, best.weight_KC)
        if found.loss >= best.loss:
            break
        best = found
    return problem.head(problem.solve(best.strength, best.weight_KC), best.calibration, best.strength)


class _Problem(NamedTuple):
    """Rows in their principal components, the last of which is 1 for the bias, and how they came there."""

    x_RK: Float64
    target_RC: Float32
    several: bool
    mean_D: Float64
    component_KD: Float64

    @classmethod
    def of(cls, x_RD: Float64, target_RC: Float32, *, several: bool) -> Self:
        """Write rows in their components: no weights outside of their span could matter."""
        mean_D = x_RD.mean(0)
        _, singular_K, component_KD = np.linalg.svd(x_RD - mean_D, full_matrices=False)
        component_KD = component_KD[singular_K > 1e-9 * max(singular_K.max(), 1e-9)]
        x_RK = np.concatenate([(x_RD - mean_D) @ component_KD.T, np.ones((len(x_RD), 1))], axis=1)
        return cls(x_RK, target_RC, several, mean_D, component_KD)

    def only(self, row_R: NDArray[np.bool_]) -> Self:
        """Return the same for some of the rows."""
        return self._replace(x_RK=self.x_RK[row_R], target_RC=self.target_RC[row_R])

    def zeros(self) -> Float64:
        """Return weights to begin with."""
        return np.zeros((self.x_RK.shape[1], self.target_RC.shape[1]))

    def solve(self, strength: float, start_KC: Float64) -> Float64:
        """Return the weights of least cost, searched from `start_KC`.

        That is the cross-entropy summed over rows, plus |weights|^2 / (2 strength) of all weights but the bias.
        """
        decay_K1 = np.full((self.x_RK.shape[1], 1), 1 / strength)
        decay_K1[-1] = _BIAS_DECAY
        scale_K1 = 1 / np.sqrt(self._curvature(strength) + decay_K1)
        x_RK = self.x_RK * scale_K1[:, 0]
        decay_K1 = decay_K1 * scale_K1**2
        classes, of_rows = self.target_RC.shape[1], _sigmoid_loss if self.several else _softmax_loss

        def loss(flat: Float64) -> tuple[float, Float64]:
            weight_KC = flat.reshape(-1, classes)
            value, slope_RC = of_rows(x_RK @ weight_KC, self.target_RC)
            value += 0.5 * float((decay_K1 * weight_KC**2).sum())
            return value, (x_RK.T @ slope_RC + decay_K1 * weight_KC).ravel()

        from scipy.optimize import minimize  # Late: its import takes as long as to train on a thousand texts.

        found = minimize(
            loss,
            (start_KC / scale_K1).ravel(),
            jac=True,
            method="L-BFGS-B",
            options={"maxiter": _MOST_STEPS, "gtol": _SLOPE, "ftol": _GAIN},
        )
        return np.asarray(found.x.reshape(-1, classes) * scale_K1)

    def _curvature(self, strength: float) -> Float64:
        """Return [K, 1]: about how curved the cross-entropy is, p (1 - p) of even chances, less of surer answers."""
        classes = self.target_RC.shape[1]
        share = (classes - 1) / classes**2 if classes > 1 else 0.25
        return np.asarray(share / np.sqrt(strength) * (self.x_RK**2).sum(0)[:, None])

    def head(self, weight_KC: Float64, calibration: AnyCalibration, strength: float) -> LinearHead:
        """Return the head of these weights, for vectors as they are given."""
        weight_DC = self.component_KD.T @ weight_KC[:-1]
        return LinearHead(weight_DC, weight_KC[-1] - self.mean_D @ weight_DC, calibration, strength)


def _softmax_loss(logits_RC: Float64, target_RC: Float32) -> tuple[float, Float64]:
    """Return the cross-entropy of all rows, of one label each, and its slope along the logits, in their place."""
    logits_RC -= logits_RC.max(axis=1, keepdims=True)
    right_R = (target_RC * logits_RC).sum(axis=1)
    slope_RC = np.exp(logits_RC, out=logits_RC)
    total_R1 = slope_RC.sum(axis=1, keepdims=True)
    slope_RC /= total_R1
    slope_RC -= target_RC
    return float((np.log(total_R1[:, 0]) - right_R).sum()), slope_RC


def _sigmoid_loss(logits_RC: Float64, target_RC: Float32) -> tuple[float, Float64]:
    """Return the cross-entropy of all labels of all rows, and its slope along the logits."""
    value = np.logaddexp(0, logits_RC).sum() - (target_RC * logits_RC).sum()
    return float(value), sigmoid(logits_RC) - target_RC


class _Judged(NamedTuple):
    """A strength, the calibration that is best on held-out rows, their cross-entropy, and weights to go on from."""

    strength: float
    calibration: AnyCalibration
    loss: float
    weight_KC: Float64


class _HeldOut(NamedTuple):
    """The splits of a problem, and all held-out rows, split after split."""

    problem: "_Problem"
    masks: Sequence[NDArray[np.bool_]]
    validation: Validation

    def judge(self, strength: float, weight_KC: Float64) -> _Judged:
        """Fit each split, the first from these weights, the next one from those of the last."""
        logits = []
        for mask in self.masks:
            weight_KC = self.problem.only(~mask).solve(strength, weight_KC)
            logits.append(self.problem.x_RK[mask] @ weight_KC)
        logits_RC = np.concatenate(logits).astype(np.float32)
        calibration = self.validation.calibrate(logits_RC[None])
        loss = float(self.validation.losses(calibration.probabilities(logits_RC)).mean())
        return _Judged(strength, calibration, loss, weight_KC)
