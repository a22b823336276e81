"""From tensors to the readout kernels: grids, tile sizes, and the parts left to PyTorch. Needs Triton.

Letters: V views, B texts, T tokens of the longest text, D width, S seeds, C labels, X = S D.
"""

from typing import Any, NamedTuple

import torch

from textcls_kernels.launching import block_width, launch
from textcls_kernels.readout import _kernels

# Numbers that a program keeps for a block of tokens or of labels, for all seeds: 32 per thread, chosen to build without
# spills; not tuned on a GPU.
TILE = 4096
MOST_ROWS = 64
# The most that a thread may have; otherwise the assembler spills a word or two to run more programs at once.
REGISTERS = 255


class Kept(NamedTuple):
    """What a forward keeps for its backward; `_kernels.py` explains each field."""

    dlogits_VBC: torch.Tensor
    y_VBX: torch.Tensor
    g_VBX: torch.Tensor
    score_VBTS: torch.Tensor
    seen_VB3S: torch.Tensor

    @classmethod
    def empty(cls, x_VBTD: torch.Tensor, head_VCX: torch.Tensor, seeds: int) -> "Kept":
        """Return uninitialized tensors for all fields."""
        views, texts, tokens, _ = x_VBTD.shape
        _, labels, columns = head_VCX.shape
        last = (labels,), (columns,), (columns,), (tokens, seeds), (3, seeds)
        return cls(*(x_VBTD.new_empty(views, texts, *shape) for shape in last))


def readout_constants(width: int, seeds: int, labels: int) -> dict[str, Any]:
    """Return the constants that both kernels are compiled with."""
    block, seed_block = block_width(width), _power(seeds)
    rows = max(1, min(MOST_ROWS, TILE // (block * seed_block)))
    sizes = {"D": width, "S": seeds, "BLOCK_D": block, "BLOCK_S": seed_block}
    resources = {"num_warps": 4, "num_stages": 1, "maxnreg": REGISTERS}
    return sizes | resources | {"BLOCK_T": rows, "BLOCK_C": min(rows, _power(labels))}


def _power(number: int) -> int:
    """The number rounded up to a power of two."""
    return 1 << (number - 1).bit_length()


def forward(
    x_VBTD: torch.Tensor,
    squared_norm_VBT: torch.Tensor,
    length_B: torch.Tensor,
    query_VSD: torch.Tensor,
    head_VCX: torch.Tensor,
    bias_VC: torch.Tensor,
    added_VBTS: torch.Tensor | None,
    keep_VBX: torch.Tensor | None,
    target: torch.Tensor,
    weight_C: torch.Tensor,
    absent_C: torch.Tensor | None,
    row_weight_B: torch.Tensor | None,
    focus: float,
    norm: bool,
) -> tuple[torch.Tensor, Kept]:
    """Return the loss and what its backward needs."""
    views, texts, tokens, width = x_VBTD.shape
    (_, seeds, _), labels = query_VSD.shape, head_VCX.shape[1]
    loss_VB, kept = x_VBTD.new_empty(views, texts), Kept.empty(x_VBTD, head_VCX, seeds)
    given = x_VBTD, squared_norm_VBT, length_B, query_VSD, head_VCX, bias_VC, added_VBTS, keep_VBX, target, weight_C
    if loss_VB.numel():
        launch(
            _kernels.readout_forward_kernel,
            (texts, views),
            x_VBTD,
            *(_readable(tensor, x_VBTD) for tensor in (*given, absent_C, row_weight_B)),
            *(loss_VB, *kept, tokens, labels, focus),
            NORM=norm,
            ADDED=added_VBTS is not None,
            KEEP=keep_VBX is not None,
            ROWS=row_weight_B is not None,
            SETS=absent_C is not None,
            HARD=target.dim() == 1,
            **readout_constants(width, seeds, labels),
        )
    return loss_VB.sum(), kept


def backward(
    dloss: torch.Tensor,
    x_VBTD: torch.Tensor,
    squared_norm_VBT: torch.Tensor,
    length_B: torch.Tensor,
    query_VSD: torch.Tensor,
    kept: Kept,
    added: bool,
    norm: bool,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return the gradients of x, query, head, bias, and of what was added to the scores (or an empty tensor)."""
    views, texts, tokens, width = x_VBTD.shape
    seeds, labels = query_VSD.shape[1], kept.dlogits_VBC.shape[2]
    dx_VBTD, dquery_VBSD = x_VBTD.new_empty(x_VBTD.shape), x_VBTD.new_empty(views, texts, seeds, width)
    dadded_VBTS = torch.empty_like(kept.score_VBTS) if added else x_VBTD.new_empty(0)
    dlogits_VBC = torch.empty_like(kept.dlogits_VBC)
    if views * texts:
        launch(
            _kernels.readout_backward_kernel,
            (texts, views),
            x_VBTD,
            *(dloss, *(_readable(tensor, x_VBTD) for tensor in (x_VBTD, squared_norm_VBT, length_B, query_VSD))),
            *(kept.dlogits_VBC, kept.g_VBX, kept.score_VBTS, kept.seen_VB3S),
            *(dx_VBTD, dadded_VBTS, dquery_VBSD, dlogits_VBC, tokens, labels),
            NORM=norm,
            ADDED=added,
            **readout_constants(width, seeds, labels),
        )
    dhead_VCX = torch.bmm(dlogits_VBC.mT, kept.y_VBX)
    return dx_VBTD, dquery_VBSD.sum(1), dhead_VCX, dlogits_VBC.sum(1), dadded_VBTS


def _readable(tensor: torch.Tensor | None, unread: torch.Tensor) -> torch.Tensor:
    """The tensor in the form that the kernels read; `unread` in place of None."""
    return unread if tensor is None else tensor.contiguous()
