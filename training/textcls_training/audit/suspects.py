"""From held-out answers to the rows whose label is probably wrong, the surest first.

Which rows are suspects is confident learning (Northcutt, Jiang and Chuang 2021, arXiv 1911.00068, section 3.1): a label
is taken for another one that the row has with at least the confidence that is usual among the rows of that other label.

Shapes: R rows, C labels.
"""

from typing import Final, NamedTuple

import numpy as np

from textcls_training.data.arrays import Bools, Float64, Int64

# Rows whose label is less probable than half as probable as another one teach next to nothing in the second round.
DOUBTED, DOUBTED_WEIGHT = 0.5, 0.02
# So many rows of each label are taken to be wrong at random before any is seen, as few suspects say little.
PRIOR_ROWS: Final = 10
# A probability below which differences mean nothing.
LEAST: Final = 1e-4


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


def doubt(probability_RC: Float64, label_R: Int64, judged_R: Bools) -> Float64:
    """Return how doubtful each label is [R]: the logarithm of the odds that it is a wrong one, up to a constant.

    If a share T_cy of the rows that mean label c have y, then by Bayes' rule the odds that a row of label y means
    another one are sum_{c != y} p_c T_cy / p_y. Where labels go wrong at random, that ranks rows by the probability of
    their own label alone; where similar labels are taken for each other, by those that are. What goes wrong is counted
    among the suspects, as the confident joint is, and `PRIOR_ROWS` more of each label are spread over all others.
    """
    rows, classes = probability_RC.shape
    row_S, label_S = _suspects(probability_RC, label_R, judged_R)
    wrong_CC = np.full((classes, classes), PRIOR_ROWS / max(1, classes - 1))
    np.add.at(wrong_CC, (label_S, label_R[row_S]), 1)
    np.fill_diagonal(wrong_CC, 0)
    wrong_CC /= np.maximum(wrong_CC.sum(1, keepdims=True), LEAST)
    other_R = np.einsum("rc,cr->r", probability_RC, wrong_CC[:, label_R])
    own_R = probability_RC[np.arange(rows), label_R]
    return np.asarray(np.log(other_R + LEAST) - np.log(own_R + LEAST))


def find(probability_RC: Float64, label_R: Int64, judged_R: Bools) -> Suspects:
    """Return the suspects among the rows that were judged."""
    row_S, label_S = _suspects(probability_RC, label_R, judged_R)
    order = np.argsort(-doubt(probability_RC, label_R, judged_R)[row_S], kind="stable")
    return Suspects(row_S[order], label_S[order])


def _suspects(probability_RC: Float64, label_R: Int64, judged_R: Bools) -> Suspects:
    """Return the suspects in the order of the rows."""
    rows, classes = probability_RC.shape
    own_R = probability_RC[np.arange(rows), label_R]
    usual_C = np.full(classes, np.inf)
    for c in range(classes):
        of_label = judged_R & (label_R == c)
        if of_label.any():
            usual_C[c] = own_R[of_label].mean()
    confident_RC = probability_RC >= usual_C
    meant_R = np.where(confident_RC, probability_RC, -1.0).argmax(1)
    which = np.flatnonzero(judged_R & confident_RC.any(1) & (meant_R != label_R))
    return Suspects(which, meant_R[which])


def _own_and_other(probability_RC: Float64, label_R: Int64) -> tuple[Float64, Float64]:
    """Return the probability of each row's label, and that of the best other one."""
    rows = np.arange(len(label_R))
    others_RC = probability_RC.copy()
    others_RC[rows, label_R] = -1.0
    return probability_RC[rows, label_R], others_RC.max(1, initial=0.0)
