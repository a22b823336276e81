"""Dual coordinate descent for linear support vector machines, for all labels at once.

Of a label, with rows x_i (a 1 in front, for the bias), signs y_i and costs u_i, what is minimised is

    |w|^2 / 2 + sum_i u_i max(0, 1 - y_i w . x_i)^2

by its dual, a coordinate alpha_i >= 0 at a time, w = sum_i alpha_i y_i x_i all the while (Hsieh, Chang, Lin, Keerthi
and Sundararajan 2008, "A dual coordinate descent method for large-scale linear SVM", algorithm 1, for the L2-loss; here
without shrinking, and with the machines of all labels side by side, since these share the rows). Shapes as in
`fit.one_vs_rest.features`; C labels, B texts that are visited.
"""

import numpy as np

from textcls_training.data.arrays import Float32, Int64
from textcls_training.data.compiling import compiled, compiled_inner
from textcls_training.fit.one_vs_rest.features import Features

_ONE, _HALF = np.float32(1), np.float32(0.5)


@compiled
def descend(
    features: Features, text_B: Int64, cost_NC: Float32, dual_NC: Float32, weight_FC: Float32, bias_C: Float32
) -> float:
    """Visit some texts once, and update their coordinates and the weights; return the loss before, summed over them.

    Args:
        features: the features of all texts.
        text_B: the texts that are visited, in this order.
        cost_NC: the cost of a mistake, below 0 if the text does not have the label; 0 if that is unknown.
        dual_NC: the coordinates.
        weight_FC: the weights of the features.
        bias_C: the weight of the 1 in front.
    """
    start, feature, value = features
    labels = len(bias_C)
    move_C = np.empty(labels, np.float32)
    loss = 0.0
    for i in text_B:
        _answer(features, i, weight_FC, bias_C, move_C)
        square = _ONE
        for j in range(start[i], start[i + 1]):
            square += value[j] * value[j]
        moved = False
        for c in range(labels):
            cost = cost_NC[i, c]
            sign, loose = (_ONE, cost) if cost > 0 else (-_ONE, -cost)
            if loose == 0:
                move_C[c] = 0
                continue
            missing = _ONE - sign * move_C[c]
            if missing > 0:
                loss += float(loose * missing * missing)
            softness = _HALF / loose
            before = dual_NC[i, c]
            after = max(np.float32(0), before + (missing - softness * before) / (square + softness))
            dual_NC[i, c] = after
            move_C[c] = sign * (after - before)
            moved = moved or after != before
        if moved:
            for c in range(labels):
                bias_C[c] += move_C[c]
            for j in range(start[i], start[i + 1]):
                row_C, x = weight_FC[feature[j]], value[j]
                for c in range(labels):
                    row_C[c] += x * move_C[c]
    return loss


@compiled
def answers(features: Features, weight_FC: Float32, bias_C: Float32, margin_NC: Float32) -> None:
    """Write w . x for each text and label."""
    for i in range(len(margin_NC)):
        _answer(features, i, weight_FC, bias_C, margin_NC[i])


@compiled_inner
def _answer(features: Features, i: int, weight_FC: Float32, bias_C: Float32, margin_C: Float32) -> None:
    for c in range(len(bias_C)):
        margin_C[c] = bias_C[c]
    for j in range(features.start[i], features.start[i + 1]):
        row_C, x = weight_FC[features.feature[j]], features.value[j]
        for c in range(len(margin_C)):
            margin_C[c] += x * row_C[c]
