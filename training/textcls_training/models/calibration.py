"""From the logits of all views to probabilities: what validation rows have fitted (`textcls_training.fit`).

Shapes: V views, R rows, C labels.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from textcls_training.data.arrays import Float32, Float64


def log_softmax(logits_RC: NDArray[np.floating]) -> Float64:
    """Return the logarithms of the probabilities [R, C] of logits, whose labels exclude each other."""
    shifted_RC = logits_RC - logits_RC.max(1, keepdims=True).astype(np.float64)
    return np.asarray(shifted_RC - np.log(np.exp(shifted_RC).sum(1, keepdims=True)))


def softmax(logits_RC: NDArray[np.floating]) -> Float64:
    """Return the probabilities [R, C] of logits, whose labels exclude each other."""
    power_RC = np.exp(logits_RC - logits_RC.max(1, keepdims=True).astype(np.float64))
    return np.asarray(power_RC / power_RC.sum(1, keepdims=True))


def sigmoid(logits: NDArray[np.floating]) -> Float64:
    """Return the probability of each logit, of any shape."""
    power = np.exp(-np.abs(logits), dtype=np.float64)
    return np.asarray(np.where(logits >= 0, 1, power) / (1 + power))


def combine(ensemble_weights: tuple[float, ...], logits_VRC: Float32) -> Float32:
    """Return the logits [R, C] of all views together."""
    combined_RC: Float32 = np.tensordot(np.array(ensemble_weights, np.float32), logits_VRC, 1)
    return combined_RC


@dataclass(frozen=True, slots=True)
class Calibration:
    """Of one label a text: ensemble weights of the views, at least 0 and summing to 1; the temperature of their sum."""

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
    """Of prototypes: besides, how much each view and the spelling count in the vector of a text, and the scale.

    Attributes:
        parts: one a view and one for the spelling, at least 0 and summing to 1.
        scale: what cosines are multiplied by.
    """

    parts: tuple[float, ...]
    scale: float


@dataclass(frozen=True, slots=True)
class LabelSetCalibration:
    """Of several labels a text: ensemble weights, and of each label a line from logits to log-odds, and a threshold.

    Attributes:
        ensemble_weights: the ensemble weights of the views, at least 0 and summing to 1.
        scale: what the logit of each label is multiplied by, above 0.
        shift: what is added to it.
        thresholds: the probability from which on a label is assigned.
        fitted: whether there were enough rows to fit anything.
        rows: how many held-out rows have each label, where the thresholds are those of the highest F1 that these have
            chosen; empty where they are others.
    """

    ensemble_weights: tuple[float, ...]
    scale: tuple[float, ...]
    shift: tuple[float, ...]
    thresholds: tuple[float, ...]
    fitted: bool = True
    rows: tuple[int, ...] = ()

    @property
    def temperature(self) -> float:
        """Of a temperature common to all labels there is none: 1."""
        return 1.0

    def combine(self, logits_VRC: Float32) -> Float32:
        """Return the logits [R, C] of all views together, before scale and shift."""
        return combine(self.ensemble_weights, logits_VRC)

    def probabilities(self, logits_RC: NDArray[np.floating]) -> Float64:
        """Return the probabilities [R, C] of combined logits."""
        return sigmoid(logits_RC * np.array(self.scale) + np.array(self.shift))


AnyCalibration = Calibration | LabelSetCalibration
