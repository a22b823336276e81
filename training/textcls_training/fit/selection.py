"""Selection on validation rows: the epoch to stop at, and the calibration there."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from textcls_training.data.arrays import Float32, Float64, Int64
from textcls_training.fit.paired_gain import PairedGain
from textcls_training.fit.split_parts import SplitParts
from textcls_training.fit.validation import LabelValidation, Validation
from textcls_training.models.calibration import AnyCalibration


@dataclass(frozen=True, slots=True)
class SelectionResult:
    """The selection made on validation rows.

    Attributes:
        epochs: the number of epochs after which the training ends.
        calibration: ensemble weights, and temperature or thresholds.
        logits: the logits of the validation rows after that epoch [rows, labels], in the ensemble, before calibration.
        validation: the validation rows.
        interrupted: whether nothing was selected because the training was ended early, at this epoch.
        parts: for each split, if labels are to be prototypes, the parts of the vectors of its rows
            (`textcls_training.fit.prototype_selection`).
    """

    epochs: int
    calibration: AnyCalibration
    logits: Float32
    validation: Validation
    interrupted: bool = False
    parts: Sequence[SplitParts] = ()

    @property
    def labels(self) -> Int64:
        """The label of each validation row, if each has one."""
        if not isinstance(self.validation, LabelValidation):
            raise TypeError("validation rows have several labels")
        return self.validation.labels


def select(validation: Validation, by_epoch: Sequence[Float32], epochs: int | None = None) -> SelectionResult:
    """Let validation rows choose the epoch, and calibrate their logits there.

    Without validation rows (very small data) the last epoch is taken.

    Args:
        validation: the validation rows; those of several splits end to end.
        by_epoch: the logits [V, rows, labels] of each view after each of the last epochs.
        epochs: the number of epochs; None if these are all.
    """
    before = 0 if epochs is None else epochs - len(by_epoch)
    number = validation.epoch(by_epoch) if len(validation) else len(by_epoch)
    found = validation.calibrate(by_epoch[number - 1])
    return SelectionResult(before + number, found, found.combine(by_epoch[number - 1]), validation)


def better(one: SelectionResult, other: SelectionResult, errors: float = 1.0) -> bool:
    """Whether `one` answers its validation rows better, which are the first ones of the `other`: with a lower
    cross-entropy, by more than so many standard errors.
    """
    return PairedGain.of(_losses(one), _losses(other)[: len(one.validation)]).beyond(errors)


def _losses(selected: SelectionResult) -> Float64:
    return selected.validation.losses(selected.calibration.probabilities(selected.logits))


def end_to_end(by_split: Sequence[Sequence[Float32]]) -> list[Float32]:
    """Join the logits of several splits, each a list over epochs; return [V, rows of all splits, labels] an epoch."""
    return [np.concatenate(of_epoch, axis=1) for of_epoch in zip(*by_split, strict=True)]
