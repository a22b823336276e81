# mypy: disable-error-code="import-not-found, import-untyped, no-untyped-def, no-untyped-call, no-any-return"
# mypy: disallow-untyped-decorators=False
# ruff: noqa: ANN001, ANN202
"""Kernels of the table: rows are read by tokens, and moved by row-wise Adagrad. All of it is float32.

The uses of a batch are sorted by row, those of a row in the order of the batch. The sorted uses are cut into windows of
`WINDOW`. The uses of one row in one window are a piece, and one program adds them up. A row with a single piece is
moved by that program at once; the pieces of other rows are kept, and a second launch adds them up in order and moves
the row. So no addition is atomic, none depends on which program is first, and no row makes one program slow.

A window can contain the end of one such row and the beginning of another: its pieces have two places, 2w if a piece
begins with the window w, else 2w + 1.

Letters: X places (tokens), R uses of rows, V rows of the table, D width, U uses that a program reads at once.
"""

import triton
import triton.language as tl


@triton.jit(do_not_specialize=["places"])
def gather_kernel(
    row_R,
    start_X,
    weight_V,
    row_VD,
    x_XD,
    norm_X,
    places,
    D: tl.constexpr,
    BLOCK_X: tl.constexpr,
    BLOCK_U: tl.constexpr,
    BLOCK_D: tl.constexpr,
):
    """Give each place sum_r c_r E_r and sum_r c_r^2 over its rows; 0 where there are none."""
    x = tl.program_id(0) * BLOCK_X + tl.arange(0, BLOCK_X)
    d = tl.arange(0, BLOCK_D)[None, None, :]
    begin_X = tl.load(start_X + x, mask=x < places, other=0)
    uses_X = tl.load(start_X + x + 1, mask=x < places, other=0) - begin_X
    total_XD = tl.zeros([BLOCK_X, BLOCK_D], tl.float32)
    square_X = tl.zeros([BLOCK_X], tl.float32)
    for first in range(0, tl.max(uses_X, 0), BLOCK_U):
        u = (first + tl.arange(0, BLOCK_U))[None, :]
        inside_XU = u < uses_X[:, None]
        row_XU = tl.load(row_R + begin_X[:, None] + u, mask=inside_XU, other=0)
        weight_XU = tl.load(weight_V + row_XU, mask=inside_XU, other=0.0)
        at_XUD = row_XU.to(tl.int64)[:, :, None] * D + d
        e_XUD = tl.load(row_VD + at_XUD, mask=inside_XU[:, :, None] & (d < D), other=0.0)
        total_XD += tl.sum(weight_XU[:, :, None] * e_XUD, 1)
        square_X += tl.sum(weight_XU * weight_XU, 1)
    d_D = tl.arange(0, BLOCK_D)[None, :]
    tl.store(x_XD + x.to(tl.int64)[:, None] * D + d_D, total_XD, mask=(x < places)[:, None] & (d_D < D))
    tl.store(norm_X + x, square_X, mask=x < places)


@triton.jit
def _move(row, gradient_D, weight_V, row_VD, sum_V, rate, D: tl.constexpr, BLOCK_D: tl.constexpr):
    """Row-wise Adagrad, s += mean g^2, E -= rate g / sqrt(s): g is the row's weight times the sum of its uses.

    The rate is read from memory: a recorded launch runs at another one each time.
    """
    d = tl.arange(0, BLOCK_D)
    g_D = tl.load(weight_V + row) * gradient_D
    s = tl.load(sum_V + row) + tl.sum(g_D * g_D, 0) / D
    tl.store(sum_V + row, s)
    at_D = row_VD + row.to(tl.int64) * D + d
    tl.store(at_D, tl.load(at_D, mask=d < D, other=0.0) - tl.load(rate) / tl.sqrt(s) * g_D, mask=d < D)


@triton.jit(do_not_specialize=["uses"])
def adagrad_kernel(
    row_R,
    order_R,
    place_R,
    weight_V,
    row_VD,
    sum_V,
    grad_XD,
    piece_WD,
    uses,
    rate,
    D: tl.constexpr,
    WINDOW: tl.constexpr,
    BLOCK_U: tl.constexpr,
    BLOCK_D: tl.constexpr,
):
    """One program per use: those that begin a piece add it up, and move its row or keep the piece.

    row_R is sorted; order_R says which use of the batch each is, and place_R where the gradient of that use is.
    """
    begin = tl.program_id(0)
    row = tl.load(row_R + begin)
    first = tl.load(row_R + begin - 1, mask=begin > 0, other=0) != row
    window = begin // WINDOW
    if (row > 0) & (first | (begin % WINDOW == 0)):
        end = tl.minimum((window + 1) * WINDOW, uses)
        d = tl.arange(0, BLOCK_D)[None, :]
        total_D = tl.zeros([BLOCK_D], tl.float32)
        u, found = begin, BLOCK_U
        while found == BLOCK_U:
            u_U = u + tl.arange(0, BLOCK_U)
            own_U = tl.load(row_R + u_U, mask=u_U < end, other=0) == row
            use_U = tl.load(order_R + u_U, mask=own_U, other=0)
            x_U = tl.load(place_R + use_U, mask=own_U, other=0)
            at_UD = x_U.to(tl.int64)[:, None] * D + d
            total_D += tl.sum(tl.load(grad_XD + at_UD, mask=own_U[:, None] & (d < D), other=0.0), 0)
            found = tl.sum(own_U.to(tl.int32), 0)
            u += found
        goes_on = (u == end) & (tl.load(row_R + end, mask=end < uses, other=0) == row)
        if first & (goes_on == 0):
            _move(row, total_D, weight_V, row_VD, sum_V, rate, D, BLOCK_D)
        else:
            slot = 2 * window + (begin % WINDOW != 0).to(tl.int32)
            d_D = tl.arange(0, BLOCK_D)
            tl.store(piece_WD + slot.to(tl.int64) * D + d_D, total_D, mask=d_D < D)


@triton.jit(do_not_specialize=["uses"])
def adagrad_pieces_kernel(
    row_R,
    weight_V,
    row_VD,
    sum_V,
    piece_WD,
    uses,
    rate,
    D: tl.constexpr,
    WINDOW: tl.constexpr,
    BLOCK_U: tl.constexpr,
    BLOCK_D: tl.constexpr,
):
    """One program per window but the last: if a row of several pieces begins in it, add them up and move the row."""
    window = tl.program_id(0)
    begin, end = window * WINDOW, (window + 1) * WINDOW
    row = tl.load(row_R + end - 1)
    goes_on = tl.load(row_R + end, mask=end < uses, other=0) == row
    begins_here = tl.load(row_R + begin - 1, mask=begin > 0, other=0) != row
    if (row > 0) & goes_on & begins_here:
        d_D = tl.arange(0, BLOCK_D)
        slot = 2 * window + (tl.load(row_R + begin) != row).to(tl.int32)
        total_D = tl.load(piece_WD + slot.to(tl.int64) * D + d_D, mask=d_D < D, other=0.0)
        w, found = window + 1, BLOCK_U
        while found == BLOCK_U:
            w_U = w + tl.arange(0, BLOCK_U)
            own_U = tl.load(row_R + w_U * WINDOW, mask=w_U * WINDOW < uses, other=0) == row
            at_UD = (2 * w_U).to(tl.int64)[:, None] * D + d_D[None, :]
            piece_UD = tl.load(piece_WD + at_UD, mask=own_U[:, None] & (d_D < D)[None, :], other=0.0)
            total_D += tl.sum(piece_UD, 0)
            found = tl.sum(own_U.to(tl.int32), 0)
            w += found
        _move(row, total_D, weight_V, row_VD, sum_V, rate, D, BLOCK_D)
