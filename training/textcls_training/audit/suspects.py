"""From held-out answers to the rows whose label is probably wrong, the surest first.

Which rows are suspects is confident learning (Northcutt, Jiang and Chuang 2021, arXiv 1911.00068, section 3.1): a label
is taken for another one that the row has with at least the confidence that is usual among the rows of that other label.

Shapes: R rows, C labels.
"""

from typing import NamedTuple

import numpy as np

from textcls_training.data.arrays import Bools, Float64, Int64

# Rows whose label is less probable than half as probable as another one teach next to nothing in the second round.
DOUBTED, DOUBTED_WEIGHT = 0.5, 0.02


class Suspects(NamedTuple):
    """The rows to look at, the surest first.

    Attributes:
        row_S: their numbers.
        label_S: the label that each probably has.
    """

    row_S: Int64
    label_S: Int64


def weights(probability_RC: Float64, label_R: Int64) -> Float64:
    """Return how much each row is to count in the second round [R], by the answers of the first."""
    own_R, other_R = _own_and_other(probability_RC, label_R)
    return np.where(own_R < DOUBTED * np.maximum(own_R, other_R), DOUBTED_WEIGHT, 1.0)


def doubt(probability_RC: Float64, label_R: Int64) -> Float64:
    """Return how doubtful each label is [R]: half the chance of the best other label, less its own.

    A label that is improbable is doubted, and more so where one other stands out. Its own chance alone ranks best what
    was labelled at random, the whole difference what was taken for a similar label; this is nearly as good on either.
    """
    own_R, other_R = _own_and_other(probability_RC, label_R)
    return np.asarray(other_R / 2 - own_R)


def find(probability_RC: Float64, label_R: Int64, judged_R: Bools) -> Suspects:
    """Return the suspects among the rows that were judged."""
    rows, classes = probability_RC.shape
    own_R = probability_RC[np.arange(rows), label_R]
    usual_C = np.full(classes, np.inf)
    for c in range(classes):
        of_label = judged_R & (label_R == c)
        if of_label.any():
            usual_C[c] = own_R[of_label].mean()
    confident_RC = probability_RC >= usual_C
    meant_R = np.where(confident_RC, probability_RC, -1.0).argmax(1)
    suspect_R = judged_R & confident_RC.any(1) & (meant_R != label_R)
    which = np.flatnonzero(suspect_R)
    order = np.argsort(-doubt(probability_RC, label_R)[which], kind="stable")
    return Suspects(which[order], meant_R[which[order]])


def _own_and_other(probability_RC: Float64, label_R: Int64) -> tuple[Float64, Float64]:
    """Return the probability of each row's label, and that of the best other one."""
    rows = np.arange(len(label_R))
    others_RC = probability_RC.copy()
    others_RC[rows, label_R] = -1.0
    return probability_RC[rows, label_R], others_RC.max(1, initial=0.0)
