"""A regression on features whose offset is the text's logits: what columns add to what the text says.

Logits are `slope * text + features @ weights + bias`. Weights are shrunk to zero, as is the logarithm of the slope,
which stays positive. One label per text is modelled by a softmax, several by a sigmoid each.

Shapes: R rows, F features, C labels.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy import sparse
from scipy.optimize import minimize

from textcls_training.data.arrays import Bools, Float64
from textcls_training.models.calibration import cross_entropy, log_softmax

# The most steps, and the least of them if rows times labels are many: held-out rows show no difference.
ITERATIONS, LEAST_ITERATIONS = 100, 12
CELLS_OF_ALL_ITERATIONS = 10_000_000
# The tolerances of the slope, and of the gain, both as means over the rows.
TOLERANCE, LEAST_GAIN = 1e-4, 1e-7
# How strongly the slope is shrunk to 1: with the weight of this many maximally uncertain rows.
PULL = 1.0


@dataclass(frozen=True, slots=True)
class Features:
    """The features of rows: ramps of numbers (dense), and values of categories (sparse).

    Attributes:
        ramp_RM: for each number its ramps, and whether it is missing.
        value_RV: a feature per value, 1 if a row has it.
    """

    ramp_RM: Float64
    value_RV: sparse.csr_matrix

    @classmethod
    def none(cls, rows: int) -> "Features":
        """Return the features of this many rows without columns."""
        return cls(np.zeros((rows, 0)), sparse.csr_matrix((rows, 0)))

    def __len__(self) -> int:
        return int(self.ramp_RM.shape[1] + self.value_RV.shape[1])

    def __matmul__(self, weight_FC: Float64) -> Float64:
        ramps = self.ramp_RM.shape[1]
        return np.asarray(self.ramp_RM @ weight_FC[:ramps] + self.value_RV @ weight_FC[ramps:])

    def only(self, rows: Bools) -> "Features":
        """Return the features of some rows."""
        return Features(self.ramp_RM[rows], self.value_RV[rows])

    def means(self) -> Float64:
        """Return the mean of each feature [F]."""
        return np.concatenate([self.ramp_RM.mean(0), np.asarray(self.value_RV.mean(0)).ravel()])


class Weights(NamedTuple):
    """The fitted parameters: the log slope of the text's logits, biases, and the weights of the features."""

    log_slope: float
    bias_C: Float64
    weight_FC: Float64

    @property
    def slope(self) -> float:
        """The factor of the text's logits, above 0."""
        return math.exp(self.log_slope)

    def logits(self, text_RC: Float64, features: Features) -> Float64:
        """Return the logits of rows."""
        logits_RC = features @ self.weight_FC
        logits_RC += self.bias_C
        logits_RC += self.slope * text_RC
        return logits_RC


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows to fit.

    Attributes:
        text_RC: the calibrated logits of their texts, by models that have not seen them.
        features: the features of their columns.
        target_RC: how probable each label is.
        several: whether a row may have several labels.
    """

    text_RC: Float64
    features: Features
    target_RC: Float64
    several: bool

    def only(self, rows: Bools) -> "Rows":
        """Return some of them."""
        return Rows(self.text_RC[rows], self.features.only(rows), self.target_RC[rows], self.several)

    def losses(self, logits_RC: Float64) -> Float64:
        """Return the cross-entropy of each row [R]."""
        if self.several:
            return np.asarray((np.logaddexp(0, logits_RC) - self.target_RC * logits_RC).sum(1))
        return np.asarray(-(self.target_RC * log_softmax(logits_RC)).sum(1))


def fit(rows: Rows, penalty: float, start: Weights | None = None) -> Weights:
    """Return the weights of least cross-entropy plus `penalty / 2` times their squares, both summed over the rows."""
    number, labels = rows.target_RC.shape
    start = start or Weights(0.0, np.zeros(labels), np.zeros((len(rows.features), labels)))
    ramp_MR, value_VR = rows.features.ramp_RM.T, sparse.csr_matrix(rows.features.value_RV.T)

    def loss(place: Float64) -> tuple[float, Float64]:
        found = _unfolded(place, labels)
        logits_RC = found.logits(rows.text_RC, rows.features)
        drawn = penalty * (found.weight_FC**2).sum() + PULL * found.log_slope**2
        value, error_RC = cross_entropy(logits_RC, rows.target_RC, several=rows.several)
        slope_FC = np.concatenate([ramp_MR @ error_RC, value_VR @ error_RC]) + penalty * found.weight_FC
        slope = float(np.vdot(error_RC, rows.text_RC)) * found.slope + PULL * found.log_slope
        return (value + drawn / 2) / number, _folded(Weights(slope, error_RC.sum(0), slope_FC)) / number

    found = minimize(
        loss,
        _folded(start),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": _iterations(number * labels), "ftol": LEAST_GAIN, "gtol": TOLERANCE},
    )
    return _unfolded(found.x, labels)


def _iterations(cells: int) -> int:
    return min(ITERATIONS, max(LEAST_ITERATIONS, CELLS_OF_ALL_ITERATIONS // max(1, cells)))


def _folded(weights: Weights) -> Float64:
    return np.concatenate([[weights.log_slope], weights.bias_C, weights.weight_FC.ravel()])


def _unfolded(place: Float64, labels: int) -> Weights:
    return Weights(float(place[0]), place[1 : 1 + labels], place[1 + labels :].reshape(-1, labels))
