"""What validation rows choose: the epoch to stop at, and the calibration there."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from textcls_training.data.arrays import Float32, Int64
from textcls_training.fit import calibration
from textcls_training.fit.calibration import Calibration


class EpochScore(NamedTuple):
    """How an epoch did on validation rows; of equal accuracies the lower loss is better."""

    accuracy: float
    negative_loss: float

    @classmethod
    def of(cls, logits: Float32, labels: Int64) -> "EpochScore":
        """Score the logits [rows, labels] of validation rows."""
        return cls(float((logits.argmax(1) == labels).mean()), -calibration.log_loss(logits, labels))


@dataclass(frozen=True, slots=True)
class SelectionResult:
    """What the validation rows chose.

    Attributes:
        epochs: after how many the training ends.
        calibration: ensemble weights and temperature.
        logits: of the validation rows after that epoch [rows, labels], in the ensemble, before the temperature.
        labels: of the validation rows.
        interrupted: nothing was chosen, as somebody has ended the training, and it had come so far.
    """

    epochs: int
    calibration: Calibration
    logits: Float32
    labels: Int64
    interrupted: bool = False


def select(labels: Int64, by_epoch: Sequence[Float32]) -> SelectionResult:
    """Let validation rows choose the epoch, and calibrate their logits there.

    Without validation rows (very small data) the last epoch is taken.

    Args:
        labels: of the validation rows; of several splits end to end.
        by_epoch: the logits [V, rows, labels] after each epoch, a view each.
    """
    calibrations, combined, scores = [], [], []
    for logits_VRC in by_epoch:
        found = calibration.fit(logits_VRC, labels)
        logits_RC = found.combine(logits_VRC)
        calibrations.append(found)
        combined.append(logits_RC)
        if len(labels):
            scores.append(EpochScore.of(logits_RC, labels))
    number = best_epoch(scores, len(labels)) if scores else len(by_epoch)
    return SelectionResult(number, calibrations[number - 1], combined[number - 1], labels)


def better(one: SelectionResult, other: SelectionResult) -> bool:
    """Whether `one` answers the validation rows better: with a lower cross-entropy, by more than a standard error."""
    gain_R = _losses(other) - _losses(one)
    return len(gain_R) > 1 and bool(gain_R.mean() > gain_R.std(ddof=1) / math.sqrt(len(gain_R)))


def _losses(selected: SelectionResult) -> NDArray[np.float64]:
    return calibration.log_losses(selected.logits, selected.labels, selected.calibration.temperature)


def end_to_end(by_split: Sequence[Sequence[Float32]]) -> list[Float32]:
    """Join the logits of several splits, each a list over epochs; return [V, rows of all splits, labels] an epoch."""
    return [np.concatenate(of_epoch, axis=1) for of_epoch in zip(*by_split, strict=True)]


def best_epoch(scores: Sequence[EpochScore], rows: int) -> int:
    """Return the number (from 1) of the epoch to stop at.

    That is the last one, where all rates have fallen to zero, unless another beats it by more than one standard error.
    """
    best = max(scores)
    error = math.sqrt(best.accuracy * (1 - best.accuracy) / rows)
    return scores.index(best) + 1 if best.accuracy - scores[-1].accuracy > error else len(scores)
