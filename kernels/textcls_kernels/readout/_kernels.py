# mypy: disable-error-code="import-not-found, import-untyped, no-untyped-def, no-untyped-call, no-any-return"
# mypy: disallow-untyped-decorators=False
# ruff: noqa: ANN001, ANN202
"""The readout fused: scores, softmax, norm, pooling, head and loss of a text in one program. All of it is float32.

    z_t = query . x_t + added_t     w_t = exp(z_t - max z)     n = sqrt(sum w_t^2 q_t), or sum w_t without NORM
    a_t = w_t / n     y = sum_t a_t x_t     l = b + sum_s head_s . (keep_s y_s)     dl = what the loss asks of l
    g_s = keep_s sum_c dl_c head_cs

The forward ends with dl and g, since it has all that they need in registers; the head is read twice, once for the sum
of the softmax of labels, once for dl. The backward, with h_t = a_t (g . x_t) and H = sum_t h_t, for each seed:

    dz_t = h_t - f_t H     dx_t = sum_s (a_ts g_s + dz_ts query_s)     dquery_s = sum_b sum_t dz_ts x_t

f_t = d log n / dz_t is the token's fraction of what it was divided by, w_t^2 q_t / sum w^2 q under NORM, w_t / sum w
without. Under NORM y is that of w as of the softmax p, whose own sum falls out of p / sqrt(sum p^2 q), and is not
needed but as a bound: where n is less than LEAST_NORM of it, n is that constant times the sum, and f_t is p_t.

The scores are kept, so that both kernels use exactly the same ones: at |z| = 1e4 their rounding is 1e-3. H is summed
from the same h, in a pass of its own over x, which is then in the cache: for a single token dz is exactly 0.

A program has one view and text; grid (texts, views). Numbers of tokens and labels change from batch to batch and from
model to model, and no variant is made for them. Optional tensors come with a flag, and are not read without it.

Letters: T tokens, of a block BLOCK_T, D width, S seeds, C labels; names end in the dimensions of what they hold, and 1
is a dimension of one. Widths, seeds and blocks are rounded up to powers of two, with zeros.
"""

import math

import triton
import triton.language as tl

from textcls_kernels.readout.reference import LEAST_SQUARE

LEAST_NORM = tl.constexpr(math.sqrt(LEAST_SQUARE))
INF = tl.constexpr(float("inf"))


@triton.jit
def _place():
    """The text, and the number of the view and text."""
    text = tl.program_id(0).to(tl.int64)
    return text, tl.program_id(1).to(tl.int64) * tl.num_programs(0) + text


@triton.jit
def _length(length, text, T):
    """The number of the text's tokens, from 0 to T."""
    return tl.minimum(tl.maximum(tl.load(length + text).to(tl.int32), 0), T)


@triton.jit
def _by_seed(pointer, D: tl.constexpr, S: tl.constexpr, BLOCK_S: tl.constexpr, BLOCK_D: tl.constexpr):
    """A vector of each seed."""
    s, d = tl.arange(0, BLOCK_S)[:, None], tl.arange(0, BLOCK_D)[None, :]
    return tl.load(pointer + s * D + d, mask=(s < S) & (d < D), other=0.0)


@triton.jit
def _store_by_seed(pointer, y_SD, D: tl.constexpr, S: tl.constexpr, BLOCK_S: tl.constexpr, BLOCK_D: tl.constexpr):
    s, d = tl.arange(0, BLOCK_S)[:, None], tl.arange(0, BLOCK_D)[None, :]
    tl.store(pointer + s * D + d, y_SD, mask=(s < S) & (d < D))


@triton.jit
def _vectors(x, begin, length, D: tl.constexpr, BLOCK_T: tl.constexpr, BLOCK_D: tl.constexpr):
    """A block of token vectors, 0 beyond the text."""
    t, d = tl.arange(0, BLOCK_T)[:, None, None], tl.arange(0, BLOCK_D)[None, None, :]
    first = tl.zeros((), tl.int64) + begin
    return tl.load(x + first * D + t * D + d, mask=(begin + t < length) & (d < D), other=0.0)


@triton.jit
def _log1p(e):
    """log(1 + e) of 0 <= e <= 1: 2 artanh(r), r = e / (2 + e), whose series ends below the last bit.

    The hardware's logarithm is off by 1e-7 near 1, which of a small e is much.
    """
    r = e / (2.0 + e)
    square = r * r
    series = 1 / 15 + tl.zeros_like(e)
    for odd in tl.static_range(13, 0, -2):
        series = series * square + 1 / odd
    return 2.0 * r * series


@triton.jit
def _logits(head, bias, y_SD, first, C, D: tl.constexpr, S: tl.constexpr,
            BLOCK_C: tl.constexpr, BLOCK_S: tl.constexpr, BLOCK_D: tl.constexpr):  # fmt: skip
    """The labels of a block, their rows of the head, 0 beyond the last label, and their logits."""
    c = first + tl.arange(0, BLOCK_C)
    s, d = tl.arange(0, BLOCK_S)[None, :, None], tl.arange(0, BLOCK_D)[None, None, :]
    inside = (c < C)[:, None, None] & (s < S) & (d < D)
    head_CSD = tl.load(head + c[:, None, None] * (S * D) + s * D + d, mask=inside, other=0.0)
    logit_C = tl.load(bias + c, mask=c < C, other=0.0) + tl.sum(tl.sum(head_CSD * y_SD[None, :, :], 2), 1)
    return c, head_CSD, logit_C


@triton.jit
def _mass(target, weight, text, c, C, HARD: tl.constexpr):
    """The weight of each label of a block times its probability; an invalid hard label counts nothing."""
    weight_C = tl.load(weight + c, mask=c < C, other=0.0)
    if HARD:
        return tl.where(tl.load(target + text) == c, weight_C, 0.0)
    return weight_C * tl.load(target + text * C + c, mask=c < C, other=0.0)


@triton.jit
def _set_cost(target, weight, absent, text, c, logit_C, C, focus):
    """The cost of a sigmoid's answers by label, and its derivative, from exponentials of at most 1."""
    target_C = tl.load(target + text * C + c, mask=c < C, other=0.0)
    present_C = tl.load(weight + c, mask=c < C, other=0.0) * target_C
    absent_C = tl.load(absent + c, mask=c < C, other=0.0) * (1.0 - target_C)
    e_C = tl.exp(-tl.abs(logit_C))
    small_C, large_C = e_C / (1.0 + e_C), 1.0 / (1.0 + e_C)
    yes_C, no_C = tl.where(logit_C < 0, small_C, large_C), tl.where(logit_C < 0, large_C, small_C)
    missed_C = tl.maximum(-logit_C, 0.0) + _log1p(e_C)  # -log of yes
    wrong_C = tl.maximum(logit_C, 0.0) + _log1p(e_C)  # -log of no
    focused_C = absent_C * tl.exp(-focus * missed_C)
    slope_C = focused_C * (focus * no_C * wrong_C + yes_C) - present_C * no_C
    return present_C * missed_C + focused_C * wrong_C, slope_C


@triton.jit
def _pool(x, squared_norm, query_SD, added, score, seen, place, tokens, T, D: tl.constexpr, S: tl.constexpr,
          BLOCK_T: tl.constexpr, BLOCK_S: tl.constexpr, BLOCK_D: tl.constexpr, NORM: tl.constexpr,
          ADDED: tl.constexpr):  # fmt: skip
    """The weighted sums of a text's token vectors; store its scores and `seen`.

    `seen` [3, S] is the largest score, n, and n^2; n is infinite where all weights are 0, n^2 where f is not from it.
    """
    s = tl.arange(0, BLOCK_S)
    top_S = tl.full([BLOCK_S], -INF, tl.float32)
    sum_S = tl.zeros([BLOCK_S], tl.float32)
    square_S = tl.zeros([BLOCK_S], tl.float32)
    y_SD = tl.zeros([BLOCK_S, BLOCK_D], tl.float32)
    for begin in range(0, tokens, BLOCK_T):
        x_T1D = _vectors(x + place * T * D, begin, tokens, D, BLOCK_T, BLOCK_D)
        t = begin + tl.arange(0, BLOCK_T)
        real_TS = (t < tokens)[:, None] & (s < S)[None, :]
        at_TS = (place * T + t)[:, None] * S + s[None, :]
        score_TS = tl.sum(x_T1D * query_SD[None, :, :], 2)
        if ADDED:
            score_TS += tl.load(added + at_TS, mask=real_TS, other=0.0)
        tl.store(score + at_TS, score_TS, mask=real_TS)
        score_TS = tl.where((t < tokens)[:, None], score_TS, -INF)
        higher_S = tl.maximum(top_S, tl.max(score_TS, 0))
        fade_S = tl.exp(top_S - higher_S)
        w_TS = tl.exp(score_TS - higher_S[None, :])
        sum_S = sum_S * fade_S + tl.sum(w_TS, 0)
        if NORM:
            q_T = tl.load(squared_norm + place * T + t, mask=t < tokens, other=0.0)
            square_S = square_S * (fade_S * fade_S) + tl.sum(w_TS * w_TS * q_T[:, None], 0)
        y_SD = y_SD * fade_S[:, None] + tl.sum(w_TS[:, :, None] * x_T1D, 0)
        top_S = higher_S
    n_S = tl.where(sum_S > 0, sum_S, INF)
    if NORM:
        root_S, least_S = tl.sqrt(square_S), LEAST_NORM * sum_S
        n_S = tl.where(square_S > 0, tl.maximum(root_S, least_S), INF)
        square_S = tl.where(root_S > least_S, square_S, INF)
    seen += place * (3 * S) + s
    tl.store(seen, top_S, mask=s < S)
    tl.store(seen + S, n_S, mask=s < S)
    tl.store(seen + 2 * S, square_S, mask=s < S)
    return y_SD / n_S[:, None]


@triton.jit
def _label_sums(head, bias, target, weight, text, y_SD, C, D: tl.constexpr, S: tl.constexpr, BLOCK_C: tl.constexpr,
                BLOCK_S: tl.constexpr, BLOCK_D: tl.constexpr, HARD: tl.constexpr):  # fmt: skip
    """The largest logit, the sum of exp(logit - that), and the sum of the labels' weights."""
    top = tl.full((), -INF, tl.float32)
    total = tl.zeros((), tl.float32)
    mass = tl.zeros((), tl.float32)
    for first in range(0, C, BLOCK_C):
        c, _, logit_C = _logits(head, bias, y_SD, first, C, D, S, BLOCK_C, BLOCK_S, BLOCK_D)
        logit_C = tl.where(c < C, logit_C, -INF)
        higher = tl.maximum(top, tl.max(logit_C, 0))
        total = total * tl.exp(top - higher) + tl.sum(tl.exp(logit_C - higher), 0)
        mass += tl.sum(_mass(target, weight, text, c, C, HARD), 0)
        top = higher
    return top, total, mass


@triton.jit(do_not_specialize=["T", "C"])
def readout_forward_kernel(
    x, squared_norm, length, query, head, bias, added, keep, target, weight, absent, row_weight,
    loss, dlogits, y, g, score, seen,
    T, C, focus,
    D: tl.constexpr, S: tl.constexpr, BLOCK_T: tl.constexpr, BLOCK_C: tl.constexpr, BLOCK_S: tl.constexpr,
    BLOCK_D: tl.constexpr, NORM: tl.constexpr, ADDED: tl.constexpr, KEEP: tl.constexpr, ROWS: tl.constexpr,
    SETS: tl.constexpr, HARD: tl.constexpr,
):  # fmt: skip
    """The loss of a text, and what its backward needs: dl, the kept y, g, the scores, and `seen` of `_pool`."""
    text, place = _place()
    view = tl.program_id(1).to(tl.int64)
    query_SD = _by_seed(query + view * (S * D), D, S, BLOCK_S, BLOCK_D)
    y_SD = _pool(x, squared_norm, query_SD, added, score, seen, place, _length(length, text, T), T,
                 D, S, BLOCK_T, BLOCK_S, BLOCK_D, NORM, ADDED)  # fmt: skip
    if KEEP:
        keep_SD = _by_seed(keep + place * (S * D), D, S, BLOCK_S, BLOCK_D)
        y_SD *= keep_SD
    _store_by_seed(y + place * (S * D), y_SD, D, S, BLOCK_S, BLOCK_D)

    head += view * C * (S * D)
    bias += view * C
    if not SETS:
        top, total, mass = _label_sums(head, bias, target, weight, text, y_SD, C,
                                       D, S, BLOCK_C, BLOCK_S, BLOCK_D, HARD)  # fmt: skip
    counts = tl.load(row_weight + text) if ROWS else 1.0
    cost = tl.zeros((), tl.float32)
    g_SD = tl.zeros([BLOCK_S, BLOCK_D], tl.float32)
    for first in range(0, C, BLOCK_C):
        c, head_CSD, logit_C = _logits(head, bias, y_SD, first, C, D, S, BLOCK_C, BLOCK_S, BLOCK_D)
        if SETS:
            cost_C, slope_C = _set_cost(target, weight, absent, text, c, logit_C, C, focus)
        else:
            mass_C = _mass(target, weight, text, c, C, HARD)
            cost_C = mass_C * ((top - logit_C) + tl.log(total))
            slope_C = mass * (tl.exp(logit_C - top) / total) - mass_C
        slope_C = tl.where(c < C, slope_C * counts, 0.0)
        cost += tl.sum(tl.where(c < C, cost_C, 0.0), 0)
        tl.store(dlogits + place * C + c, slope_C, mask=c < C)
        g_SD += tl.sum(slope_C[:, None, None] * head_CSD, 0)
    tl.store(loss + place, cost * counts)
    if KEEP:
        g_SD *= keep_SD
    _store_by_seed(g + place * (S * D), g_SD, D, S, BLOCK_S, BLOCK_D)


@triton.jit
def _weights(x, squared_norm, score, seen, g_SD, place, begin, tokens, T, D: tl.constexpr, S: tl.constexpr,
             BLOCK_T: tl.constexpr, BLOCK_S: tl.constexpr, BLOCK_D: tl.constexpr, NORM: tl.constexpr):  # fmt: skip
    """The x, a, f and h of a block of tokens."""
    x_T1D = _vectors(x + place * T * D, begin, tokens, D, BLOCK_T, BLOCK_D)
    s, t = tl.arange(0, BLOCK_S), begin + tl.arange(0, BLOCK_T)
    seen += place * (3 * S)
    top_S = tl.load(seen + s, mask=s < S, other=0.0)
    n_S = tl.load(seen + S + s, mask=s < S, other=INF)
    square_S = tl.load(seen + 2 * S + s, mask=s < S, other=INF)
    real_TS = (t < tokens)[:, None] & (s < S)[None, :]
    score_TS = tl.load(score + (place * T + t)[:, None] * S + s[None, :], mask=real_TS, other=-INF)
    w_TS = tl.exp(score_TS - top_S[None, :])
    a_TS = tl.div_rn(w_TS, tl.broadcast_to(n_S[None, :], [BLOCK_T, BLOCK_S]))
    f_TS = a_TS
    if NORM:
        q_T = tl.load(squared_norm + place * T + t, mask=t < tokens, other=0.0)
        own_TS = tl.div_rn(w_TS * w_TS * q_T[:, None], tl.broadcast_to(square_S[None, :], [BLOCK_T, BLOCK_S]))
        f_TS = tl.where(square_S[None, :] < INF, own_TS, LEAST_NORM * a_TS)
    h_TS = a_TS * tl.sum(x_T1D * g_SD[None, :, :], 2)
    return x_T1D, a_TS, f_TS, h_TS


@triton.jit(do_not_specialize=["T", "C"])
def readout_backward_kernel(
    dloss, x, squared_norm, length, query, dlogits, g, score, seen,
    dx, dadded, dquery, scaled,
    T, C,
    D: tl.constexpr, S: tl.constexpr, BLOCK_T: tl.constexpr, BLOCK_C: tl.constexpr, BLOCK_S: tl.constexpr,
    BLOCK_D: tl.constexpr, NORM: tl.constexpr, ADDED: tl.constexpr,
):  # fmt: skip
    """Gradients of a text's tokens, dx and dadded, 0 at padding; its part of dquery; dl times the loss's gradient."""
    text, place = _place()
    tokens = _length(length, text, T)
    upstream = tl.load(dloss)
    for first in range(0, C, BLOCK_C):
        c = first + tl.arange(0, BLOCK_C)
        tl.store(scaled + place * C + c, upstream * tl.load(dlogits + place * C + c, mask=c < C), mask=c < C)
    query_SD = _by_seed(query + tl.program_id(1).to(tl.int64) * (S * D), D, S, BLOCK_S, BLOCK_D)
    g_SD = upstream * _by_seed(g + place * (S * D), D, S, BLOCK_S, BLOCK_D)
    h_S = tl.zeros([BLOCK_S], tl.float32)
    for begin in range(0, tokens, BLOCK_T):
        _, _, _, h_TS = _weights(x, squared_norm, score, seen, g_SD, place, begin, tokens, T,
                                 D, S, BLOCK_T, BLOCK_S, BLOCK_D, NORM)  # fmt: skip
        h_S += tl.sum(h_TS, 0)
    dquery_SD = tl.zeros([BLOCK_S, BLOCK_D], tl.float32)
    s, d = tl.arange(0, BLOCK_S)[None, :], tl.arange(0, BLOCK_D)[None, :]
    for begin in range(0, T, BLOCK_T):
        t = begin + tl.arange(0, BLOCK_T)
        dz_TS = tl.zeros([BLOCK_T, BLOCK_S], tl.float32)
        dx_TD = tl.zeros([BLOCK_T, BLOCK_D], tl.float32)
        if begin < tokens:
            x_T1D, a_TS, f_TS, h_TS = _weights(x, squared_norm, score, seen, g_SD, place, begin, tokens, T,
                                               D, S, BLOCK_T, BLOCK_S, BLOCK_D, NORM)  # fmt: skip
            dz_TS = h_TS - f_TS * h_S[None, :]
            dx_TD = tl.sum(a_TS[:, :, None] * g_SD[None, :, :] + dz_TS[:, :, None] * query_SD[None, :, :], 1)
            dquery_SD += tl.sum(dz_TS[:, :, None] * x_T1D, 0)
        tl.store(dx + (place * T + t)[:, None] * D + d, dx_TD, mask=(t < T)[:, None] & (d < D))
        if ADDED:
            tl.store(dadded + (place * T + t)[:, None] * S + s, dz_TS, mask=(t < T)[:, None] & (s < S))
    _store_by_seed(dquery + place * (S * D), dquery_SD, D, S, BLOCK_S, BLOCK_D)
