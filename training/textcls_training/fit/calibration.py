"""Calibration on validation rows: the weight of each view in the ensemble, and the confidence of its answers.

Temperature scaling (Guo et al. 2017, arXiv 1706.04599, section 4.2) divides logits by one number that makes
probabilities honest. With several views there is a weight for each, which makes it stacking (Wolpert 1992) with a
temperature inside: weights w_v give ensemble weights w_v / sum w and the temperature 1 / sum w.

Shapes: V views, R rows, C labels.
"""

from collections.abc import Iterator
from functools import partial

import numpy as np
from numpy.typing import NDArray

from textcls_training.data.arrays import Float32, Float64, Int64
from textcls_training.fit.view_weights import Slopes, fit_weights, products
from textcls_training.models.calibration import Calibration, log_softmax

MIN_ROWS = 50
# The relative accuracy of the loss for a calibration that is only compared with others, and not kept.
ROUGHLY = 1e-6
# The most numbers of a view that are processed at once. Smaller inputs, nearly all but those with thousands of
# labels, are summed in one order, and take tens of megabytes.
BLOCK = 1 << 18
# The block size if the last bits of a sum do not matter: data and intermediate results fit into the caches.
SMALL_BLOCK = 1 << 15


def log_losses(logits_RC: Float32, label_R: Int64, temperature: float = 1.0) -> NDArray[np.float64]:
    """Return the cross-entropy in nats of each row [R] of logits at `temperature`."""
    loss_R = np.empty(len(label_R))
    for block in _blocks(len(logits_RC), logits_RC.shape[1], BLOCK):
        log_probability_BC = log_softmax(logits_RC[block].astype(np.float64) / temperature)
        loss_R[block] = -log_probability_BC[np.arange(len(log_probability_BC)), label_R[block]]
    return loss_R


def fit(logits_VRC: Float32, label_R: Int64, near: Calibration | None = None) -> Calibration:
    """Return the calibration with the least cross-entropy; equal weights and temperature 1 below `MIN_ROWS` rows.

    The right label counts (n + 1) / (n + 2) on n rows and the others share the rest (Platt 1999, section 2.2): n right
    answers in a row do not prove that the next one is certain. Views are pulled together with the weight of one row.

    Args:
        logits_VRC: the logits of validation rows, for each view.
        label_R: the label of the rows.
        near: a calibration close to this one, such as that of the epoch before: the search begins there, and ends when
            the loss is accurate to `ROUGHLY`.
    """
    views, rows, _ = logits_VRC.shape
    if rows < MIN_ROWS:
        return Calibration((1 / views,) * views, 1.0)
    if near is None:
        weight_V = fit_weights(partial(_loss, logits_VRC, label_R, BLOCK), views)
    else:
        begin_V = [weight / near.temperature for weight in near.ensemble_weights]
        loss = partial(_loss, logits_VRC, label_R, SMALL_BLOCK)
        weight_V = fit_weights(loss, views, near=begin_V, gain=ROUGHLY)
    return Calibration(tuple((weight_V / weight_V.sum()).tolist()), float(1 / weight_V.sum()))


def _loss(logits_VRC: Float32, label_R: Int64, block_numbers: int, weight_V: Float64) -> Slopes:
    """Return the cross-entropy of logits at given weights, and its slopes, block by block of rows."""
    _, rows, classes = logits_VRC.shape
    right, wrong = (rows + 1) / (rows + 2), 1 / (rows + 2) / (classes - 1)
    value, slope_V, curvature_VV = 0.0, np.zeros(len(weight_V)), np.zeros((len(weight_V), len(weight_V)))
    for block in _blocks(rows, classes, block_numbers):
        label_B = label_R[block]
        target_BC = np.full((len(label_B), classes), wrong)
        target_BC[np.arange(len(label_B)), label_B] = right
        found = _loss_of_block(logits_VRC[:, block].astype(np.float64), target_BC, weight_V)
        value, slope_V, curvature_VV = value + found.value, slope_V + found.slope_P, curvature_VV + found.curvature_PP
    return Slopes(value, slope_V, curvature_VV)


def _blocks(rows: int, classes: int, numbers: int) -> Iterator[slice]:
    size = max(1, numbers // classes)
    return (slice(begin, begin + size) for begin in range(0, rows, size))


def _loss_of_block(logits_VRC: Float64, target_RC: Float64, weight_V: Float64) -> Slopes:
    """Return the cross-entropy of logits at given weights; its curvature is the covariance of the views' logits."""
    log_probability_RC = log_softmax((weight_V[:, None, None] * logits_VRC).sum(0))
    probability_RC = np.exp(log_probability_RC)
    slope_V = (logits_VRC * (probability_RC - target_RC)).sum((1, 2))
    apart_VRC = logits_VRC - (logits_VRC * probability_RC).sum(2, keepdims=True)
    value = -float((target_RC * log_probability_RC).sum())
    return Slopes(value, slope_V, products(apart_VRC, probability_RC))
