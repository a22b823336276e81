"""Logistic regression on sentence vectors: its strength and its temperature fitted on rows that it has not seen.

Some dozens of such fits are made of a few hundred rows. What they share is done once: rows are written in their
principal components, of which there are no more than rows, and these are scaled so that the loss is about equally
curved along all (`_Problem`). A fit starts where the last one, of nearly the same rows or a weaker strength, ended.

Shapes: R rows, D width of a vector, K components and one for the bias, C labels.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from textcls_training.data.arrays import Float32, Float64, Int64
from textcls_training.fit import calibration
from textcls_training.models.calibration import softmax

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
    """A fitted head: logits = x @ weight_DC + bias_C, of which `temperature` makes honest probabilities."""

    weight_DC: Float64
    bias_C: Float64
    temperature: float
    strength: float

    def probabilities(self, x_RD: Float64) -> Float32:
        """Return what it answers to vectors [R, D]: probabilities [R, C]."""
        return softmax((x_RD @ self.weight_DC + self.bias_C) / self.temperature).astype(np.float32)


def fit(x_RD: Float64, label_R: Int64, classes: int, masks: Sequence[NDArray[np.bool_]]) -> LinearHead:
    """Fit a head whose strength and temperature have the least cross-entropy on held-out rows.

    Args:
        x_RD: sentence vectors of length 1.
        label_R: their labels.
        classes: how many labels there are.
        masks: the rows that are held out, of each split.
    """
    problem = _Problem.of(x_RD, label_R, classes)
    held_R = np.concatenate([np.flatnonzero(mask) for mask in masks] or [np.zeros(0, np.int64)])
    if not len(held_R):
        return problem.head(problem.solve(_USUAL, problem.zeros()), 1.0, _USUAL)
    held_out = _HeldOut(problem, masks, label_R[held_R])
    best = held_out.judge(STRENGTHS[0], problem.zeros())
    for strength in STRENGTHS[1:]:
        found = held_out.judge(strength, best.weight_KC)
        if found.loss >= best.loss:
            break
        best = found
    return problem.head(problem.solve(best.strength, best.weight_KC), best.temperature, best.strength)


class _Problem(NamedTuple):
    """Rows in their principal components, the last of which is 1 for the bias, and how they came there."""

    x_RK: Float64
    label_R: Int64
    classes: int
    mean_D: Float64
    component_KD: Float64

    @classmethod
    def of(cls, x_RD: Float64, label_R: Int64, classes: int) -> Self:
        """Write rows in their components: no weights outside of their span could matter."""
        mean_D = x_RD.mean(0)
        _, singular_K, component_KD = np.linalg.svd(x_RD - mean_D, full_matrices=False)
        component_KD = component_KD[singular_K > 1e-9 * max(singular_K.max(), 1e-9)]
        x_RK = np.concatenate([(x_RD - mean_D) @ component_KD.T, np.ones((len(x_RD), 1))], axis=1)
        return cls(x_RK, label_R, classes, mean_D, component_KD)

    def only(self, row_R: NDArray[np.bool_]) -> Self:
        """Return the same for some of the rows."""
        return self._replace(x_RK=self.x_RK[row_R], label_R=self.label_R[row_R])

    def zeros(self) -> Float64:
        """Return weights to begin with."""
        return np.zeros((self.x_RK.shape[1], self.classes))

    def solve(self, strength: float, start_KC: Float64) -> Float64:
        """Return the weights of least cost, searched from `start_KC`.

        That is the cross-entropy summed over rows, plus |weights|^2 / (2 strength) of all weights but the bias.
        """
        decay_K1 = np.full((self.x_RK.shape[1], 1), 1 / strength)
        decay_K1[-1] = _BIAS_DECAY
        scale_K1 = 1 / np.sqrt(self._curvature(strength) + decay_K1)
        x_RK = self.x_RK * scale_K1[:, 0]
        decay_K1 = decay_K1 * scale_K1**2
        row_R = np.arange(len(self.label_R))

        def loss(flat: Float64) -> tuple[float, Float64]:
            weight_KC = flat.reshape(-1, self.classes)
            logits_RC = x_RK @ weight_KC
            logits_RC -= logits_RC.max(axis=1, keepdims=True)
            right_R = logits_RC[row_R, self.label_R]
            slope_RC = np.exp(logits_RC, out=logits_RC)
            total_R1 = slope_RC.sum(axis=1, keepdims=True)
            value = (np.log(total_R1[:, 0]) - right_R).sum() + 0.5 * (decay_K1 * weight_KC**2).sum()
            slope_RC /= total_R1
            slope_RC[row_R, self.label_R] -= 1
            return float(value), (x_RK.T @ slope_RC + decay_K1 * weight_KC).ravel()

        from scipy.optimize import minimize  # Late: its import takes as long as to train on a thousand texts.

        found = minimize(
            loss,
            (start_KC / scale_K1).ravel(),
            jac=True,
            method="L-BFGS-B",
            options={"maxiter": _MOST_STEPS, "gtol": _SLOPE, "ftol": _GAIN},
        )
        return np.asarray(found.x.reshape(-1, self.classes) * scale_K1)

    def _curvature(self, strength: float) -> Float64:
        """Return [K, 1]: about how curved the cross-entropy is, p (1 - p) of even chances, less of surer answers."""
        share = (self.classes - 1) / self.classes**2 / np.sqrt(strength)
        return np.asarray(share * (self.x_RK**2).sum(0)[:, None])

    def head(self, weight_KC: Float64, temperature: float, strength: float) -> LinearHead:
        """Return the head of these weights, for vectors as they are given."""
        weight_DC = self.component_KD.T @ weight_KC[:-1]
        return LinearHead(weight_DC, weight_KC[-1] - self.mean_D @ weight_DC, temperature, strength)


class _Judged(NamedTuple):
    """A strength, the temperature that is best on held-out rows, their cross-entropy, and weights to go on from."""

    strength: float
    temperature: float
    loss: float
    weight_KC: Float64


class _HeldOut(NamedTuple):
    """The splits of a problem, and the labels of all held-out rows, split after split."""

    problem: "_Problem"
    masks: Sequence[NDArray[np.bool_]]
    label_R: Int64

    def judge(self, strength: float, weight_KC: Float64) -> _Judged:
        """Fit each split, the first from these weights, the next one from those of the last."""
        logits = []
        for mask in self.masks:
            weight_KC = self.problem.only(~mask).solve(strength, weight_KC)
            logits.append(self.problem.x_RK[mask] @ weight_KC)
        logits_RC = np.concatenate(logits).astype(np.float32)
        temperature = calibration.fit(logits_RC[None], self.label_R).temperature
        loss = calibration.log_loss(logits_RC, self.label_R, temperature)
        return _Judged(strength, temperature, loss, weight_KC)
