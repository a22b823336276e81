"""What validation rows choose where labels are prototypes: the scale of the cosines and the temperature.

For each split, support rows are made of its training rows by its own fit, and the validation rows are compared with
them: as a saved model compares texts, which no fit has seen, with those of its training.

Shapes: R validation rows, C labels, P parts of a vector, F entries of all together.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from textcls.teaching.centres import centres
from textcls.teaching.scores import padded, scores
from textcls_training.data.arrays import Float32
from textcls_training.fit import calibration
from textcls_training.fit.selection import SelectionResult
from textcls_training.fit.split_parts import SplitParts
from textcls_training.models.calibration import Calibration
from textcls_training.models.prototypes import SCALE, SUPPORT_ROWS, TEMPERATURE, part_weights

_AT_ONCE = 64
_TINY = 1e-12


def select_prototypes(selected: SelectionResult, classes: int) -> SelectionResult:
    """Return what validation rows say of prototypes in the place of linear logits: logits and temperature."""
    weights = part_weights(selected.calibration.ensemble_weights)
    logits = [_logits(parts, weights, classes) for parts in selected.parts]
    logits_RC = np.concatenate(logits) if logits else np.zeros((0, classes), np.float32)
    temperature = TEMPERATURE
    if len(logits_RC) >= calibration.MIN_ROWS:
        temperature = calibration.fit(logits_RC[None], selected.labels).temperature
    found = Calibration(selected.calibration.ensemble_weights, temperature)
    return replace(selected, calibration=found, logits=logits_RC, parts=())


def _logits(parts: SplitParts, weights: Sequence[float], classes: int) -> Float32:
    train_NF, valid_RF = _joined(parts.train, weights), _joined(parts.valid, weights)
    found = [centres(train_NF[parts.labels == label], SUPPORT_ROWS).centre_KF for label in range(classes)]
    support = padded(np.concatenate(found), np.array([len(one_KF) for one_KF in found], np.int64))
    batches = (valid_RF[i : i + _AT_ONCE] for i in range(0, len(valid_RF), _AT_ONCE))
    cosines = [scores(batch_BF, *support, SCALE).cosine_BC for batch_BF in batches]
    return np.float32(SCALE) * np.concatenate([np.zeros((0, classes), np.float32), *cosines])


def _joined(part_P: Sequence[Float32], weight_P: Sequence[float]) -> Float32:
    """Return parts side by side, each of the length of the root of its weight, all together of length 1."""
    sides = []
    for part_RD, weight in zip(part_P, weight_P, strict=True):
        sides.append(np.sqrt(np.float32(weight)) * _unit(part_RD))
    return _unit(np.concatenate(sides, 1))


def _unit(vector_RF: Float32) -> Float32:
    length_R1 = np.maximum(np.linalg.norm(vector_RF, axis=1, keepdims=True), np.float32(_TINY))
    return np.asarray(vector_RF / length_R1, np.float32)
