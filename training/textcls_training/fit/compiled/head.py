"""Head and loss of the compiled loop: logits of pooled vectors, their loss, and the gradients of the pooled vectors.

With many labels a block of texts goes through the head together, by products of matrices (BLAS); with few, text by
text, since a head that fits into the first cache gains nothing.

Shapes: B texts of a block; the others as in `fit.compiled.arrays`.
"""

import math
from typing import Final

import numpy as np

from textcls_training.config.resolve import MANY_LABELS
from textcls_training.data.arrays import Float32
from textcls_training.data.compiling import compiled_inner
from textcls_training.fit.compiled.arrays import Dense, Targets
from textcls_training.fit.compiled.exponential import exponential

# Texts per block if there are many labels.
TOGETHER: Final = 32
_ONE = np.float32(1)


@compiled_inner
def read_out(weights: Dense, pooled_BX: Float32, logits_BC: Float32) -> None:
    """Write the logits of the pooled vectors."""
    if logits_BC.shape[1] < MANY_LABELS:
        for b in range(len(pooled_BX)):
            for c in range(logits_BC.shape[1]):
                logits_BC[b, c] = weights.bias_C[c] + dot(weights.head_CX[c], pooled_BX[b])
    else:
        np.dot(pooled_BX, weights.head_CX.T, logits_BC)
        for b in range(len(pooled_BX)):
            for c in range(logits_BC.shape[1]):
                logits_BC[b, c] += weights.bias_C[c]


@compiled_inner
def back_through_head(
    grad_BC: Float32, weights: Dense, gradient: Dense, pooled_BX: Float32, grad_pooled_BX: Float32
) -> None:
    """Write the gradients of the pooled vectors, and add those of the head."""
    texts, labels = grad_BC.shape
    if labels < MANY_LABELS:
        for b in range(texts):
            _back_through_head_of_text(grad_BC[b], weights, gradient, pooled_BX[b], grad_pooled_BX[b])
        return
    np.dot(grad_BC, weights.head_CX, grad_pooled_BX)
    grad_head_CX = np.empty((labels, pooled_BX.shape[1]), np.float32)
    np.dot(grad_BC.T, pooled_BX, grad_head_CX)
    for c in range(labels):
        for b in range(texts):
            gradient.bias_C[c] += grad_BC[b, c]
        for x in range(grad_head_CX.shape[1]):
            gradient.head_CX[c, x] += grad_head_CX[c, x]


@compiled_inner
def _back_through_head_of_text(
    grad_C: Float32, weights: Dense, gradient: Dense, pooled_X: Float32, grad_X: Float32
) -> None:
    grad_X[:] = 0
    for c in range(len(grad_C)):
        g = grad_C[c]
        gradient.bias_C[c] += g
        head_X, grad_head_X = weights.head_CX[c], gradient.head_CX[c]
        for x in range(len(pooled_X)):
            grad_X[x] += g * head_X[x]
        for x in range(len(pooled_X)):
            grad_head_X[x] += g * pooled_X[x]


@compiled_inner
def loss_of(targets: Targets, i: int, logits_C: Float32, target_C: Float32) -> float:
    """Return the loss of a text, and turn its logits into their gradient; `target_C` is zero before and after."""
    begin, end = targets.start[i], targets.start[i + 1]
    for j in range(begin, end):
        target_C[targets.label[j]] = targets.probability[j]
    if len(targets.absent_C):
        loss = _sigmoid_loss(targets, logits_C, target_C)
    else:
        loss = _softmax_loss(targets, logits_C, target_C)
    for j in range(begin, end):
        target_C[targets.label[j]] = 0
    weight = targets.weight_N[i]
    for c in range(len(logits_C)):
        logits_C[c] *= weight
    return loss * float(weight)


@compiled_inner
def _softmax_loss(targets: Targets, logits_C: Float32, target_C: Float32) -> float:
    highest = logits_C[0]  # `max` of an array takes a second to compile.
    for c in range(len(logits_C)):
        highest = max(highest, logits_C[c])
    loss = 0.0
    mass = np.float32(0)
    for c in range(len(logits_C)):
        counted = targets.present_C[c] * target_C[c]
        mass += counted
        loss += float(counted * (highest - logits_C[c]))
    labels = len(logits_C)
    many = labels >= MANY_LABELS
    total = _softmax_of_many(highest, logits_C) if many else softmax(highest, labels, logits_C)
    loss += float(mass) * math.log(total)
    for c in range(len(logits_C)):
        logits_C[c] = mass * logits_C[c] - targets.present_C[c] * target_C[c]
    return loss


@compiled_inner
def _sigmoid_loss(targets: Targets, logits_C: Float32, target_C: Float32) -> float:
    loss, labels = 0.0, len(logits_C)
    focus = np.float32(targets.focus)
    odds_C, tail_C, power_C = np.empty(labels, np.float32), np.empty(labels, np.float32), np.empty(labels, np.float32)
    for c in range(labels):
        odds_C[c] = -abs(logits_C[c])
    exponential(odds_C)
    for c in range(labels):
        tail_C[c] = _log1p(odds_C[c])
        power_C[c] = -focus * (_positive(-logits_C[c]) + tail_C[c])
    exponential(power_C)
    for c in range(labels):
        logit = logits_C[c]
        # -log q and -log(1 - q), neither of which overflows.
        missed, spurious = _positive(-logit) + tail_C[c], _positive(logit) + tail_C[c]
        likely = _ONE / (_ONE + odds_C[c])
        unlikely = odds_C[c] * likely
        q, rest = (likely, unlikely) if logit >= 0 else (unlikely, likely)
        present = targets.present_C[c] * target_C[c]
        absent = targets.absent_C[c] * (_ONE - target_C[c]) * power_C[c]
        loss += float(present * missed + absent * spurious)
        logits_C[c] = absent * (q + focus * rest * spurious) - present * rest
    return loss


@compiled_inner
def _positive(x: np.float32) -> np.float32:
    """Return the number if it is above 0, else 0; unlike `max`, NaN stays NaN."""
    return np.float32(0.5) * (x + abs(x))


@compiled_inner
def _log1p(x: np.float32) -> np.float32:
    """Return log(1 + x) of a number from 0 to 1, by the series of 2 artanh(x / (2 + x)); relative error: 1e-7."""
    y = x / (np.float32(2) + x)
    square = y * y
    total = np.float32(2 / 13)
    for k in (11, 9, 7, 5, 3, 1):
        total = total * square + np.float32(2 / k)
    return y * total


@compiled_inner
def softmax(highest: np.float32, size: int, score_X: Float32) -> np.float32:
    """Turn the first `size` scores into probabilities; return the sum that they were divided by."""
    total = np.float32(0)
    for x in range(size):
        score_X[x] = np.exp(score_X[x] - highest)
        total += score_X[x]
    for x in range(size):
        score_X[x] /= total
    return total


@compiled_inner
def _softmax_of_many(highest: np.float32, score_X: Float32) -> np.float32:
    """Do what `softmax` does, for all scores and with vector instructions."""
    for x in range(len(score_X)):
        score_X[x] -= highest
    exponential(score_X)
    total = np.float32(0)
    for x in range(len(score_X)):
        total += score_X[x]
    for x in range(len(score_X)):
        score_X[x] /= total
    return total


@compiled_inner
def dot(one_D: Float32, other_D: Float32) -> np.float32:
    """Return a scalar product."""
    total = np.float32(0)
    for d in range(len(other_D)):
        total += one_D[d] * other_D[d]
    return total
