"""Select the columns that help, as judged by rows that they were not fitted on, and determine what they add.

The text comes first: its calibrated logits on held-out rows are the offset. Columns are fitted on these rows, too, so
each fifth of them is answered by a fit on the others. A column is kept if the others do worse without what it adds; all
together are kept if they do better than the text alone.

Shapes: R rows, F features, C labels.
"""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr, ndtri
from threadpoolctl import threadpool_limits

from textcls.model.columns import Column, some_cells
from textcls_training.data.arrays import Float32, Float64, Int64
from textcls_training.fit.columns.design import Design
from textcls_training.fit.columns.gains import LEAST_ROWS, ColumnGain, FittedColumns
from textcls_training.fit.columns.regression import Features, Rows, Weights, fit
from textcls_training.fit.paired_gain import PairedGain
from textcls_training.fit.selection import SelectionResult
from textcls_training.fit.validation import LabelSetValidation
from textcls_training.models.calibration import AnyCalibration, LabelSetCalibration, log_softmax
from textcls_training.models.columns import ColumnTerms

# How strongly weights are shrunk to zero: as by this many observations of variance 1.
PENALTIES = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
PARTS = 5
# Fits at a time.
SIDE_BY_SIDE = 2
SEED = 2021
# A single column must help by this many standard errors, all of them together by one.
ERRORS = 2.0


class _Tried(NamedTuple):
    """A penalty, its fit of all rows, and of each part by the others; its losses [R]."""

    weights: Weights
    by_part: Sequence[Weights]
    logits_RC: Float64
    loss_R: Float64


def fit_columns(columns: Sequence[Column], cells: Sequence[Sequence[str]], selected: SelectionResult) -> FittedColumns:
    """Fit what columns add to the logits of held-out rows.

    Args:
        columns: the columns.
        cells: the cells of the held-out rows, in the order of the logits of `selected`.
        selected: the selection on these rows.
    """
    text = _text_rows(selected)
    if len(cells) < LEAST_ROWS:
        return FittedColumns(None, selected, tuple(ColumnGain(column.name, False, 0.0, 0.0, 0.0) for column in columns))
    part_R = np.random.default_rng(SEED).permutation(len(cells)) % PARTS
    with threadpool_limits(1):
        alone = _tried(text, 1.0, part_R)
        everything = _Trial(columns, cells, text, part_R)
        gains = [everything.gain(i) for i in range(len(columns))]
        kept = [column for column, gain in zip(columns, gains, strict=True) if gain.kept]
        if not kept:
            return FittedColumns(None, selected, tuple(gains))
        trial = everything
        if len(kept) < len(columns):
            trial = _Trial(kept, [some_cells(row, columns, kept) for row in cells], text, part_R)
        if not PairedGain.of(trial.best.loss_R, alone.loss_R).beyond(1.0):
            return FittedColumns(None, selected, tuple(gain._replace(kept=False) for gain in gains))
        return FittedColumns(*trial.added(selected), tuple(gains))


class _Trial:
    """Some columns, with the penalty that suits them best."""

    def __init__(self, columns: Sequence[Column], cells: Sequence[Sequence[str]], text: Rows, part_R: Int64) -> None:
        self.columns, self.cells, self.part_R = columns, cells, part_R
        self.design = Design.of(columns, cells)
        self.rows = replace(text, features=self.design.features)
        self.best = _best_penalty(self.rows, part_R)

    def gain(self, number: int) -> ColumnGain:
        """Return the gain of one column: the loss if what it adds is left out."""
        mine_F = np.isin(self.design.cell_F, self.design.cells_of(number))
        loss_R = np.empty(len(self.part_R))
        for part, weights in enumerate(self.best.by_part):
            rows, held_out = self.rows.only(self.part_R == part), self.part_R == part
            added_RC = rows.features @ (weights.weight_FC * mine_F[:, None])
            loss_R[held_out] = rows.losses(self.best.logits_RC[held_out] - added_RC)
        found = PairedGain.of(self.best.loss_R, loss_R)
        first = self.design.cells_of(number)[0]
        missing = sum(not row[first] for row in self.cells) / len(self.cells)
        return ColumnGain(self.columns[number].name, found.beyond(errors_of(len(self.columns))), *found, missing)

    def added(self, selected: SelectionResult) -> tuple[ColumnTerms, SelectionResult]:
        """Return what columns add to the logits before calibration, and the selection of held-out rows with that."""
        weights, unit_C = self.best.weights, _unit(selected.calibration) / self.best.weights.slope
        terms = self.design.terms(weights.weight_FC * unit_C, weights.bias_C * unit_C)
        text_RC = self.rows.text_RC
        held_out_RC = selected.logits.astype(np.float64)
        for part, one in enumerate(self.best.by_part):
            mine = self.part_R == part
            added_RC = self.best.logits_RC[mine] - one.slope * text_RC[mine]
            held_out_RC[mine] += added_RC * (_unit(selected.calibration) / one.slope)
        logits_RC: Float32 = held_out_RC.astype(np.float32)
        found = selected.validation.calibrate(logits_RC[None])
        calibration = replace(found, ensemble_weights=selected.calibration.ensemble_weights)
        return terms, replace(selected, calibration=calibration, logits=logits_RC)


def errors_of(columns: int) -> float:
    """Return by how many standard errors one of this many columns has to help, so that noise is kept as rarely among
    all of them as with a single one (Bonferroni).
    """
    return float(-ndtri(ndtr(-ERRORS) / columns))


def _text_rows(selected: SelectionResult) -> Rows:
    """Return the rows as answered from the text alone: log-probabilities, or log-odds, and no features."""
    logits_RC, found, validation = selected.logits.astype(np.float64), selected.calibration, selected.validation
    nothing = Features.none(len(logits_RC))
    if isinstance(validation, LabelSetValidation) and isinstance(found, LabelSetCalibration):
        text_RC = logits_RC * np.array(found.scale) + np.array(found.shift)
        return Rows(text_RC, nothing, validation.target_RC.astype(np.float64), several=True)
    target_RC = np.eye(logits_RC.shape[1])[selected.labels]
    return Rows(log_softmax(logits_RC / found.temperature), nothing, target_RC, several=False)


def _unit(calibration: AnyCalibration) -> Float64:
    """Return how many logits correspond to one nat of log-odds [C], or [1] if labels share a temperature."""
    if isinstance(calibration, LabelSetCalibration):
        return 1 / np.array(calibration.scale)
    return np.array([calibration.temperature])


def _best_penalty(rows: Rows, part_R: Int64) -> _Tried:
    """Return the penalty with the least loss, searched downhill from the middle one."""
    place = len(PENALTIES) // 2
    best = _tried(rows, PENALTIES[place], part_R)
    for step in (-1, 1):
        while 0 <= place + step < len(PENALTIES):
            other = _tried(rows, PENALTIES[place + step], part_R, best)
            if other.loss_R.mean() >= best.loss_R.mean():
                break
            place, best = place + step, other
    return best


def _tried(rows: Rows, penalty: float, part_R: Int64, start: _Tried | None = None) -> _Tried:
    """Fit all rows, and all but each part, beginning with the fit of the same rows under another penalty."""

    def without(part: int) -> Weights:
        return fit(rows.only(part_R != part), penalty, None if start is None else start.by_part[part])

    everything = fit(rows, penalty, None if start is None else start.weights)
    # Fits share nothing: the result has the same bytes as running them one after the other.
    with ThreadPoolExecutor(SIDE_BY_SIDE) as threads:
        by_part = list(threads.map(without, range(PARTS)))
    logits_RC = np.empty_like(rows.text_RC)
    for part, weights in enumerate(by_part):
        mine = part_R == part
        logits_RC[mine] = weights.logits(rows.text_RC[mine], rows.features.only(mine))
    return _Tried(everything, by_part, logits_RC, rows.losses(logits_RC))
