"""From tensors to the kernels of the table: grids and tile sizes. Needs Triton.

Letters: X places (tokens), R uses of rows, V rows of the table, D width.
"""

from typing import Any

import torch

from textcls_kernels.launching import block_width, launch
from textcls_kernels.rows import _table

# The most uses that one program adds up: a row that each of 10,000 tokens uses has 157 pieces.
WINDOW = 64


def gather_constants(width: int) -> dict[str, Any]:
    """Return the constants of `gather_kernel`: some numbers per thread, chosen to build without spills."""
    block = block_width(width)
    places, uses = (4 if block <= 128 else 1), 4
    return _constants(width, places * uses * block) | {"BLOCK_X": places, "BLOCK_U": uses}


def adagrad_constants(width: int) -> dict[str, Any]:
    """Return the constants of `adagrad_kernel` and `adagrad_pieces_kernel`, likewise."""
    uses = max(1, min(8, 1024 // block_width(width)))
    return _constants(width, uses * block_width(width)) | {"BLOCK_U": uses, "WINDOW": WINDOW}


def _constants(width: int, tile: int) -> dict[str, Any]:
    return {"D": width, "BLOCK_D": block_width(width), "num_warps": max(1, min(8, tile // 512)), "num_stages": 1}


def gather(
    row_R: torch.Tensor,
    start_X: torch.Tensor,
    weight_V: torch.Tensor,
    row_VD: torch.Tensor,
    x_XD: torch.Tensor,
    norm_X: torch.Tensor,
) -> None:
    """Fill `x_XD` and `norm_X`."""
    constants, places = gather_constants(row_VD.shape[1]), len(norm_X)
    launch(
        _table.gather_kernel,
        (-(-places // constants["BLOCK_X"]),),
        row_VD,
        *(row_R, start_X, weight_V, row_VD, x_XD, norm_X, places),
        **constants,
    )


def adagrad(
    row_R: torch.Tensor,
    order_R: torch.Tensor,
    place_R: torch.Tensor,
    weight_V: torch.Tensor,
    row_VD: torch.Tensor,
    sum_V: torch.Tensor,
    grad_XD: torch.Tensor,
    rate: torch.Tensor,
) -> None:
    """Move the rows of uses that are sorted by row."""
    uses, constants = len(row_R), adagrad_constants(row_VD.shape[1])
    windows = -(-uses // WINDOW)
    piece_WD = torch.empty(2 * windows, row_VD.shape[1], device=row_VD.device)
    table = weight_V, row_VD, sum_V
    launch(
        _table.adagrad_kernel,
        (uses,),
        row_VD,
        *(row_R, order_R, place_R, *table, grad_XD, piece_WD, uses, rate),
        **constants,
    )
    if windows > 1:  # otherwise no row has two pieces
        arguments = row_R, *table, piece_WD, uses, rate
        launch(_table.adagrad_pieces_kernel, (windows - 1,), row_VD, *arguments, **constants)
