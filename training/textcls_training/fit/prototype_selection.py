"""Selection on validation rows if labels are prototypes: the weight of each part of a vector, scale, temperature.

For each split, support rows are made of its training rows by its own fit, and the validation rows are compared with
them, just as a saved model compares texts, which no fit has seen, with those of its training.

Shapes: R validation rows, C labels, F entries of a vector.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product
from typing import Final, NamedTuple, TypeVar

import numpy as np

from textcls.model.teaching.centres import centres
from textcls.model.teaching.scores import padded, scores
from textcls_training.data.arrays import Float32, Float64, Int64
from textcls_training.fit import calibration
from textcls_training.fit.paired_gain import PairedGain
from textcls_training.fit.selection import SelectionResult
from textcls_training.fit.split_parts import SplitParts
from textcls_training.models.calibration import PrototypeCalibration
from textcls_training.models.ensemble import VECTORS

Rows = TypeVar("Rows", Float32, Int64)
# The options: the first of each, and this temperature, are used unless validation rows clearly prefer others.
SPELLING: Final = (0.3, 0.1)
VECTORS_SHARES: Final = (0.7, 0.5, 0.3)
SCALES: Final = (20.0, 10.0)
TEMPERATURE: Final = 0.7
# This many validation rows of a split, and training rows of a label, are enough to choose by.
_VALID_ROWS, _LABEL_ROWS = 600, 40
_AT_ONCE: Final = 64
_TINY: Final = 1e-12


class Mix(NamedTuple):
    """The weight of each part of a vector, the spelling last; and the scale."""

    parts: tuple[float, ...]
    scale: float


def select_prototypes(selected: SelectionResult, classes: int) -> SelectionResult:
    """Return the selection with prototypes instead of linear logits: logits, mix and temperature."""
    shares = selected.calibration.ensemble_weights
    mixes = list(_mixes(shares, vectors=len(shares) > VECTORS + 1))
    chosen, temperature = mixes[0], TEMPERATURE
    enough = len(selected.validation) >= calibration.MIN_ROWS
    if enough:
        fewer = [_thinned(parts) for parts in selected.parts]
        labels = [_evenly(label_R, _VALID_ROWS) for label_R in _labels(selected)]
        losses = [_losses(fewer, labels, mix, classes) for mix in mixes]
        best = int(np.argmin([loss_R.mean() for loss_R in losses]))
        chosen = mixes[best] if PairedGain.of(losses[best], losses[0]).beyond(1.0) else mixes[0]
    logits_RC = _all_logits(selected.parts, chosen, classes)
    if enough:
        temperature = calibration.fit(logits_RC[None], selected.labels).temperature
    found = PrototypeCalibration(shares, temperature, *chosen)
    return replace(selected, calibration=found, logits=logits_RC, parts=())


def _mixes(shares: tuple[float, ...], *, vectors: bool) -> Iterator[Mix]:
    """Yield the mixes to try: views weigh as in the ensemble, except that by vectors, which may know more words."""
    for spelling, of_vectors, scale in product(SPELLING, VECTORS_SHARES if vectors else (None,), SCALES):
        views = np.array(shares)
        if of_vectors is not None:
            views[VECTORS] = 0
            views *= (1 - of_vectors) / max(views.sum(), _TINY)
            views[VECTORS] = of_vectors
        yield Mix((*((1 - spelling) * views).tolist(), spelling), scale)


def _losses(splits: Sequence[SplitParts], labels: Sequence[Int64], mix: Mix, classes: int) -> Float64:
    """Return the cross-entropy of each validation row [R] at the best temperature."""
    logits_RC, label_R = _all_logits(splits, mix, classes), np.concatenate(labels)
    return calibration.log_losses(logits_RC, label_R, calibration.fit(logits_RC[None], label_R).temperature)


def _all_logits(splits: Sequence[SplitParts], mix: Mix, classes: int) -> Float32:
    return np.concatenate([np.zeros((0, classes), np.float32), *(_logits(parts, mix, classes) for parts in splits)])


def _logits(parts: SplitParts, mix: Mix, classes: int) -> Float32:
    lengths = [root_mean_square(part_RD) for part_RD in parts.train]
    train_NF, valid_RF = (_joined(given, mix, lengths) for given in (parts.train, parts.valid))
    found = [centres(train_NF[parts.labels == label]).centre_KF for label in range(classes)]
    support = padded(np.concatenate(found), np.array([len(one_KF) for one_KF in found], np.int64))
    batches = (valid_RF[i : i + _AT_ONCE] for i in range(0, len(valid_RF), _AT_ONCE))
    cosines = [scores(batch_BF, *support, mix.scale).cosine_BC for batch_BF in batches]
    return np.float32(mix.scale) * np.concatenate([np.zeros((0, classes), np.float32), *cosines])


def root_mean_square(vector_RD: Float32) -> float:
    """Return the root mean square of the lengths of vectors; 1 if all are zero."""
    return float(np.sqrt(np.square(vector_RD).sum(1).mean())) or 1.0 if len(vector_RD) else 1.0


def _joined(part_P: Sequence[Float32], mix: Mix, lengths: Sequence[float]) -> Float32:
    """Return parts side by side, scaled to a joint length of 1."""
    sides = []
    for part_RD, weight, length in zip(part_P, mix.parts, lengths, strict=True):
        sides.append(np.float32(np.sqrt(weight) / length) * part_RD)
    vector_RF = np.concatenate(sides, 1)
    length_R1 = np.maximum(np.linalg.norm(vector_RF, axis=1, keepdims=True), np.float32(_TINY))
    return np.asarray(vector_RF / length_R1, np.float32)


def _labels(selected: SelectionResult) -> list[Int64]:
    """Return the labels of the validation rows of each split."""
    ends = np.cumsum([len(parts.valid[0]) for parts in selected.parts])
    return np.split(selected.labels, ends[:-1])


def _thinned(parts: SplitParts) -> SplitParts:
    """Return fewer rows: of each label, and among the validation rows."""
    numbers = [_evenly(np.flatnonzero(parts.labels == label), _LABEL_ROWS) for label in np.unique(parts.labels)]
    some = np.concatenate([np.zeros(0, np.int64), *numbers])
    train = [part_RD[some] for part_RD in parts.train]
    return SplitParts(train, parts.labels[some], [_evenly(part_RD, _VALID_ROWS) for part_RD in parts.valid])


def _evenly(rows: Rows, most: int) -> Rows:
    """Return at most this many of some rows, evenly spaced."""
    if len(rows) <= most:
        return rows
    return rows[np.linspace(0, len(rows) - 1, most).astype(np.int64)]
