"""The default model as one compiled loop: gather, attend, pool, read out, loss, all gradients, all updates.

The computation is defined elsewhere, in PyTorch, and tests keep the two in agreement:
`models.classifier.ViewClassifier` over `models.embedding_table`, the losses of `fit.loss`, the optimizers of
`fit.optim`. Here are the same formulas, text by text, with explicit gradients; head and loss are in
`fit.compiled.head`. Every sum has one order, whatever else the machine does.

A view is trained independently, so a step is a step of one view. With scores z_t = s . x_t, probabilities p, squared
feature norms q and n^2 = sum_t p_t^2 q_t, the pooled vector is o = sum_t a_t x_t with a_t = p_t / n. Given g = dL/do,
u_t = g . x_t, the gradients are

    dL/dp_t = u_t / n - (g . o) p_t q_t / n^2
    dL/dz_t = p_t (dL/dp_t - sum_j p_j dL/dp_j)
    dL/dx_t = a_t g + dL/dz_t s          dL/ds = sum_t dL/dz_t x_t

Shapes: T tokens of a text, B texts of a batch, K batches; the others as in `fit.compiled.arrays`.
"""

import math

import numpy as np

from textcls_training.config.resolve import MANY_LABELS
from textcls_training.data.arrays import Float32, Int32, Int64
from textcls_training.data.compiling import compiled, compiled_in_place, compiled_inner
from textcls_training.fit.compiled.arrays import Dense, Losses, Rates, Scratch, Table, Targets, Texts
from textcls_training.fit.compiled.head import TOGETHER, back_through_head, dot, loss_of, read_out, softmax
from textcls_training.fit.schedule import BETA1, BETA2, EPSILON
from textcls_training.models.constants import LEAST_SQUARE

_ONE = np.float32(1)
_LEAST_SQUARE = np.float32(LEAST_SQUARE)
_BETA1, _BETA2, _EPSILON = np.float32(BETA1), np.float32(BETA2), np.float32(EPSILON)


@compiled
def train_batches(
    texts: Texts,
    table: Table,
    weights: Dense,
    moments: tuple[Dense, Dense],
    gradient: Dense,
    targets: Targets,
    rates: Rates,
    norm: bool,
    scratch: Scratch,
    batches: tuple[Int64, Int64],
    steps: tuple[int, Float32],
) -> Losses:
    """Take a step for each of some batches; return the loss of each [K], summed over its texts.

    Args:
        texts: the training texts.
        table: rows, which learn unless they have no accumulators.
        weights: attention and head, which learn.
        moments: AdamW's running means of their gradients, and of the squares.
        gradient: work arrays for these gradients.
        targets: the targets of the texts.
        rates: learning rates at their highest.
        norm: whether attention is `norm`, or else softmax.
        scratch: work arrays for the longest text and the batch with the most rows.
        batches: texts of all these batches end to end, and the index at which each batch begins [K + 1].
        steps: the number of steps taken before, and the factor of the rates in each of these [K].
    """
    text_N, start_K = batches
    taken, factor_K = steps
    loss_K = np.zeros(len(start_K) - 1)
    for k in range(len(loss_K)):
        text_B = text_N[start_K[k] : start_K[k + 1]]
        loss_K[k], distinct = gradient_of(texts, text_B, table, weights, targets, norm, scratch, gradient)
        update(table, weights, moments, rates, scratch, gradient, distinct, factor_K[k], taken + k + 1)
    return loss_K


@compiled_in_place
def gradient_of(
    texts: Texts,
    text_B: Int64,
    table: Table,
    weights: Dense,
    targets: Targets,
    norm: bool,
    scratch: Scratch,
    gradient: Dense,
) -> tuple[float, np.int64]:
    """Write the gradients of dense weights into `gradient`, those of rows into `scratch`.

    Arguments are those of `train_batches`. Return the loss, summed over the texts, and the number of distinct rows;
    these are then numbered in `table.number_V`.
    """
    seeds, width = weights.seed_SD.shape
    labels = len(weights.bias_C)
    query_SD, grad_query_SD = np.empty((seeds, width), np.float32), np.zeros((seeds, width), np.float32)
    forget_SD, candidate_SD = np.empty((seeds, width), np.float32), np.empty((seeds, width), np.float32)
    together = TOGETHER if labels >= MANY_LABELS else 1
    pooled_BSD = np.empty((together, seeds, width), np.float32)
    grad_BSD = np.empty_like(pooled_BSD)
    divisor_S, target_C = np.empty(seeds, np.float32), np.zeros(labels, np.float32)
    logits_BC = np.empty((together, labels), np.float32)
    write_queries(weights, query_SD, forget_SD, candidate_SD)
    gradient.flat[:] = 0
    # A constant would have a type of its own, for which the functions called would be compiled once more.
    loss, distinct, length = 0.0, np.int64(0), 0
    for at in range(0, len(text_B), together):
        block = text_B[at : at + together]
        size = len(block)
        for b in range(size):
            length = _read(texts, block[b], table, scratch)
            _attend(length, query_SD, norm, scratch, pooled_BSD[b], divisor_S)
        pooled_BX, grad_BX = pooled_BSD[:size].reshape(size, -1), grad_BSD[:size].reshape(size, -1)
        read_out(weights, pooled_BX, logits_BC[:size])
        for b in range(size):
            loss += loss_of(targets, block[b], logits_BC[b], target_C)
        back_through_head(logits_BC[:size], weights, gradient, pooled_BX, grad_BX)
        for b in range(size):
            if size > 1:  # The text is not the last one that was read.
                length = _read(texts, block[b], table, scratch)
                _attend(length, query_SD, norm, scratch, pooled_BSD[b], divisor_S)
            back_through_attention(
                length, query_SD, norm, scratch, pooled_BSD[b], grad_BSD[b], divisor_S, grad_query_SD
            )
            if len(table.sum_V):
                distinct = collect(length, table, scratch, distinct)
    back_through_queries(weights, gradient, grad_query_SD, forget_SD, candidate_SD)
    return loss, distinct


@compiled_in_place
def update(
    table: Table,
    weights: Dense,
    moments: tuple[Dense, Dense],
    rates: Rates,
    scratch: Scratch,
    gradient: Dense,
    distinct: np.int64,
    factor: np.float32,
    step: int,
) -> None:
    """Move rows and dense weights by the gradients of a batch, as `gradient_of` writes them.

    The others are as in `train_batches`: `distinct` rows have gradients, `factor` is that of the rates, and `step` the
    number of this step, from 1.
    """
    if len(table.sum_V):
        adagrad(table, scratch, distinct, np.float32(rates.table) * factor)
    adamw(weights, gradient, moments, rates, factor, step)


@compiled
def predict_texts(texts: Texts, table: Table, weights: Dense, norm: bool, scratch: Scratch, logits_NC: Float32) -> None:
    """Write the logits of all texts into `logits_NC`; arguments as in `train_batches`."""
    seeds, width = weights.seed_SD.shape
    query_SD, pooled_SD = np.empty((seeds, width), np.float32), np.empty((seeds, width), np.float32)
    write_queries(weights, query_SD, np.empty((seeds, width), np.float32), np.empty((seeds, width), np.float32))
    divisor_S = np.empty(seeds, np.float32)
    for i in range(len(logits_NC)):
        length = _read(texts, i, table, scratch)
        _attend(length, query_SD, norm, scratch, pooled_SD, divisor_S)
        read_out(weights, pooled_SD.reshape(1, -1), logits_NC[i : i + 1])


# Forward


@compiled_inner
def _copy(from_SD: Float32, to_SD: Float32) -> None:
    """Copy number by number: an assignment of arrays takes seconds to compile, for the error about unequal shapes."""
    for s in range(len(from_SD)):
        for d in range(from_SD.shape[1]):
            to_SD[s, d] = from_SD[s, d]


@compiled
def write_queries(weights: Dense, query_SD: Float32, forget_SD: Float32, candidate_SD: Float32) -> None:
    """Write the queries that seeds are mapped to, sigmoid(W_f s) * tanh(W_c s), and these two factors.

    Plain seeds are the queries themselves.
    """
    seeds, width = query_SD.shape
    if not len(weights.forget_DD):
        _copy(weights.seed_SD, query_SD)
        return
    for s in range(seeds):
        for d in range(width):
            forget = candidate = np.float32(0)
            for e in range(width):
                forget += weights.forget_DD[d, e] * weights.seed_SD[s, e]
                candidate += weights.candidate_DD[d, e] * weights.seed_SD[s, e]
            forget_SD[s, d] = _ONE / (_ONE + np.exp(-forget))
            candidate_SD[s, d] = np.tanh(candidate)
            query_SD[s, d] = forget_SD[s, d] * candidate_SD[s, d]


@compiled_inner
def _read(texts: Texts, i: int, table: Table, scratch: Scratch) -> int:
    """List the rows of a text, write its token vectors and squared feature norms; return its number of tokens."""
    length = list_rows(texts, i, scratch.row_U, scratch.use_T)
    row_U, use_T, x_TD, squared_norm_T = scratch.row_U, scratch.use_T, scratch.x_TD, scratch.squared_norm_T
    row_VD, weight_V = table.row_VD, table.weight_V
    width = row_VD.shape[1]
    for t in range(length):
        square = np.float32(0)
        for d in range(width):
            x_TD[t, d] = 0
        for u in range(use_T[t], use_T[t + 1]):
            row = row_U[u]
            weight = weight_V[row]
            square += weight * weight
            for d in range(width):
                x_TD[t, d] += weight * row_VD[row, d]
        squared_norm_T[t] = square
    return length


@compiled_inner
def list_rows(texts: Texts, i: int, row_U: Int32, use_T: Int64) -> int:
    """Write the rows that the tokens of a text use, and the index where those of each begin; return the token count."""
    token, row, row_start = texts.token, texts.row, texts.row_start
    order, sequence_row = texts.order, texts.sequence_row
    begin, end = int(texts.start[i]), int(texts.start[i + 1])
    length = end - begin
    u = 0
    for t in range(length):
        use_T[t] = u
        for j in range(row_start[token[begin + t]], row_start[token[begin + t] + 1]):
            row_U[u] = row[j]
            u += 1
        for o in range(len(order)):
            # A text has one more position than tokens, so the i texts before this one shift its positions.
            for j in range(begin + i + t, begin + i + min(t + order[o], length + 1)):
                if sequence_row[o, j]:
                    row_U[u] = sequence_row[o, j]
                    u += 1
    use_T[length] = u
    return length


@compiled_inner
def _attend(
    length: int, query_SD: Float32, norm: bool, scratch: Scratch, pooled_SD: Float32, divisor_S: Float32
) -> None:
    """Write attention probabilities, pooled vectors, and their divisors: 0 if all weights are zero."""
    x_TD, squared_norm_T = scratch.x_TD, scratch.squared_norm_T
    seeds, width = query_SD.shape
    for s in range(seeds):
        p_T = scratch.probability_ST[s]
        softmax(_scores(length, x_TD, query_SD[s], p_T), length, p_T)
        divisor_S[s] = _ONE
        if norm:
            square = np.float32(0)
            for t in range(length):
                square += p_T[t] * p_T[t] * squared_norm_T[t]
            divisor_S[s] = np.sqrt(max(square, _LEAST_SQUARE)) if square > 0 else np.float32(0)
        pooled_SD[s] = 0
        if divisor_S[s] == 0:
            continue
        pooled_D = pooled_SD[s]
        for t in range(length):
            weight = p_T[t] / divisor_S[s]
            for d in range(width):
                pooled_D[d] += weight * x_TD[t, d]


@compiled_inner
def _scores(length: int, x_TD: Float32, query_D: Float32, score_T: Float32) -> np.float32:
    """Write the scores of a text's tokens; return the highest."""
    highest = np.float32(-np.inf)
    for t in range(length):
        score_T[t] = dot(x_TD[t], query_D)
        highest = max(highest, score_T[t])
    return highest


# Backward


@compiled_inner
def back_through_attention(
    length: int,
    query_SD: Float32,
    norm: bool,
    scratch: Scratch,
    pooled_SD: Float32,
    grad_pooled_SD: Float32,
    divisor_S: Float32,
    grad_query_SD: Float32,
) -> None:
    """Write the gradients of token vectors, and add those of queries."""
    x_TD, grad_TD = scratch.x_TD, scratch.grad_TD
    seeds, width = query_SD.shape
    grad_TD[:length, :width] = 0
    slope_T = np.empty(length, np.float32)
    for s in range(seeds):
        divisor = divisor_S[s]
        if divisor == 0:
            continue
        p_T, query_D, grad_D = scratch.probability_ST[s], query_SD[s], grad_pooled_SD[s]
        grad_query_D = grad_query_SD[s]
        square = divisor * divisor
        # If the sum of squares was raised to its floor, its gradient is zero.
        pull = dot(pooled_SD[s], grad_D) / square if norm and square > _LEAST_SQUARE else np.float32(0)
        mean = np.float32(0)
        for t in range(length):
            slope_T[t] = dot(x_TD[t], grad_D) / divisor - pull * p_T[t] * scratch.squared_norm_T[t]
            mean += p_T[t] * slope_T[t]
        for t in range(length):
            of_score, of_value = p_T[t] * (slope_T[t] - mean), p_T[t] / divisor
            for d in range(width):
                grad_TD[t, d] += of_value * grad_D[d] + of_score * query_D[d]
            for d in range(width):
                grad_query_D[d] += of_score * x_TD[t, d]


@compiled_inner
def back_through_queries(
    weights: Dense, gradient: Dense, grad_query_SD: Float32, forget_SD: Float32, candidate_SD: Float32
) -> None:
    """Write the gradients of seeds, and of their transforms."""
    seeds, width = grad_query_SD.shape
    if not len(weights.forget_DD):
        _copy(grad_query_SD, gradient.seed_SD)
        return
    for s in range(seeds):
        seed_D, grad_seed_D = weights.seed_SD[s], gradient.seed_SD[s]
        for d in range(width):
            g, f, c = grad_query_SD[s, d], forget_SD[s, d], candidate_SD[s, d]
            of_forget, of_candidate = g * c * f * (_ONE - f), g * f * (_ONE - c * c)
            for e in range(width):
                gradient.forget_DD[d, e] += of_forget * seed_D[e]
                gradient.candidate_DD[d, e] += of_candidate * seed_D[e]
                grad_seed_D[e] += of_forget * weights.forget_DD[d, e] + of_candidate * weights.candidate_DD[d, e]


# Updates


@compiled_inner
def collect(length: int, table: Table, scratch: Scratch, distinct: np.int64) -> np.int64:
    """Add the gradients of a text's tokens to those of their rows; return how many distinct rows the batch has now.

    Gradients of distinct rows are stored contiguously.
    """
    number_V, weight_V = table.number_V, table.weight_V
    row_U, use_T, row_P = scratch.row_U, scratch.use_T, scratch.row_P
    grad_TD, grad_PD = scratch.grad_TD, scratch.grad_PD
    width = grad_PD.shape[1]
    for t in range(length):
        for u in range(use_T[t], use_T[t + 1]):
            row = row_U[u]
            number, weight = number_V[row], weight_V[row]
            if number == 0:
                distinct += 1
                number = distinct
                number_V[row], row_P[number] = number, row
                for d in range(width):
                    grad_PD[number, d] = 0
            for d in range(width):
                grad_PD[number, d] += weight * grad_TD[t, d]
    return distinct


@compiled_inner
def adagrad(table: Table, scratch: Scratch, distinct: np.int64, rate: np.float32) -> None:
    """Update the distinct rows of a batch by row-wise Adagrad, and reset their numbers."""
    row_VD, sum_V, number_V = table.row_VD, table.sum_V, table.number_V
    row_P, grad_PD = scratch.row_P, scratch.grad_PD
    width = row_VD.shape[1]
    for p in range(1, distinct + 1):
        row, square = row_P[p], np.float32(0)
        number_V[row] = 0
        for d in range(width):
            square += grad_PD[p, d] * grad_PD[p, d]
        sum_V[row] += square / np.float32(width)
        step = rate / np.sqrt(sum_V[row])
        for d in range(width):
            row_VD[row, d] -= step * grad_PD[p, d]


@compiled_inner
def adamw(
    weights: Dense, gradient: Dense, moments: tuple[Dense, Dense], rates: Rates, factor: np.float32, step: int
) -> None:
    """Update attention and head by AdamW; only the weights of the head decay."""
    rate = np.float32(rates.dense) * factor
    head = len(weights.flat) - weights.head_CX.size
    shrink = _ONE - rate * np.float32(rates.decay)
    for j in range(head, len(weights.flat)):
        weights.flat[j] *= shrink
    mean, square = moments[0].flat, moments[1].flat
    first = rate / np.float32(1 - BETA1**step)
    second = np.float32(math.sqrt(1 - BETA2**step))
    for j in range(len(weights.flat)):
        g = gradient.flat[j]
        mean[j] += (_ONE - _BETA1) * (g - mean[j])
        square[j] = _BETA2 * square[j] + (_ONE - _BETA2) * g * g
        weights.flat[j] -= first * mean[j] / (np.sqrt(square[j]) / second + _EPSILON)
