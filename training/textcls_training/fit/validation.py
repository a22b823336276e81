"""Validation rows: their targets, how good logits are for them, and how they are calibrated.

Shapes: V views, R validation rows, C labels.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

from textcls.evaluation.label_thresholds import Goal
from textcls_training.config.resolve import MANY_LABELS
from textcls_training.data import label_matrix
from textcls_training.data.arrays import Float32, Float64, Int64
from textcls_training.data.dataset import Dataset
from textcls_training.data.label_matrix import LabelMatrix
from textcls_training.fit import calibration, label_set_calibration
from textcls_training.fit.paired_gain import PairedGain
from textcls_training.models.calibration import Calibration, LabelSetCalibration

# By how many standard errors an earlier epoch must be better than the last. Measured: training/README.md.
EPOCH_ERRORS: Final = 2.0
# A probability that was rounded to zero was not impossible.
LEAST_PROBABILITY = 1e-12


class RightAnswers(NamedTuple):
    """How many of a number of answers are right.

    With several labels per row there are as many answers as labels, the most probable of all rows: the point at which
    precision equals recall (the break-even point; Lewis 1992).
    """

    right: int
    answers: int

    @property
    def share(self) -> float:
        """The share of the answers that are right; 0 without answers."""
        return self.right / max(1, self.answers)


class LabelValidation:
    """Validation rows with one label each."""

    def __init__(self, labels: Int64) -> None:
        self.labels = labels

    def __len__(self) -> int:
        return len(self.labels)

    def epoch(self, by_epoch: Sequence[Float32]) -> int:
        """Return the last epoch, at which all rates are zero, unless another has a lower cross-entropy, by more than
        `EPOCH_ERRORS` standard errors.

        With `MANY_LABELS` it is always the last: while rates are high, what one fit has learned, another on nearly the
        same rows may have lost again for some epochs.
        """
        if by_epoch[0].shape[2] >= MANY_LABELS:
            return len(by_epoch)
        losses, found = list[Float64](), None
        for logits_VRC in by_epoch:
            found = calibration.fit(logits_VRC, self.labels, near=found)
            losses.append(self.losses(found.probabilities(found.combine(logits_VRC))))
        best = min(range(len(losses)), key=lambda number: float(losses[number].mean()))
        return best + 1 if PairedGain.of(losses[best], losses[-1]).beyond(EPOCH_ERRORS) else len(losses)

    def calibrate(self, logits_VRC: Float32) -> Calibration:
        """Fit ensemble weights and temperature."""
        return calibration.fit(logits_VRC, self.labels)

    def losses(self, probability_RC: Float64) -> Float64:
        """Return the cross-entropy in nats of each row [R] of calibrated probabilities."""
        right_R = probability_RC[np.arange(len(self.labels)), self.labels]
        return np.asarray(-np.log(np.maximum(right_R, LEAST_PROBABILITY)))

    def right(self, probability_RC: Float32 | Float64) -> RightAnswers:
        """Count the rows whose most probable label is theirs."""
        return RightAnswers(int((probability_RC.argmax(1) == self.labels).sum()), len(self.labels))


class LabelSetValidation:
    """Validation rows with several labels each.

    Args:
        sets: their labels.
        goal: what thresholds are to reach; None for a high F1.
    """

    def __init__(self, sets: LabelMatrix, goal: Goal | None = None) -> None:
        self.target_RC = sets.dense(np.arange(len(sets)))
        self.goal = goal

    def __len__(self) -> int:
        return len(self.target_RC)

    def epoch(self, by_epoch: Sequence[Float32]) -> int:
        """Return the last epoch, where all rates have fallen to zero.

        An earlier one would be better only by frequent labels, while rare ones have hardly begun to be learned: see
        training/README.md.
        """
        return len(by_epoch)

    def calibrate(self, logits_VRC: Float32) -> LabelSetCalibration:
        """Fit ensemble weights, and line and threshold of each label."""
        return label_set_calibration.fit(logits_VRC, self.target_RC, self.goal)

    def losses(self, probability_RC: Float64) -> Float64:
        """Return the cross-entropy in nats of each row [R] of calibrated probabilities, summed over the labels."""
        there_RC = self.target_RC * np.log(np.maximum(probability_RC, LEAST_PROBABILITY))
        absent_RC = (1 - self.target_RC) * np.log(np.maximum(1 - probability_RC, LEAST_PROBABILITY))
        return np.asarray(-(there_RC + absent_RC).sum(1))

    def right(self, probability_RC: Float32 | Float64) -> RightAnswers:
        """Count the right answers among as many as there are labels."""
        gold_RC = self.target_RC >= 0.5
        answers, flat = int(gold_RC.sum()), probability_RC.ravel()
        best = np.argpartition(-flat, answers - 1)[:answers] if answers else np.zeros(0, np.int64)
        return RightAnswers(int(gold_RC.ravel()[best].sum()), answers)


# Validation rows, whatever the task.
Validation = LabelValidation | LabelSetValidation


def validation_of(datasets: Sequence[Dataset], goal: Goal | None = None) -> Validation:
    """Return the rows of some datasets end to end, as validation rows; thresholds of several labels reach `goal`."""
    if datasets[0].several:
        return LabelSetValidation(label_matrix.end_to_end([one.label_matrix for one in datasets]), goal)
    return LabelValidation(np.concatenate([one.labels for one in datasets]))
