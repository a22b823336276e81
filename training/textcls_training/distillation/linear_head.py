"""Logistic regression on sentence vectors: its strength and its calibration are fitted on held-out rows.

Dozens of such fits are made on a few hundred rows. What they share is computed once: rows are expressed in their
principal components, no more than there are rows, and these are scaled so that the loss is about equally curved along
all of them (`_Problem`). A fit starts where the previous one, on nearly the same rows or with a weaker strength, ended.

Shapes: R rows, D width of a vector, K components and one for the bias, C labels.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from textcls_training.config.resolve import LabelWeights
from textcls_training.data.arrays import Float32, Float64
from textcls_training.data.dataset import Dataset
from textcls_training.fit.label_weights import class_weights
from textcls_training.fit.validation import Validation, validation_of
from textcls_training.models.calibration import AnyCalibration, LabelSetCalibration, cross_entropy

# Inverse weight decays, as scikit-learn's C; vectors have length 1. A stronger one is tried if the last was the best.
STRENGTHS: Final = (1.0, 10.0, 100.0)
# The strength if no row can be held out.
_USUAL: Final = 10.0
_MOST_STEPS: Final = 300
# Strength of the bias: without it only the differences between biases are determined.
_BIAS_DECAY: Final = 1e-6
# When the search ends: at this slope along all scaled components, or at this gain, as a share of the loss.
_SLOPE: Final = 1e-3
_GAIN: Final = 1e-6


class LinearHead(NamedTuple):
    """A fitted head: logits = x @ weight_DC + bias_C, which `calibration` turns into calibrated probabilities."""

    weight_DC: Float64
    bias_C: Float64
    calibration: AnyCalibration
    strength: float

    def probabilities(self, x_RD: Float64) -> Float32:
        """Return the probabilities [R, C] for vectors [R, D]."""
        return self.calibration.probabilities(x_RD @ self.weight_DC + self.bias_C).astype(np.float32)

    def calibrated(self) -> tuple[Float64, Float64]:
        """Return weights [D, C] and biases [C] whose logits need no calibration."""
        if isinstance(self.calibration, LabelSetCalibration):
            scale_C, shift_C = np.array(self.calibration.scale), np.array(self.calibration.shift)
            return self.weight_DC * scale_C, self.bias_C * scale_C + shift_C
        return self.weight_DC / self.calibration.temperature, self.bias_C / self.calibration.temperature


def fit(
    x_RD: Float64,
    rows: Dataset,
    classes: int,
    masks: Sequence[NDArray[np.bool_]],
    class_weight: LabelWeights = "none",
) -> LinearHead:
    """Fit a head whose strength and calibration have the least cross-entropy on held-out rows.

    If rows may have several labels, that is one logistic regression per label, all of one strength.

    Args:
        x_RD: sentence vectors of length 1.
        rows: their targets.
        classes: how many labels there are.
        masks: the held-out rows of each split.
        class_weight: how much a row of each label weighs in the fit, unless rows may have several.
    """
    target_RC = rows.target(classes)
    if not rows.several:
        target_RC = target_RC * class_weights(rows.label_mass(classes), class_weight)
    problem = _Problem.of(x_RD, target_RC, several=rows.several)
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
    """Rows in their principal components, the last of which is 1 for the bias, and how they were transformed.

    The targets of a row with one label sum to its weight.
    """

    x_RK: Float64
    target_RC: Float32
    several: bool
    mean_D: Float64
    component_KD: Float64

    @classmethod
    def of(cls, x_RD: Float64, target_RC: Float32, *, several: bool) -> Self:
        """Express rows in their components: no weights outside their span matter."""
        mean_D = x_RD.mean(0)
        _, singular_K, component_KD = np.linalg.svd(x_RD - mean_D, full_matrices=False)
        component_KD = component_KD[singular_K > 1e-9 * max(singular_K.max(), 1e-9)]
        x_RK = np.concatenate([(x_RD - mean_D) @ component_KD.T, np.ones((len(x_RD), 1))], axis=1)
        return cls(x_RK, target_RC, several, mean_D, component_KD)

    def only(self, row_R: NDArray[np.bool_]) -> Self:
        """Return the same for some of the rows."""
        return self._replace(x_RK=self.x_RK[row_R], target_RC=self.target_RC[row_R])

    def zeros(self) -> Float64:
        """Return initial weights."""
        return np.zeros((self.x_RK.shape[1], self.target_RC.shape[1]))

    def solve(self, strength: float, start_KC: Float64) -> Float64:
        """Return the weights of least cost, searching from `start_KC`.

        The cost is the cross-entropy summed over rows, plus |weights|^2 / (2 strength) for all weights except the bias.
        """
        decay_K1 = np.full((self.x_RK.shape[1], 1), 1 / strength)
        decay_K1[-1] = _BIAS_DECAY
        scale_K1 = 1 / np.sqrt(self._curvature(strength) + decay_K1)
        x_RK = self.x_RK * scale_K1[:, 0]
        decay_K1 = decay_K1 * scale_K1**2
        classes = self.target_RC.shape[1]

        def loss(flat: Float64) -> tuple[float, Float64]:
            weight_KC = flat.reshape(-1, classes)
            value, slope_RC = cross_entropy(x_RK @ weight_KC, self.target_RC, several=self.several)
            value += 0.5 * float((decay_K1 * weight_KC**2).sum())
            return value, (x_RK.T @ slope_RC + decay_K1 * weight_KC).ravel()

        from scipy.optimize import minimize  # Late: its import takes as long as training on a thousand texts.

        found = minimize(
            loss,
            (start_KC / scale_K1).ravel(),
            jac=True,
            method="L-BFGS-B",
            options={"maxiter": _MOST_STEPS, "gtol": _SLOPE, "ftol": _GAIN},
        )
        return np.asarray(found.x.reshape(-1, classes) * scale_K1)

    def _curvature(self, strength: float) -> Float64:
        """Return about the curvature of the cross-entropy [K, 1]: p (1 - p) at even chances, less if surer."""
        classes = self.target_RC.shape[1]
        share = (classes - 1) / classes**2 if classes > 1 else 0.25
        return np.asarray(share / np.sqrt(strength) * (self.x_RK**2).sum(0)[:, None])

    def head(self, weight_KC: Float64, calibration: AnyCalibration, strength: float) -> LinearHead:
        """Return the head with these weights, for untransformed vectors."""
        weight_DC = self.component_KD.T @ weight_KC[:-1]
        return LinearHead(weight_DC, weight_KC[-1] - self.mean_D @ weight_DC, calibration, strength)


class _Judged(NamedTuple):
    """A strength, the best calibration on held-out rows, their cross-entropy, and weights to continue from."""

    strength: float
    calibration: AnyCalibration
    loss: float
    weight_KC: Float64


class _HeldOut(NamedTuple):
    """The splits of a problem, and all held-out rows, split by split."""

    problem: "_Problem"
    masks: Sequence[NDArray[np.bool_]]
    validation: Validation

    def judge(self, strength: float, weight_KC: Float64) -> _Judged:
        """Fit each split, the first from these weights, each further one from those of the previous split."""
        logits = []
        for mask in self.masks:
            weight_KC = self.problem.only(~mask).solve(strength, weight_KC)
            logits.append(self.problem.x_RK[mask] @ weight_KC)
        logits_RC = np.concatenate(logits).astype(np.float32)
        calibration = self.validation.calibrate(logits_RC[None])
        loss = float(self.validation.losses(calibration.probabilities(logits_RC)).mean())
        return _Judged(strength, calibration, loss, weight_KC)
