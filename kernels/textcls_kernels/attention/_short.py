# mypy: disable-error-code="import-not-found, import-untyped, no-untyped-def, no-untyped-call, no-any-return"
# mypy: disallow-untyped-decorators=False
# ruff: noqa: ANN001, ANN202
"""Metric attention of short texts: a text and head fits one block of threads, r, S and D whole on chip.

A program has one head, unpacks M once, and loops over every num_programs-th text, with its sum of dM in registers. If
registers do not suffice for that (LOOP = False), a backward program has one text, and the sum is made afterwards.

    q = scale p M     r = q p^T     S = softmax(r)     t = S p

    D = dt p^T     delta = rowsum(S D)     A = S (D - delta)     R = A + A^T
    G = scale R p     dp = S^T dt + G M     dM = 1/2 sum p^T G, then its symmetric part

Per pair of positions: 2 products and 1 exponential forward, 4 products (r, D, S^T dt, R p) and 1 exponential backward;
per position q, and in the backward q, G M and p^T G.

Compared with the kernels of `_triton.py`, which see a text in tiles: S' = S^T and D' = D^T are transposes, for which
those need a product and an exponential each; delta is the sum it stands for, not computed from a rounded t; the
backward reads neither t nor lse, since the softmax is recomputed from r; and a step is three launches, or five if K is
above 64, as M is then unpacked beforehand, once each way.

One-term q, in the 16-bit types: r_ij and r_ji come from one r here, and rows of S sum to 1, whatever q was rounded to.
What remains of that rounding is an error of r of up to |r| 2^-9 (bfloat16), which matters if |r| is large. This is
decided per text, on the device: if the largest r of some row exceeds LOUD in absolute value, q's second term is added,
one product more. The backward decides the same from the same r. The host is not involved. If CAUSAL, later positions
must not change earlier ones, not even in this way: there q always has two terms.

Launched from `_launch_short.py`. Types, letters and strides are those of `_triton.py`. In a packed batch `bounds` is
the texts' part of the table of `texts.py`, and slots are its rows: a launch may take the texts of one size class.
"""

import triton
import triton.language as tl

from textcls_kernels.attention._triton import LOG2E, _dot, _exp, _load, _scale, _store, _two_terms

# Above this |r| one term of q is not enough; one term keeps r to within 2^-9 of it, 0.06 in bfloat16.
LOUD = tl.constexpr(32.0)
NEVER = tl.constexpr(-1e30)  # the r where there is no position: finite, so that an empty text gives no NaN


@triton.jit
def _unpacked(metric, m_r, m_c, kind: tl.constexpr, K: tl.constexpr, BLOCK_K: tl.constexpr, PREPARED: tl.constexpr,
              PACKED_METRIC: tl.constexpr):  # fmt: skip
    """The symmetric part of a head's metric, with zeros up to BLOCK_K; if PREPARED, the metric is that already."""
    row, column = tl.arange(0, BLOCK_K)[:, None], tl.arange(0, BLOCK_K)[None, :]
    if PREPARED:
        return tl.load(metric + row * BLOCK_K + column)
    if PACKED_METRIC:
        number = row * K - row * (row - 1) // 2 + column - row
        upper = tl.load(metric + number * m_c, mask=(row <= column) & (column < K), other=0.0).to(tl.float32)
        return tl.where(row == column, upper, upper + tl.trans(upper)).to(kind)
    inside = (row < K) & (column < K)
    given = tl.load(metric + row * m_r + column * m_c, mask=inside, other=0.0).to(tl.float32)
    return ((given + tl.trans(given)) * 0.5).to(kind)


@triton.jit
def _text(bounds, slot, N, RAGGED: tl.constexpr, PACKED: tl.constexpr):
    """(text, its first row in the tensor, its length, rows that exist) of a slot."""
    slot = tl.zeros((), tl.int64) + slot
    if PACKED:
        length = tl.load(bounds + slot * 3 + 1)
        return slot * 0, tl.load(bounds + slot * 3).to(tl.int64), length, length
    length = N
    if RAGGED:
        length = tl.minimum(tl.maximum(tl.load(bounds + slot).to(tl.int32), 0), N)
    return slot, slot * 0, length, N


@triton.jit
def _second_term(p_i, metric_KK, scale, HALF: tl.constexpr, PRECISION: tl.constexpr):
    """What the second term of q adds to r; q is recomputed, as keeping it for this rare case would cost registers."""
    _, low = _two_terms(_dot(p_i, metric_KK, PRECISION) * _scale(scale, HALF), p_i.dtype)
    return _dot(low, tl.trans(p_i), PRECISION)


@triton.jit
def _softmax(
    p_i,
    metric_KK,
    rows,
    length,
    scale,
    EVEN: tl.constexpr,
    HALF: tl.constexpr,
    PRECISION: tl.constexpr,
    CAUSAL: tl.constexpr,
):
    """exp(r - the largest of its row), and the sums of rows. Rows that are not positions have p = 0 and r = 0."""
    q = (_dot(p_i, metric_KK, PRECISION) * _scale(scale, HALF)).to(p_i.dtype)
    r = _dot(q, tl.trans(p_i), PRECISION)
    if CAUSAL:  # for rows inside the text, the only ones kept, this also masks keys beyond the text
        r = tl.where(rows[None, :] <= rows[:, None], r, NEVER)
    elif not EVEN:
        r = tl.where(rows[None, :] < length, r, NEVER)
    top = tl.max(r, 1)
    if HALF and CAUSAL:
        r += _second_term(p_i, metric_KK, scale, HALF, PRECISION)
        top = tl.max(r, 1)
    elif HALF:  # noqa: SIM102 - one is decided when the kernel is built, the other when it runs
        if tl.max(tl.where(rows < length, tl.abs(top), 0.0), 0) > LOUD * LOG2E:
            r += _second_term(p_i, metric_KK, scale, HALF, PRECISION)
            top = tl.max(r, 1)
    s = _exp(r - top[:, None], HALF)
    return s, tl.sum(s, 1)


@triton.jit
def _text_backward(p, metric_KK, bounds, dout, dp, slot, rows, head,
                   p_b, p_h, p_n, p_k, d_b, d_h, d_n, d_k, g_b, g_h, g_n, g_k, N, scale,
                   K: tl.constexpr, BLOCK_K: tl.constexpr, RAGGED: tl.constexpr, PACKED: tl.constexpr,
                   EVEN: tl.constexpr, HALF: tl.constexpr, PRECISION: tl.constexpr, CAUSAL: tl.constexpr):  # fmt: skip
    """Store dp of a text and head; return its p^T G."""
    text, start, length, limit = _text(bounds, slot, N, RAGGED, PACKED)
    p_i = _load(p + text * p_b + head * p_h + start * p_n, rows, length, p_n, p_k, K, BLOCK_K, EVEN)
    dt_i = _load(dout + text * d_b + head * d_h + start * d_n, rows, length, d_n, d_k, K, BLOCK_K, EVEN)
    s, total = _softmax(p_i, metric_KK, rows, length, scale, EVEN, HALF, PRECISION, CAUSAL)
    # A is computed from the rounded S, so that only one S is kept and the rows of A still sum to 0.
    s_low = (s / total[:, None]).to(p_i.dtype)
    s = s_low.to(tl.float32)
    d = _dot(dt_i, tl.trans(p_i), PRECISION)
    a = s * (d - (tl.sum(s * d, 1) / tl.sum(s, 1))[:, None])
    if not HALF:  # near a one-hot softmax, delta's own rounding matters in float32
        a -= s * tl.sum(a, 1)[:, None]
    a_low = a.to(p_i.dtype)  # a transpose of 16 bits costs half; R is symmetric to the bit
    big_r = (a_low.to(tl.float32) + tl.trans(a_low).to(tl.float32)).to(p_i.dtype)
    g = (_dot(big_r, p_i, PRECISION) * scale).to(p_i.dtype)
    dp_i = _dot(tl.trans(s_low), dt_i, PRECISION) + _dot(g, metric_KK, PRECISION)
    _store(dp + text * g_b + head * g_h + start * g_n, dp_i, rows, limit, g_n, g_k, K, BLOCK_K)
    return _dot(tl.trans(p_i), g, PRECISION)


@triton.jit(do_not_specialize=["N", "first", "texts"])
def short_forward_kernel(
    p, metric, bounds, out,
    p_b, p_h, p_n, p_k, o_b, o_h, o_n, o_k, m_h, m_r, m_c,
    N, scale, first, texts,
    K: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, PREPARED: tl.constexpr, PACKED_METRIC: tl.constexpr,
    RAGGED: tl.constexpr, PACKED: tl.constexpr, EVEN: tl.constexpr, HALF: tl.constexpr, PRECISION: tl.constexpr,
    CAUSAL: tl.constexpr,
):  # fmt: skip
    """Store t of every num_programs-th of `texts` texts from slot `first` on, of one head; grid (programs, heads)."""
    head = tl.program_id(1).to(tl.int64)
    rows = tl.arange(0, BLOCK_N)
    metric_KK = _unpacked(metric + head * m_h, m_r, m_c, p.dtype.element_ty, K, BLOCK_K, PREPARED, PACKED_METRIC)
    for slot in range(first + tl.program_id(0), first + texts, tl.num_programs(0)):
        text, start, length, limit = _text(bounds, slot, N, RAGGED, PACKED)
        p_i = _load(p + text * p_b + head * p_h + start * p_n, rows, length, p_n, p_k, K, BLOCK_K, EVEN)
        s, total = _softmax(p_i, metric_KK, rows, length, scale, EVEN, HALF, PRECISION, CAUSAL)
        t = _dot(s.to(p_i.dtype), p_i, PRECISION) / total[:, None]
        if not EVEN:
            t = tl.where(rows[:, None] < length, t, 0.0)
        _store(out + text * o_b + head * o_h + start * o_n, t, rows, limit, o_n, o_k, K, BLOCK_K)


@triton.jit(do_not_specialize=["N", "first", "texts", "first_partial", "again"])
def short_backward_kernel(
    p, metric, bounds, dout, dp, partial,
    p_b, p_h, p_n, p_k, d_b, d_h, d_n, d_k, g_b, g_h, g_n, g_k, m_h, m_r, m_c,
    N, scale, first, texts, first_partial, again,
    K: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, PREPARED: tl.constexpr, PACKED_METRIC: tl.constexpr,
    RAGGED: tl.constexpr, PACKED: tl.constexpr, EVEN: tl.constexpr, HALF: tl.constexpr, PRECISION: tl.constexpr,
    CAUSAL: tl.constexpr, LOOP: tl.constexpr,
):  # fmt: skip
    """Gradient dp of the same texts, and their p^T G in partial[first_partial + program, head].

    If LOOP, a program sums over its texts in registers; else it has one text, and if `again` adds to what is there.
    """
    head = tl.program_id(1).to(tl.int64)
    rows = tl.arange(0, BLOCK_N)
    metric_KK = _unpacked(metric + head * m_h, m_r, m_c, p.dtype.element_ty, K, BLOCK_K, PREPARED, PACKED_METRIC)
    place = (first_partial + tl.program_id(0)).to(tl.int64) * tl.num_programs(1) + head
    row, column = tl.arange(0, BLOCK_K)[:, None], tl.arange(0, BLOCK_K)[None, :]
    partial += place * BLOCK_K * BLOCK_K + row * BLOCK_K + column
    if LOOP:
        dmetric = tl.zeros([BLOCK_K, BLOCK_K], tl.float32)
        for slot in range(first + tl.program_id(0), first + texts, tl.num_programs(0)):
            dmetric += _text_backward(p, metric_KK, bounds, dout, dp, slot, rows, head,
                                      p_b, p_h, p_n, p_k, d_b, d_h, d_n, d_k, g_b, g_h, g_n, g_k,
                                      N, scale, K, BLOCK_K, RAGGED, PACKED, EVEN, HALF, PRECISION, CAUSAL)  # fmt: skip
        tl.store(partial, dmetric)
    else:
        own = _text_backward(p, metric_KK, bounds, dout, dp, first + tl.program_id(0), rows, head,
                             p_b, p_h, p_n, p_k, d_b, d_h, d_n, d_k, g_b, g_h, g_n, g_k,
                             N, scale, K, BLOCK_K, RAGGED, PACKED, EVEN, HALF, PRECISION, CAUSAL)  # fmt: skip
        before = tl.load(partial, mask=row + column < again * (2 * BLOCK_K), other=0.0)  # all of it, or nothing
        tl.store(partial, before + own)
