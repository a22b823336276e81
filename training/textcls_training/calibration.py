"""Temperature scaling (Guo et al. 2017, arXiv 1706.04599, section 4.2): one number that makes probabilities honest."""

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax

Float32 = NDArray[np.float32]

MIN_ROWS = 50
LOG_RANGE = (-3.0, 3.0)


def log_loss(logits: Float32, labels: NDArray[np.int64], temperature: float = 1.0) -> float:
    """Return the mean cross-entropy in nats of `logits` [rows, labels] at `temperature`."""
    log_probability = log_softmax(logits.astype(np.float64) / temperature, axis=1)
    return float(-log_probability[np.arange(len(labels)), labels].mean())


def fit_temperature(logits: Float32, labels: NDArray[np.int64]) -> float:
    """Return the temperature with the least cross-entropy; 1 when fewer than `MIN_ROWS` rows were held out.

    The right label counts (n + 1) / (n + 2) on n rows and the others share the rest (Platt 1999, section 2.2): n right
    answers in a row do not prove that the next one is certain.
    """
    rows, classes = logits.shape
    if rows < MIN_ROWS:
        return 1.0
    target = np.full((rows, classes), 1 / (rows + 2) / (classes - 1))
    target[np.arange(rows), labels] = (rows + 1) / (rows + 2)

    def smoothed_loss(log_temperature: float) -> float:
        return float(-(target * log_softmax(logits.astype(np.float64) / np.exp(log_temperature), axis=1)).sum())

    best = minimize_scalar(smoothed_loss, bounds=LOG_RANGE, method="bounded")
    return float(np.exp(best.x))
