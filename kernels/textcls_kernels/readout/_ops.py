"""The readout kernels as custom operators of PyTorch, like those in `attention/_ops.py`.

    textcls_kernels::read_out_loss            -> (loss, and what the backward needs: `_launch.Kept`)
    textcls_kernels::read_out_loss_backward   -> (dx, dquery, dhead, dbias, dadded)

dadded is an empty tensor if nothing was added to the scores. Only the loss is differentiable, and only once.
"""

from typing import Any, NoReturn

import torch


@torch.library.custom_op("textcls_kernels::read_out_loss", mutates_args=())
def read_out_loss(
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
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """The loss for one label per text, or with `absent_C` for several; scores at padding are not written."""
    from textcls_kernels.readout import _launch  # imports Triton, which may not be installed

    loss, kept = _launch.forward(
        *(x_VBTD, squared_norm_VBT, length_B, query_VSD, head_VCX, bias_VC, added_VBTS, keep_VBX),
        *(target, weight_C, absent_C, row_weight_B, focus, norm),
    )
    return loss, *kept


@read_out_loss.register_fake
def _(
    x_VBTD: torch.Tensor, _norm: Any, _length: Any, query_VSD: torch.Tensor, head_VCX: torch.Tensor, *_rest: Any
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    (views, texts, tokens, _), seeds = x_VBTD.shape, query_VSD.shape[1]
    _, labels, columns = head_VCX.shape
    room = x_VBTD.new_empty
    y_VBX, g_VBX = room(views, texts, columns), room(views, texts, columns)
    score_VBTS, seen_VB3S = room(views, texts, tokens, seeds), room(views, texts, 3, seeds)
    return room(()), room(views, texts, labels), y_VBX, g_VBX, score_VBTS, seen_VB3S


@torch.library.custom_op("textcls_kernels::read_out_loss_backward", mutates_args=())
def read_out_loss_backward(
    dloss: torch.Tensor,
    x_VBTD: torch.Tensor,
    squared_norm_VBT: torch.Tensor,
    length_B: torch.Tensor,
    query_VSD: torch.Tensor,
    dlogits_VBC: torch.Tensor,
    y_VBX: torch.Tensor,
    g_VBX: torch.Tensor,
    score_VBTS: torch.Tensor,
    seen_VB3S: torch.Tensor,
    added: bool,
    norm: bool,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """Gradients of x, query, head, bias, and of what was added to the scores."""
    from textcls_kernels.readout import _launch

    kept = _launch.Kept(dlogits_VBC, y_VBX, g_VBX, score_VBTS, seen_VB3S)
    return _launch.backward(dloss, x_VBTD, squared_norm_VBT, length_B, query_VSD, kept, added, norm)


@read_out_loss_backward.register_fake
def _(
    dloss: torch.Tensor,
    x_VBTD: torch.Tensor,
    squared_norm_VBT: torch.Tensor,
    length_B: torch.Tensor,
    query_VSD: torch.Tensor,
    dlogits_VBC: torch.Tensor,
    y_VBX: torch.Tensor,
    g_VBX: torch.Tensor,
    score_VBTS: torch.Tensor,
    seen_VB3S: torch.Tensor,
    added: bool,
    norm: bool,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    views, _, labels = dlogits_VBC.shape
    room = x_VBTD.new_empty
    dadded_VBTS = room(score_VBTS.shape) if added else room(0)
    dhead_VCX, dbias_VC = room(views, labels, y_VBX.shape[2]), room(views, labels)
    return room(x_VBTD.shape), room(query_VSD.shape), dhead_VCX, dbias_VC, dadded_VBTS


def _save(ctx: Any, inputs: tuple[Any, ...], output: tuple[torch.Tensor, ...]) -> None:
    x_VBTD, squared_norm_VBT, length_B, query_VSD, _, _, added_VBTS, *_, ctx.norm = inputs
    _, *kept = output
    ctx.added = added_VBTS is not None
    ctx.set_materialize_grads(False)
    ctx.mark_non_differentiable(*kept)
    ctx.save_for_backward(x_VBTD, squared_norm_VBT, length_B, query_VSD, *kept)


def _gradients(ctx: Any, dloss: torch.Tensor, *_none: None) -> tuple[torch.Tensor | None, ...]:
    dx, dquery, dhead, dbias, dadded = read_out_loss_backward(dloss, *ctx.saved_tensors, ctx.added, ctx.norm)
    return dx, None, None, dquery, dhead, dbias, dadded if ctx.added else None, *[None] * 7


def _refuse_second(ctx: Any, *_gradients: torch.Tensor) -> NoReturn:
    raise RuntimeError(
        "the kernels of the readout have first derivatives alone, and a second one was asked for;"
        " pass impl='reference', which has both"
    )


read_out_loss.register_autograd(_gradients, setup_context=_save)
read_out_loss_backward.register_autograd(_refuse_second)
