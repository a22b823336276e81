# mypy: disable-error-code="import-not-found, import-untyped, no-untyped-def, no-untyped-call, no-any-return"
# mypy: disallow-untyped-decorators=False
# ruff: noqa: ANN001, ANN202
"""Metric attention fused, tile by tile, forward and backward; and pooling by seeds. Launched from `_launch.py`.

Forward, for a tile i of positions as queries and every tile j of its text as keys AND values, loaded once:

    q_i = scale p_i M                  scale = 1/sqrt(K)
    r_ij = q_i p_j^T                   -inf where j is not a position of the text
    m, l, t: online softmax            t_i = sum_j exp(r_ij - m) p_j / l;   lse_i = m + log(l)

Backward, one pass over the same tiles. r is symmetric, so that one r_ij gives both softmaxes, and a tile i gathers all
that it is to get without atomics, in a fixed order: the same bits on every run.

    S  = exp(r_ij - lse_i)             what i gives to j as a query
    S' = exp(r_ij - lse_j)             what j gives to i, transposed
    D = dt_i p_j^T     D' = p_i dt_j^T     delta = rowsum(dt * t)
    R = S (D - delta_i) + S' (D' - delta_j)
    G_i += scale R p_j      V_i += S' dt_j      e_i += rowsum(S (D - delta_i))   then G_i -= 2 scale e_i t_i
    dp_i = G_i M + V_i      dM = 1/2 sum_i p_i^T G_i, then its symmetric part

delta has the rounding of t, which in 16 bits is larger than all of R if a softmax is near one-hot. Its error, e, is
known only after the pass: R lacked -S e_i - S' e_j. In dM = 1/2 sum_i p_i^T G_i, of which the symmetric part counts,
both terms come to -sum_i e_i p_i^T t_i / 2, which -2 e_i t_i in G_i corrects without a second pass. In dp that corrects
the term of i and, if the softmax is near one-hot, that of j.

CAUSAL: i sees j where j <= i, so that S = 0 for the j after i and S' = 0 for those before it. The forward stops at the
diagonal; the backward visits all tiles, those before i for S and those after it for S', and saves no product.

Saved by the forward: p, the metric as given, t, lse. A position of no text has lse = +inf: S = S' = 0 there, not NaN.

Types: p, t and their gradients in the caller's; r, the softmax, D, D', R, G, V, lse, delta and dM's sums in float32.
Operands of a product are in p's type (q in two terms in the 16-bit types, below), its sum in float32; float32
operands are multiplied as three TF32 products ("tf32x3"), which keeps float32's accuracy on the tensor cores.

HALF, the 16-bit types, differ from float32 in two ways.
- Base 2: q includes the factor log2(e), so exp is the hardware's exp2; lse is then in base 2. In float32 the rounding
  of that factor, times |r|, would be the largest error of all.
- q in two terms: the symmetry of r is exact only in exact arithmetic. With q rounded to 16 bits r_ij differs from r_ji,
  and columns of S' miss 1 by 0.2 % at |r| = 12 and 4 % at |r| = 120. So q = high + low, one product more a tile.

WIDE: if the tiles of i do not fit the registers, q is kept in memory and the products over K run CHUNK columns at a
time, their operands read again for every tile j.

The source's kernel doubles terms that are not equal (see `reference.py`); nothing of it is used.

Letters: i rows of a tile of queries, j of keys; K width, BLOCK_K = K rounded up to a power of two, at least 16.
A padded batch is [B, H, N, K] with `bounds` = lengths [B]; a packed one is [T, H, K] with `bounds` = the tiles in the
table of `texts.py` (the seed kernels: cu_lengths [B + 1]) and a batch stride of 0.
Counts change from batch to batch, so the compiler must not make variants for 1 and for multiples of 16.
Strides are named by tensor and dimension: p_n is p's from a position to the next; o t, d dt, g dp, l lse and delta,
m the metric, s seeds, w weights, x dweights, y dpooled; b text, h head, n position, k width, r row, c column, s seed.
"""

import triton
import triton.language as tl

from textcls_kernels.attention.texts import TILE

LOG2E = tl.constexpr(1.4426950408889634)
TABLE_TILE = tl.constexpr(TILE)


@triton.jit
def _dot(a, b, PRECISION: tl.constexpr):
    """Return a b, summed in float32; Triton's interpreter multiplies bfloat16 wrongly: PRECISION is "upcast" there."""
    if PRECISION == "upcast":
        return tl.dot(a.to(tl.float32), b.to(tl.float32), input_precision="ieee")
    return tl.dot(a, b, input_precision=PRECISION)


@triton.jit
def _locate(bounds, slot, N, BLOCK_M: tl.constexpr, RAGGED: tl.constexpr, PACKED: tl.constexpr):
    """(text, its first row in the tensor, its length, first row of the slot's tile in the text, rows that exist)."""
    if PACKED:
        row = tl.zeros((), tl.int32) + slot * BLOCK_M
        entry = bounds + row // TABLE_TILE * 3
        length = tl.load(entry + 1)
        return length * 0, tl.load(entry), length, tl.load(entry + 2) + row % TABLE_TILE, length
    tiles = tl.cdiv(N, BLOCK_M)
    text = slot // tiles
    length = N
    if RAGGED:
        length = tl.minimum(tl.maximum(tl.load(bounds + text).to(tl.int32), 0), N)
    return text, 0, length, (slot % tiles) * BLOCK_M, N


@triton.jit
def _load(pointer, rows, length, stride_n, stride_k, K: tl.constexpr, BLOCK_K: tl.constexpr, EVEN: tl.constexpr):
    """A [rows, BLOCK_K] tile, 0 beyond `length` rows and K columns."""
    columns = tl.arange(0, BLOCK_K)
    pointers = pointer + rows[:, None] * stride_n + columns[None, :] * stride_k
    if EVEN and K == BLOCK_K:
        return tl.load(pointers)
    if K == BLOCK_K:
        return tl.load(pointers, mask=rows[:, None] < length, other=0.0)
    return tl.load(pointers, mask=(rows[:, None] < length) & (columns[None, :] < K), other=0.0)


@triton.jit
def _store(pointer, tile, rows, limit, stride_n, stride_k, K: tl.constexpr, BLOCK_K: tl.constexpr):
    columns = tl.arange(0, BLOCK_K)
    pointers = pointer + rows[:, None] * stride_n + columns[None, :] * stride_k
    tl.store(pointers, tile.to(pointer.dtype.element_ty), mask=(rows[:, None] < limit) & (columns[None, :] < K))


@triton.jit
def _part(pointer, rows, length, stride_n, stride_k, first, K: tl.constexpr, CHUNK: tl.constexpr):
    """Columns [first, first + CHUNK) of a tile, 0 beyond `length` rows and K columns."""
    columns = first + tl.arange(0, CHUNK)
    mask = (rows[:, None] < length) & (columns[None, :] < K)
    return tl.load(pointer + rows[:, None] * stride_n + columns[None, :] * stride_k, mask=mask, other=0.0)


@triton.jit
def _times_metric(pointer, rows, length, stride_n, stride_k, metric, K: tl.constexpr, BLOCK_M: tl.constexpr,
                  BLOCK_K: tl.constexpr, CHUNK: tl.constexpr, PRECISION: tl.constexpr):  # fmt: skip
    """A [BLOCK_M, BLOCK_K] tile of p or G times M, CHUNK columns at a time: a wide M does not fit the registers."""
    columns = tl.arange(0, BLOCK_K)
    total = tl.zeros([BLOCK_M, BLOCK_K], tl.float32)
    for first in tl.range(0, BLOCK_K, CHUNK, num_stages=1):
        tile = _part(pointer, rows, length, stride_n, stride_k, first, K, CHUNK)
        metric_CK = tl.load(metric + (first + tl.arange(0, CHUNK))[:, None] * BLOCK_K + columns[None, :])
        total += _dot(tile.to(metric_CK.dtype), metric_CK, PRECISION)
    return total


@triton.jit
def prepare_metric_kernel(
    metric, full, m_h, m_r, m_c, K: tl.constexpr, BLOCK_K: tl.constexpr, PACKED_METRIC: tl.constexpr,
    BLOCK: tl.constexpr,
):  # fmt: skip
    """Fill `full` with the symmetric part of the metric in p's type, zeros up to BLOCK_K; grid (its blocks, heads)."""
    head = tl.program_id(1).to(tl.int64)
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    row, column = place // BLOCK_K, place % BLOCK_K
    inside = (row < K) & (column < K)
    if PACKED_METRIC:
        low, high = tl.minimum(row, column), tl.maximum(row, column)
        number = low * K - low * (low - 1) // 2 + high - low
        value = tl.load(metric + head * m_h + number * m_c, mask=inside, other=0.0).to(tl.float32)
    else:
        upper = tl.load(metric + head * m_h + row * m_r + column * m_c, mask=inside, other=0.0).to(tl.float32)
        lower = tl.load(metric + head * m_h + column * m_r + row * m_c, mask=inside, other=0.0).to(tl.float32)
        value = (upper + lower) * 0.5
    tl.store(full + head * BLOCK_K * BLOCK_K + place, value.to(full.dtype.element_ty), mask=place < BLOCK_K * BLOCK_K)


@triton.jit
def _two_terms(q, kind: tl.constexpr):
    """Split q into a sum of two numbers of a shorter type."""
    high = q.to(kind)
    return high, (q - high.to(tl.float32)).to(kind)


@triton.jit
def _exp(x, HALF: tl.constexpr):
    """2^x in the 16-bit types, whose scores contain the factor log2(e) already; e^x in float32."""
    return tl.math.exp2(x) if HALF else tl.math.exp2(x * LOG2E)


@triton.jit
def _log(x, HALF: tl.constexpr):
    return tl.math.log2(x) if HALF else tl.math.log(x)


@triton.jit
def _scale(scale, HALF: tl.constexpr):
    return scale * LOG2E if HALF else scale


@triton.jit
def _scores(high, low, p_j, PRECISION: tl.constexpr, HALF: tl.constexpr):
    """Return r = q p_j^T of a tile."""
    r = _dot(high, tl.trans(p_j), PRECISION)
    if HALF:
        r += _dot(low, tl.trans(p_j), PRECISION)
    return r


@triton.jit(do_not_specialize=["N"])
def forward_kernel(
    p, metric, bounds, out, lse, scratch,
    p_b, p_h, p_n, p_k, o_b, o_h, o_n, o_k, l_b, l_h,
    N, scale,
    K: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, CHUNK: tl.constexpr,
    RAGGED: tl.constexpr, PACKED: tl.constexpr, EVEN: tl.constexpr, HALF: tl.constexpr, PRECISION: tl.constexpr,
    WIDE: tl.constexpr, CAUSAL: tl.constexpr,
):  # fmt: skip
    """Store t and lse of one tile of one head; grid (slots, heads)."""
    head = tl.program_id(1).to(tl.int64)
    text, start, length, first, limit = _locate(bounds, tl.program_id(0), N, BLOCK_M, RAGGED, PACKED)
    text = text.to(tl.int64)
    if first >= limit:
        return
    start = tl.zeros((), tl.int64) + start
    p += text * p_b + head * p_h + start * p_n
    out += text * o_b + head * o_h + start * o_n
    lse += text * l_b + head * l_h + start
    rows = first + tl.arange(0, BLOCK_M)

    metric += head * BLOCK_K * BLOCK_K
    q = _times_metric(p, rows, length, p_n, p_k, metric, K, BLOCK_M, BLOCK_K, CHUNK, PRECISION) * _scale(scale, HALF)
    if WIDE:
        scratch += text * o_b + head * o_h + start * o_n
        _store(scratch, q, rows, limit, o_n, o_k, K, BLOCK_K)
        tl.debug_barrier()
    else:
        high, low = _two_terms(q, p.dtype.element_ty)

    top = tl.full([BLOCK_M], float("-inf"), tl.float32)
    total = tl.zeros([BLOCK_M], tl.float32)
    acc = tl.zeros([BLOCK_M, BLOCK_K], tl.float32)
    end = tl.minimum(length, first + BLOCK_M) if CAUSAL else length
    for first_key in range(0, end, BLOCK_N):
        keys = first_key + tl.arange(0, BLOCK_N)
        if WIDE:
            r = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)
            for first in tl.range(0, BLOCK_K, CHUNK, num_stages=1):
                q_c = _part(scratch, rows, length, o_n, o_k, first, K, CHUNK)
                high, low = _two_terms(q_c, p.dtype.element_ty)
                r += _scores(high, low, _part(p, keys, length, p_n, p_k, first, K, CHUNK), PRECISION, HALF)
        p_j = _load(p, keys, length, p_n, p_k, K, BLOCK_K, EVEN)
        if not WIDE:
            r = _scores(high, low, p_j, PRECISION, HALF)
        if CAUSAL:  # for rows inside the text, the only ones kept, this also masks keys beyond the text
            r = tl.where(keys[None, :] <= rows[:, None], r, float("-inf"))
        elif not EVEN:
            r = tl.where(keys[None, :] < length, r, float("-inf"))
        new_top = tl.maximum(top, tl.max(r, 1))  # finite: the first tile holds a key that every row sees
        s = _exp(r - new_top[:, None], HALF)
        shrink = _exp(top - new_top, HALF)
        total = total * shrink + tl.sum(s, 1)
        acc = acc * shrink[:, None]
        acc += _dot(s.to(p_j.dtype), p_j, PRECISION)
        top = new_top

    valid = rows < length
    total = tl.where(valid, total, 1.0)
    acc = tl.where(valid[:, None], acc / total[:, None], 0.0)
    _store(out, acc, rows, limit, o_n, o_k, K, BLOCK_K)
    tl.store(lse + rows, tl.where(valid, top + _log(total, HALF), float("inf")), mask=rows < limit)


@triton.jit(do_not_specialize=["N"])
def delta_kernel(
    out, dout, delta, o_b, o_h, o_n, o_k, d_b, d_h, d_n, d_k, l_b, l_h, N,
    K: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    """Store delta = rowsum(dt * t) of BLOCK_M rows of one head; grid (tiles x texts, heads)."""
    tiles = tl.cdiv(N, BLOCK_M)
    text, head = (tl.program_id(0) // tiles).to(tl.int64), tl.program_id(1).to(tl.int64)
    rows = ((tl.program_id(0) % tiles) * BLOCK_M + tl.arange(0, BLOCK_M)).to(tl.int64)
    t_i = _load(out + text * o_b + head * o_h, rows, N, o_n, o_k, K, BLOCK_K, False)
    dt_i = _load(dout + text * d_b + head * d_h, rows, N, d_n, d_k, K, BLOCK_K, False)
    total = tl.sum(t_i.to(tl.float32) * dt_i.to(tl.float32), 1)
    tl.store(delta + text * l_b + head * l_h + rows, total, mask=rows < N)


@triton.jit(do_not_specialize=["N", "slots", "slots_a_program"])
def backward_kernel(
    p, metric, bounds, out, dout, lse, delta, dp, partial, scratch,
    p_b, p_h, p_n, p_k, d_b, d_h, d_n, d_k, g_b, g_h, g_n, g_k, l_b, l_h,
    N, scale, slots, slots_a_program,
    K: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, CHUNK: tl.constexpr,
    RAGGED: tl.constexpr, PACKED: tl.constexpr, EVEN: tl.constexpr, HALF: tl.constexpr, PRECISION: tl.constexpr,
    WIDE: tl.constexpr, CAUSAL: tl.constexpr,
):  # fmt: skip
    """Gradient dp of some tiles of a head; their p_i^T G_i summed in partial[program, head]; grid (programs, heads)."""
    head = tl.program_id(1).to(tl.int64)
    metric += head * BLOCK_K * BLOCK_K
    partial += (tl.program_id(0).to(tl.int64) * tl.num_programs(1) + head) * BLOCK_K * BLOCK_K
    first_slot = tl.program_id(0) * slots_a_program
    for slot in range(first_slot, tl.minimum(first_slot + slots_a_program, slots)):
        text, start, length, first, limit = _locate(bounds, slot, N, BLOCK_M, RAGGED, PACKED)
        text, start = text.to(tl.int64), tl.zeros((), tl.int64) + start
        p_t = p + text * p_b + head * p_h + start * p_n
        d_t = dout + text * d_b + head * d_h + start * d_n
        lse_t = lse + text * l_b + head * l_h + start
        delta_t = delta + text * l_b + head * l_h + start
        rows = first + tl.arange(0, BLOCK_M)
        lse_i = tl.load(lse_t + rows, mask=rows < length, other=float("inf"))
        delta_i = tl.load(delta_t + rows, mask=rows < length, other=0.0)
        q = _times_metric(p_t, rows, length, p_n, p_k, metric, K, BLOCK_M, BLOCK_K, CHUNK, PRECISION)
        q *= _scale(scale, HALF)
        if WIDE:
            scratch_t = scratch + text * g_b + head * g_h + start * g_n
            _store(scratch_t, q, rows, limit, g_n, g_k, K, BLOCK_K)
            tl.debug_barrier()
        else:
            p_i = _load(p_t, rows, length, p_n, p_k, K, BLOCK_K, EVEN)
            dt_i = _load(d_t, rows, length, d_n, d_k, K, BLOCK_K, EVEN)
            high, low = _two_terms(q, p.dtype.element_ty)

        g = tl.zeros([BLOCK_M, BLOCK_K], tl.float32)
        v = tl.zeros([BLOCK_M, BLOCK_K], tl.float32)
        gap = tl.zeros([BLOCK_M], tl.float32)
        for first_key in range(0, tl.where(first < length, length, 0), BLOCK_N):
            keys = first_key + tl.arange(0, BLOCK_N)
            if WIDE:
                r = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)
                d = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)
                d_back = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)
                for c in tl.range(0, BLOCK_K, CHUNK, num_stages=1):
                    q_c = _part(scratch_t, rows, length, g_n, g_k, c, K, CHUNK)
                    high, low = _two_terms(q_c, p.dtype.element_ty)
                    p_jc = _part(p_t, keys, length, p_n, p_k, c, K, CHUNK)
                    r += _scores(high, low, p_jc, PRECISION, HALF)
                    d += _dot(_part(d_t, rows, length, d_n, d_k, c, K, CHUNK), tl.trans(p_jc), PRECISION)
                    dt_jc = _part(d_t, keys, length, d_n, d_k, c, K, CHUNK)
                    d_back += _dot(_part(p_t, rows, length, p_n, p_k, c, K, CHUNK), tl.trans(dt_jc), PRECISION)
            p_j = _load(p_t, keys, length, p_n, p_k, K, BLOCK_K, EVEN)
            dt_j = _load(d_t, keys, length, d_n, d_k, K, BLOCK_K, EVEN)
            if not WIDE:
                r = _scores(high, low, p_j, PRECISION, HALF)
                d = _dot(dt_i, tl.trans(p_j), PRECISION)
                d_back = _dot(p_i, tl.trans(dt_j), PRECISION)
            lse_j = tl.load(lse_t + keys, mask=keys < length, other=float("inf"))
            delta_j = tl.load(delta_t + keys, mask=keys < length, other=0.0)
            if CAUSAL:  # a pair is in S or in S', on the diagonal in both alike: one exponential; 0 where lse is inf
                seen, seeing = keys[None, :] <= rows[:, None], rows[:, None] <= keys[None, :]
                s = _exp(r - tl.where(seen, lse_i[:, None], lse_j[None, :]), HALF)
                s_back = tl.where(seeing, s, 0.0)
                s = tl.where(seen, s, 0.0)
            else:
                s = _exp(r - lse_i[:, None], HALF)
                s_back = _exp(r - lse_j[None, :], HALF)
                if not EVEN:  # r = 0 beyond the text, and exp2(0 - lse) may overflow where r is far below 0
                    s = tl.where(keys[None, :] < length, s, 0.0)
                    s_back = tl.where(rows[:, None] < length, s_back, 0.0)
            v += _dot(s_back.to(p_j.dtype), dt_j, PRECISION)
            own = s * (d - delta_i[:, None])
            gap += tl.sum(own, 1)
            big_r = own + s_back * (d_back - delta_j[None, :])
            g += _dot(big_r.to(p_j.dtype), p_j, PRECISION)

        t_i = _load(out + text * g_b + head * g_h + start * g_n, rows, length, g_n, g_k, K, BLOCK_K, EVEN)
        g -= (2 * gap)[:, None] * t_i.to(tl.float32)
        # dp's memory contains G until G M replaces it; its rows belong to this program alone.
        dp_t = dp + text * g_b + head * g_h + start * g_n
        g_low = (g * scale).to(p.dtype.element_ty)
        _store(dp_t, g_low, rows, limit, g_n, g_k, K, BLOCK_K)
        tl.debug_barrier()
        v += _times_metric(dp_t, rows, limit, g_n, g_k, metric, K, BLOCK_M, BLOCK_K, CHUNK, PRECISION)
        tl.debug_barrier()
        _store(dp_t, v, rows, limit, g_n, g_k, K, BLOCK_K)
        # The sum over tiles is in memory, not in registers, which are scarce; no other program writes there.
        for first_column in tl.range(0, BLOCK_K, CHUNK, num_stages=1):
            p_part = _part(p_t, rows, length, p_n, p_k, first_column, K, CHUNK)
            part = first_column + tl.arange(0, CHUNK)
            pointers = partial + part[:, None] * BLOCK_K + tl.arange(0, BLOCK_K)[None, :]
            again = part[:, None] + slot > part[:, None] + first_slot  # the interpreter wants a tensor as mask
            before = tl.load(pointers, mask=again, other=0.0)
            tl.debug_barrier()
            tl.store(pointers, before + _dot(tl.trans(p_part), g_low, PRECISION))


@triton.jit(do_not_specialize=["programs"])
def metric_gradient_kernel(
    partial, dmetric, programs, K: tl.constexpr, BLOCK_K: tl.constexpr, PACKED_METRIC: tl.constexpr,
    ROWS: tl.constexpr, EDGE: tl.constexpr,
):  # fmt: skip
    """Store dM = 1/4 sum over programs of (X + X^T), in order, full or packed; grid (squares of K x K, heads)."""
    head, heads = tl.program_id(1), tl.num_programs(1)
    squares = (K + EDGE - 1) // EDGE
    place = tl.arange(0, EDGE * EDGE)
    row = tl.program_id(0) // squares * EDGE + place // EDGE
    column = tl.program_id(0) % squares * EDGE + place % EDGE
    inside = (row < K) & (column < K)
    acc = tl.zeros([ROWS, EDGE * EDGE], tl.float32)
    for first in range(0, programs, ROWS):
        program = first + tl.arange(0, ROWS)
        base = partial + ((program.to(tl.int64) * heads + head) * BLOCK_K * BLOCK_K)[:, None]
        mask = (program[:, None] < programs) & inside[None, :]
        acc += tl.load(base + (row * BLOCK_K + column)[None, :], mask=mask, other=0.0)
        acc += tl.load(base + (column * BLOCK_K + row)[None, :], mask=mask, other=0.0)
    total = tl.sum(acc, 0) * 0.25
    if PACKED_METRIC:  # a number off the diagonal is in two places of M
        number = row * K - row * (row - 1) // 2 + column - row
        total = tl.where(row == column, total, 2 * total).to(dmetric.dtype.element_ty)
        tl.store(dmetric + head * (K * (K + 1) // 2) + number, total, mask=(row <= column) & inside)
    else:
        tl.store(dmetric + head * K * K + row * K + column, total.to(dmetric.dtype.element_ty), mask=inside)


@triton.jit(do_not_specialize=["N", "S"])
def seed_forward_kernel(
    seeds, p, metric, bounds, pooled, weight,
    s_h, s_s, s_k, p_b, p_h, p_n, p_k, w_b, w_h, w_s,
    N, scale, S,
    K: tl.constexpr, BLOCK_S: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, CHUNK: tl.constexpr,
    RAGGED: tl.constexpr, PACKED: tl.constexpr, EVEN: tl.constexpr, HALF: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """Pooled vectors and weights of one text and head, p read once; grid (texts, heads)."""
    head = tl.program_id(1).to(tl.int64)
    text, start, length, _ = _whole_text(bounds, N, RAGGED, PACKED)
    p += text * p_b + head * p_h + start * p_n
    weight += text * w_b + head * w_h + start
    seed = tl.arange(0, BLOCK_S)
    q = _times_metric(seeds + head * s_h, seed, S, s_s, s_k, metric + head * BLOCK_K * BLOCK_K,
                      K, BLOCK_S, BLOCK_K, CHUNK, PRECISION)  # fmt: skip
    high, low = _two_terms(q * _scale(scale, HALF), p.dtype.element_ty)

    top = tl.full([BLOCK_S], float("-inf"), tl.float32)
    total = tl.zeros([BLOCK_S], tl.float32)
    acc = tl.zeros([BLOCK_S, BLOCK_K], tl.float32)
    for first_key in range(0, length, BLOCK_N):
        keys = first_key + tl.arange(0, BLOCK_N)
        p_j = _load(p, keys, length, p_n, p_k, K, BLOCK_K, EVEN)
        r = _scores(high, low, p_j, PRECISION, HALF)
        r = tl.where(keys[None, :] < length, r, float("-inf"))
        # The weights' memory contains r until the sum is known: S numbers per position, whereas p has K.
        mask = (seed[:, None] < S) & (keys[None, :] < length)
        tl.store(weight + seed[:, None] * w_s + keys[None, :], r, mask=mask)
        new_top = tl.maximum(top, tl.max(r, 1))
        s = _exp(r - new_top[:, None], HALF)
        shrink = _exp(top - new_top, HALF)
        total = total * shrink + tl.sum(s, 1)
        acc = acc * shrink[:, None]
        acc += _dot(s.to(p_j.dtype), p_j, PRECISION)
        top = new_top

    total = tl.where(length > 0, total, 1.0)
    pooled += (text * tl.num_programs(1) + head) * S * K
    _store(pooled, acc / total[:, None], seed, S, K, 1, K, BLOCK_K)
    tl.debug_barrier()  # another thread may have stored the r that this one loads
    for first_key in range(0, length, BLOCK_N):
        keys = first_key + tl.arange(0, BLOCK_N)
        mask = (seed[:, None] < S) & (keys[None, :] < length)
        pointers = weight + seed[:, None] * w_s + keys[None, :]
        r = tl.load(pointers, mask=mask, other=float("-inf"))
        tl.store(pointers, _exp(r - top[:, None], HALF) / total[:, None], mask=mask)


@triton.jit
def _whole_text(bounds, N, RAGGED: tl.constexpr, PACKED: tl.constexpr):
    """(text, its first row in the tensor, its length, rows that exist) of the program's text."""
    text = tl.program_id(0)
    start, length = 0, N
    if PACKED:
        start = tl.minimum(tl.maximum(tl.load(bounds + text).to(tl.int32), 0), N)
        length = tl.minimum(tl.maximum(tl.load(bounds + text + 1).to(tl.int32), start), N) - start
    elif RAGGED:
        length = tl.minimum(tl.maximum(tl.load(bounds + text).to(tl.int32), 0), N)
    return text.to(tl.int64), tl.zeros((), tl.int64) + start, length, length if PACKED else N


@triton.jit(do_not_specialize=["N", "S"])
def seed_backward_kernel(
    seeds, p, metric, bounds, weight, dpooled, dweight, dp, dq,
    s_h, s_s, s_k, p_b, p_h, p_n, p_k, w_b, w_h, w_s, x_b, x_h, x_s, x_n,
    y_b, y_h, y_s, y_k, g_b, g_h, g_n, g_k,
    N, scale, S,
    K: tl.constexpr, BLOCK_S: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, CHUNK: tl.constexpr,
    RAGGED: tl.constexpr, PACKED: tl.constexpr, EVEN: tl.constexpr, HALF: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """Gradients of one text and head: dp, and dq [B, H, S, K] for the little that is left; grid (texts, heads).

    With w the weights, dw and dy the gradients of weights and pooled vectors, q = seeds M:
    W = dw + dy p_j^T;  delta = sum_j w W;  R = scale w (W - delta);  dp_j = R^T q + w^T dy;  dq += R p_j

    delta takes a pass of its own over p, which is near by then: so R sums to 0 over a text up to its own rounding.
    """
    head = tl.program_id(1).to(tl.int64)
    text, start, length, limit = _whole_text(bounds, N, RAGGED, PACKED)
    p += text * p_b + head * p_h + start * p_n
    dp += text * g_b + head * g_h + start * g_n
    weight += text * w_b + head * w_h + start
    dweight += text * x_b + head * x_h + start * x_n
    seed = tl.arange(0, BLOCK_S)
    q = _times_metric(seeds + head * s_h, seed, S, s_s, s_k, metric + head * BLOCK_K * BLOCK_K,
                      K, BLOCK_S, BLOCK_K, CHUNK, PRECISION).to(p.dtype.element_ty)  # fmt: skip
    dy = _load(dpooled + text * y_b + head * y_h, seed, S, y_s, y_k, K, BLOCK_K, False)

    delta = tl.zeros([BLOCK_S], tl.float32)
    for first_key in range(0, length, BLOCK_N):
        keys = first_key + tl.arange(0, BLOCK_N)
        mask = (seed[:, None] < S) & (keys[None, :] < length)
        w = tl.load(weight + seed[:, None] * w_s + keys[None, :], mask=mask, other=0.0)
        dw = tl.load(dweight + seed[:, None] * x_s + keys[None, :] * x_n, mask=mask, other=0.0)
        p_j = _load(p, keys, length, p_n, p_k, K, BLOCK_K, EVEN)
        delta += tl.sum(w * (dw + _dot(dy, tl.trans(p_j), PRECISION)), 1)

    acc = tl.zeros([BLOCK_S, BLOCK_K], tl.float32)
    for first_key in range(0, limit, BLOCK_N):  # up to the padding's end: its gradient is 0, not unwritten memory
        keys = first_key + tl.arange(0, BLOCK_N)
        mask = (seed[:, None] < S) & (keys[None, :] < length)
        w = tl.load(weight + seed[:, None] * w_s + keys[None, :], mask=mask, other=0.0)
        dw = tl.load(dweight + seed[:, None] * x_s + keys[None, :] * x_n, mask=mask, other=0.0)
        p_j = _load(p, keys, length, p_n, p_k, K, BLOCK_K, EVEN)
        big_r = w * (dw + _dot(dy, tl.trans(p_j), PRECISION) - delta[:, None]) * scale
        big_r = big_r.to(p_j.dtype)
        dp_j = _dot(tl.trans(big_r), q, PRECISION) + _dot(tl.trans(w.to(p_j.dtype)), dy, PRECISION)
        _store(dp, dp_j, keys, limit, g_n, g_k, K, BLOCK_K)
        acc += _dot(big_r, p_j, PRECISION)
    _store(dq + (text * tl.num_programs(1) + head) * S * K, acc, seed, S, K, 1, K, BLOCK_K)
