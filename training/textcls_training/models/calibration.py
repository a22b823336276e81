"""From the logits of all views to probabilities, as fitted on validation rows (`textcls_training.fit`).

Shapes: V views, R rows, C labels.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from textcls_training.data.arrays import Float32, Float64


def log_softmax(logits_RC: NDArray[np.floating]) -> Float64:
    """Return the log-probabilities [R, C] of logits whose labels exclude each other."""
    shifted_RC = logits_RC - logits_RC.max(1, keepdims=True).astype(np.float64)
    return np.asarray(shifted_RC - np.log(np.exp(shifted_RC).sum(1, keepdims=True)))


def softmax(logits_RC: NDArray[np.floating]) -> Float64:
    """Return the probabilities [R, C] of logits whose labels exclude each other."""
    power_RC = np.exp(logits_RC - logits_RC.max(1, keepdims=True).astype(np.float64))
    return np.asarray(power_RC / power_RC.sum(1, keepdims=True))


def sigmoid(logits: NDArray[np.floating]) -> Float64:
    """Return the probability of each logit, of any shape."""
    power = np.exp(-np.abs(logits), dtype=np.float64)
    return np.asarray(np.where(logits >= 0, 1, power) / (1 + power))


def cross_entropy(logits_RC: Float64, target_RC: NDArray[np.floating], *, several: bool) -> tuple[float, Float64]:
    """Return the cross-entropy of all rows together, in nats, and its gradient by the logits [R, C].

    Args:
        logits_RC: the logits of the rows.
        target_RC: how probable each label is; with one label per text, times the weight of the row.
        several: whether a row may have several labels, each of which has a sigmoid of its own.
    """
    if several:
        value = np.logaddexp(0, logits_RC).sum() - np.vdot(target_RC, logits_RC)
        return float(value), sigmoid(logits_RC) - target_RC
    shifted_RC = logits_RC - logits_RC.max(1, keepdims=True)
    slope_RC = np.exp(shifted_RC)
    weight_R1, total_R1 = target_RC.sum(1, keepdims=True), slope_RC.sum(1, keepdims=True)
    value = np.vdot(weight_R1, np.log(total_R1)) - np.vdot(target_RC, shifted_RC)
    slope_RC *= weight_R1 / total_R1
    slope_RC -= target_RC
    return float(value), slope_RC


def combine(ensemble_weights: tuple[float, ...], logits_VRC: Float32) -> Float32:
    """Return the logits [R, C] of all views together."""
    combined_RC: Float32 = np.tensordot(np.array(ensemble_weights, np.float32), logits_VRC, 1)
    return combined_RC


@dataclass(frozen=True, slots=True)
class Calibration:
    """Calibration for one label per text: ensemble weights, at least 0 and summing to 1; temperature of the sum."""

    ensemble_weights: tuple[float, ...]
    temperature: float

    def combine(self, logits_VRC: Float32) -> Float32:
        """Return the logits [R, C] of all views together, not yet divided by the temperature."""
        return combine(self.ensemble_weights, logits_VRC)

    def probabilities(self, logits_RC: NDArray[np.floating]) -> Float64:
        """Return the probabilities [R, C] of combined logits."""
        return softmax(logits_RC.astype(np.float64) / self.temperature)


@dataclass(frozen=True, slots=True)
class PrototypeCalibration(Calibration):
    """Calibration for prototypes: also the weights of views and spelling in the vector of a text, and the scale.

    Attributes:
        parts: one per view and one for the spelling, at least 0 and summing to 1.
        scale: what cosines are multiplied by.
    """

    parts: tuple[float, ...]
    scale: float


@dataclass(frozen=True, slots=True)
class LabelSetCalibration:
    """Calibration for several labels per text: ensemble weights; per label a line to log-odds, and a threshold.

    Attributes:
        ensemble_weights: the ensemble weights of the views, at least 0 and summing to 1.
        scale: the factor of the logit of each label, above 0.
        shift: what is added to it.
        thresholds: the probability from which a label is assigned.
        fitted: whether there were enough rows to fit anything.
        rows: how many held-out rows have each label, if the thresholds are those with the highest F1 on these rows;
            empty otherwise.
    """

    ensemble_weights: tuple[float, ...]
    scale: tuple[float, ...]
    shift: tuple[float, ...]
    thresholds: tuple[float, ...]
    fitted: bool = True
    rows: tuple[int, ...] = ()

    @property
    def temperature(self) -> float:
        """Return 1: there is no temperature common to all labels."""
        return 1.0

    def combine(self, logits_VRC: Float32) -> Float32:
        """Return the logits [R, C] of all views together, before scale and shift."""
        return combine(self.ensemble_weights, logits_VRC)

    def probabilities(self, logits_RC: NDArray[np.floating]) -> Float64:
        """Return the probabilities [R, C] of combined logits."""
        return sigmoid(logits_RC * np.array(self.scale) + np.array(self.shift))


AnyCalibration = Calibration | LabelSetCalibration
