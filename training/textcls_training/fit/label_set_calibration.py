"""Calibration on validation rows if a text may have several labels: ensemble weights, log-odds, thresholds.

Each label is a separate question. A line from its logit to its log-odds (Platt 1999) makes its probability honest, and
a threshold says from where on it is assigned. Few rows have most labels, so both are shrunk towards those of all labels
together, and the threshold relies on the probabilities themselves.

Shapes: V views, R rows, C labels, K labels that are worked on at once.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from textcls.evaluation.label_thresholds import (
    EXPECTED_ROWS,
    Goal,
    SharedThreshold,
    counted,
    drawn,
    log_odds,
    reaching,
)
from textcls_training.data.arrays import Bools, Float32, Float64
from textcls_training.fit.calibration import MIN_ROWS
from textcls_training.fit.view_weights import LOG_RANGE, Slopes, fit_weights, products
from textcls_training.models.calibration import LabelSetCalibration, combine, sigmoid

# How strongly the line of a label is shrunk towards that of all: as by this many maximally uncertain rows.
PULL = 4.0
# How far below its best the F1 of a label may be in favour of a threshold nearer to that of all labels. Measured:
# training/README.md.
WITHIN = 0.01
NEWTON_STEPS = 25
# The number of parts of the validation rows, each of which is judged by a fit on the others.
PARTS = 5
# The number of values that are processed at once.
CHUNK = 4_000_000


class Ensemble(NamedTuple):
    """Weights of the views, summing to 1, and the line from their weighted sum to log-odds, for all labels together."""

    weights: tuple[float, ...]
    scale: float
    shift: float


class HeldOutDecisions(NamedTuple):
    """Calibrated probabilities [R, C], and which labels are assigned [R, C]."""

    probability_RC: Float64
    assigned_RC: Bools


def fit(logits_VRC: Float32, target_RC: Float32, goal: Goal | None = None) -> LabelSetCalibration:
    """Return the calibration with the least cross-entropy, with thresholds that have a high F1, or that reach a goal.

    Below `MIN_ROWS` rows views have equal weights, logits are log-odds, and labels are assigned from a probability of
    1/2 on, or from the one that promises the goal.

    Args:
        logits_VRC: the logits of each view.
        target_RC: how probable each label is.
        goal: what thresholds are to reach; None for a high F1.
    """
    views, rows, classes = logits_VRC.shape
    if rows < MIN_ROWS:
        same = (1.0,) * classes
        least = 0.5 if goal is None else goal.promised
        return LabelSetCalibration((1 / views,) * views, same, (0.0,) * classes, (least,) * classes, fitted=False)
    ensemble = fit_ensemble(logits_VRC, target_RC)
    found = _fitted(combine(ensemble.weights, logits_VRC), target_RC, ensemble, goal)
    scale, shift, thresholds = (tuple(each_C.tolist()) for each_C in found)
    there = () if goal is not None else tuple((target_RC >= 0.5).sum(0).tolist())
    return LabelSetCalibration(ensemble.weights, scale, shift, thresholds, rows=there)


class _Fitted(NamedTuple):
    """Line and threshold of each label [C]."""

    scale_C: Float64
    shift_C: Float64
    threshold_C: Float64


def _fitted(logits_RC: Float32, target_RC: Float32, start: Ensemble, goal: Goal | None) -> _Fitted:
    """Fit lines, shrunk towards that of all labels together, and thresholds with a high F1 or that reach a goal."""
    rows, classes = logits_RC.shape
    scale_C, shift_C, own_C, shared = np.zeros(classes), np.zeros(classes), np.zeros(classes), SharedThreshold()
    for part in _parts(classes, rows):
        logits_RK, target_RK = logits_RC[:, part].astype(np.float64), target_RC[:, part].astype(np.float64)
        scale_C[part], shift_C[part] = fit_lines(logits_RK, target_RK, start.scale, start.shift)
        shared.add(sigmoid(logits_RK * scale_C[part] + shift_C[part]), target_RK)
    common = shared.value()
    # For a single label it is the best on these very rows, and does not protect against luck.
    within = WITHIN if classes > 1 else 0.0
    for part in _parts(classes, rows):
        probability_RK = sigmoid(logits_RC[:, part].astype(np.float64) * scale_C[part] + shift_C[part])
        target_RK = target_RC[:, part].astype(np.float64)
        if goal is None:
            own_C[part] = best_thresholds(probability_RK, target_RK, common, within)
        else:
            own_C[part] = thresholds_reaching(goal, probability_RK, target_RK)
    if goal is None:
        own_C = drawn(own_C, target_RC.sum(0, dtype=np.float64), common)
    return _Fitted(scale_C, shift_C, own_C)


def assigned_by_others(
    logits_RC: Float32, target_RC: Float32, fitted: LabelSetCalibration, goal: Goal | None = None
) -> HeldOutDecisions:
    """Return the answers to rows by lines and thresholds that were fitted on other rows, for an unbiased evaluation.

    A threshold with a high F1 flatters the rows that it was chosen on. So each of `PARTS` parts of the rows is answered
    by a fit on the rest; if there are too few for that, by `fitted`.

    Args:
        logits_RC: combined logits.
        target_RC: how probable each label is.
        fitted: the calibration on all rows, whose ensemble weights `logits_RC` have.
        goal: what thresholds are to reach; None for a high F1.
    """
    rows = len(logits_RC)
    if not fitted.fitted or rows - rows // PARTS < MIN_ROWS:
        probability_RC = fitted.probabilities(logits_RC)
        return HeldOutDecisions(probability_RC, np.asarray(probability_RC >= np.array(fitted.thresholds)))
    probability_RC, assigned_RC = np.zeros(logits_RC.shape), np.zeros(logits_RC.shape, np.bool_)
    start = Ensemble(fitted.ensemble_weights, float(np.exp(np.log(fitted.scale).mean())), float(np.mean(fitted.shift)))
    for part in range(PARTS):
        mine = np.arange(rows) % PARTS == part
        found = _fitted(logits_RC[~mine], target_RC[~mine], start, goal)
        probability_RC[mine] = sigmoid(logits_RC[mine] * found.scale_C + found.shift_C)
        assigned_RC[mine] = probability_RC[mine] >= found.threshold_C
    return HeldOutDecisions(probability_RC, assigned_RC)


def _parts(classes: int, rows: int) -> list[slice]:
    size = max(1, CHUNK // max(1, rows))
    return [slice(first, first + size) for first in range(0, classes, size)]


def fit_ensemble(logits_VRC: Float32, target_RC: Float32) -> Ensemble:
    """Return the ensemble with the least cross-entropy, all labels together, as `calibration.fit` does except for the
    shift; equal weights, 1 and 0 below `MIN_ROWS` rows.

    Biases of gradient training begin at the log-odds of the labels, and hardly need the shift; margins of support
    vector machines, where -1 is a sure no, do.
    """
    views, rows, classes = logits_VRC.shape
    if rows < MIN_ROWS:
        return Ensemble((1 / views,) * views, 1.0, 0.0)
    parts = _parts(classes, rows)

    def loss(place_P: Float64) -> Slopes:
        value, slope_P, curvature_PP = 0.0, np.zeros(views + 1), np.zeros((views + 1, views + 1))
        for part in parts:
            exact_VRK, target_RK = logits_VRC[:, :, part].astype(np.float64), target_RC[:, part]
            exact_PRK = np.concatenate([exact_VRK, np.ones_like(exact_VRK[:1])])
            logits_RK = (place_P[:, None, None] * exact_PRK).sum(0)
            probability_RK = sigmoid(logits_RK)
            value += float((np.logaddexp(0, logits_RK) - target_RK * logits_RK).sum())
            slope_P += (exact_PRK * (probability_RK - target_RK)).sum((1, 2))
            curvature_PP += products(exact_PRK, probability_RK * (1 - probability_RK))
        return Slopes(value, slope_P, curvature_PP)

    found_P = fit_weights(loss, views, shifted=True)
    weight_V = found_P[:views]
    return Ensemble(tuple((weight_V / weight_V.sum()).tolist()), float(weight_V.sum()), float(found_P[views]))


def fit_lines(
    logits_RK: Float64, target_RK: Float64, start: float, start_shift: float = 0.0
) -> tuple[Float64, Float64]:
    """Return scale and shift [K] of each label, with the least cross-entropy, shrunk to `start` and `start_shift`.

    Newton's method for all labels at once, on the log of the scale, so that the scale stays above 0.

    Args:
        logits_RK: combined logits.
        target_RK: how probable each label is.
        start: the scale of all labels together.
        start_shift: likewise their shift.
    """
    log_start = np.log(start)
    log_scale_K, shift_K = np.full(logits_RK.shape[1], log_start), np.full(logits_RK.shape[1], start_shift)
    loss = _line_loss(logits_RK, target_RK, log_start, start_shift)
    value_K = loss(log_scale_K, shift_K)
    for _ in range(NEWTON_STEPS):
        scale_K = np.exp(log_scale_K)
        scaled_RK = logits_RK * scale_K
        probability_RK = sigmoid(scaled_RK + shift_K)
        slope_RK, curve_RK = probability_RK - target_RK, probability_RK * (1 - probability_RK)
        slope_scale_K = (slope_RK * scaled_RK).sum(0) + PULL * (log_scale_K - log_start)
        slope_shift_K = slope_RK.sum(0) + PULL * (shift_K - start_shift)
        # The part of the log-scale's curvature that may be negative is left out, as in Gauss-Newton.
        curve_scale_K = (curve_RK * scaled_RK**2).sum(0) + PULL
        curve_both_K = (curve_RK * scaled_RK).sum(0)
        curve_shift_K = curve_RK.sum(0) + PULL
        determinant_K = curve_scale_K * curve_shift_K - curve_both_K**2
        step_scale_K = (curve_shift_K * slope_scale_K - curve_both_K * slope_shift_K) / determinant_K
        step_shift_K = (curve_scale_K * slope_shift_K - curve_both_K * slope_scale_K) / determinant_K
        length_K = np.ones(len(value_K))
        for _ in range(8):
            next_scale_K, next_shift_K = log_scale_K - length_K * step_scale_K, shift_K - length_K * step_shift_K
            next_scale_K = np.clip(next_scale_K, *LOG_RANGE)
            next_K = loss(next_scale_K, next_shift_K)
            worse_K = next_K > value_K
            if not worse_K.any():
                break
            length_K = np.where(worse_K, length_K / 2, length_K)
        better_K = ~worse_K
        gained = np.where(better_K, value_K - next_K, 0).max(initial=0)
        log_scale_K = np.where(better_K, next_scale_K, log_scale_K)
        shift_K = np.where(better_K, next_shift_K, shift_K)
        value_K = np.where(better_K, next_K, value_K)
        if gained < 1e-9 * max(1.0, float(np.abs(value_K).max(initial=0))):
            break
    return np.exp(log_scale_K), shift_K


def _line_loss(
    logits_RK: Float64, target_RK: Float64, log_start: float, start_shift: float
) -> Callable[[Float64, Float64], NDArray[np.float64]]:
    def loss(log_scale_K: Float64, shift_K: Float64) -> Float64:
        odds_RK = logits_RK * np.exp(log_scale_K) + shift_K
        pull_K = PULL / 2 * ((log_scale_K - log_start) ** 2 + (shift_K - start_shift) ** 2)
        return np.asarray((np.logaddexp(0, odds_RK) - target_RK * odds_RK).sum(0) + pull_K)

    return loss


def thresholds_reaching(goal: Goal, probability_RK: Float64, target_RK: Float64) -> Float64:
    """Return the threshold of each label [K] that reaches a precision or a recall, rows counting as for F1.

    If none does, the label is assigned from the probability that promises the goal.
    """
    counted_RK = _counted(probability_RK, target_RK)
    found = (
        reaching(goal, probability_R, counted_R)
        for probability_R, counted_R in zip(probability_RK.T, counted_RK.T, strict=True)
    )
    return np.array([goal.promised if threshold is None else threshold for threshold in found], np.float64)


def _counted(probability_RK: Float64, target_RK: Float64) -> Float64:
    return counted(probability_RK, target_RK, EXPECTED_ROWS / (EXPECTED_ROWS + target_RK.sum(0)))


def best_thresholds(probability_RK: Float64, target_RK: Float64, common: float, within: float = WITHIN) -> Float64:
    """Return for each label [K] the threshold nearest to a common one, among those with nearly its highest F1.

    Few rows have most labels, and the best threshold for these few is a matter of luck. So a row counts partly as its
    probability, which is honest, expects, with weight `EXPECTED_ROWS` / (`EXPECTED_ROWS` + n) for n rows of the label,
    and for the rest as it is labelled. And a label that its model hardly recognises has nearly the same F1 from few
    answers to many: where its maximum lies is luck again, and costs hundreds of wrong answers.

    Args:
        probability_RK: how probable each label is according to the model.
        target_RK: how probable it is according to the data.
        common: the threshold of all labels together.
        within: how far below the highest F1 counts as nearly the highest.
    """
    counted_RK = _counted(probability_RK, target_RK)
    order_RK = np.argsort(-probability_RK, axis=0, kind="stable")
    falling_RK = np.take_along_axis(probability_RK, order_RK, 0)
    found_RK = np.cumsum(np.take_along_axis(counted_RK, order_RK, 0), axis=0)
    answered_R1 = np.arange(1, len(order_RK) + 1)[:, None]
    f1_RK = 2 * found_RK / (answered_R1 + counted_RK.sum(0))
    next_RK = np.concatenate([falling_RK[1:], falling_RK[-1:]])
    # No threshold separates rows that are equal.
    f1_RK[:-1][falling_RK[:-1] == next_RK[:-1]] = 0
    between_RK = (falling_RK + next_RK) / 2
    near_RK = f1_RK >= f1_RK.max(0) - within
    away_RK = np.full(f1_RK.shape, np.inf)
    away_RK[near_RK] = np.abs(log_odds(between_RK[near_RK]) - log_odds(np.array(common)))
    return np.asarray(np.take_along_axis(between_RK, away_RK.argmin(0)[None], 0)[0])
