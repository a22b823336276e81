"""The readout of the default model with its loss, in one function: from token vectors to what training minimizes.

    p_t = softmax over the tokens of a text of (query . x_t + added_t)      for each seed
    a_t = p_t / sqrt(sum_t p_t^2 q_t)    (norm), or p_t                     y = keep sum_t a_t x_t
    l_c = b_c + sum_s head_cs . y_s                                         loss = sum over views and texts of cost(l)

The cost is that of one label a text (`LabelTargets`) or of several (`LabelSetTargets`). `impl` is that of
`metric_attention`: the twin (`reference.py`), or the kernels (`_kernels.py`): float32 alone, one launch forward
and one backward, the same bits on every run. Nothing waits for the GPU, and no number comes from the host that changes
step by step, so that a step can be recorded as a CUDA graph.

Letters: V views, B texts, T tokens of the longest text, D width, S seeds, C labels, X = S D.
"""

from typing import NamedTuple

import torch

from textcls_kernels.attention.validation import INTEGERS, MAX_SEEDS
from textcls_kernels.impl import Chosen, Impl, resolve_impl
from textcls_kernels.readout import _ops, reference

# One program keeps the query, the pooled vectors and their gradient, and reads the whole head of a view, twice.
MAX_WIDTH = 128
MAX_HEAD = 2**16

# Tensors by name, each with the shape that it must have.
Shapes = dict[str, tuple[torch.Tensor | None, tuple[int, ...]]]


class LabelTargets(NamedTuple):
    """One label per text: the cross-entropy of a softmax, -sum_c weight_c p_c log q_c times the weight of the row.

    Attributes:
        target: the numbers of hard labels [B], int64, or probabilities [B, C]. Numbers are not checked, since that
            would wait for the GPU: a text whose number is not a label's has no loss.
        class_weight_C: the weight of each label.
        row_weight_B: what each row counts; None where that is 1.
    """

    target: torch.Tensor
    class_weight_C: torch.Tensor
    row_weight_B: torch.Tensor | None = None


class LabelSetTargets(NamedTuple):
    """Several labels per text: the cross-entropy of a sigmoid per label, that of absent labels times a power of q.

    -sum_c (present_c p_c log q_c + absent_c (1 - p_c) q_c^focus log(1 - q_c)) times the weight of the row.

    Attributes:
        target_BC: how probable each label is.
        present_C: the weight of a row that has the label.
        absent_C: the weight of a row that does not have it.
        focus: the power of q, a constant of the training.
        row_weight_B: what each row counts; None where that is 1.
    """

    target_BC: torch.Tensor
    present_C: torch.Tensor
    absent_C: torch.Tensor
    focus: float
    row_weight_B: torch.Tensor | None = None


def fits(width: int, seeds: int, labels: int) -> bool:
    """Whether the kernels support this size: D of 1 to 128, S of 1 to 16, and a head of up to 2^16 weights."""
    within = 1 <= width <= MAX_WIDTH and 1 <= seeds <= MAX_SEEDS and labels >= 1
    return within and labels * seeds * width <= MAX_HEAD


def read_out_loss(
    x_VBTD: torch.Tensor,
    squared_norm_VBT: torch.Tensor,
    length_B: torch.Tensor,
    query_VSD: torch.Tensor,
    head_VCX: torch.Tensor,
    bias_VC: torch.Tensor,
    targets: LabelTargets | LabelSetTargets,
    *,
    norm: bool,
    added_VBTS: torch.Tensor | None = None,
    keep_VBX: torch.Tensor | None = None,
    impl: Impl = "auto",
) -> torch.Tensor:
    """Return the loss of a batch, a scalar; differentiable in x, query, head, bias and what is added to the scores.

    Args:
        x_VBTD: token vectors; float32, and any floating type for the reference, which all other floats share. B and T
            may be 0. The kernels copy this and other tensors that are not contiguous.
        squared_norm_VBT: squared feature norms q, not negative; unread without `norm`.
        length_B: the real tokens of each text come first; int32 or int64, 0 to T (clamped). Padding is not read and
            gets no gradient; a text without tokens pools to zero.
        query_VSD: the queries that score tokens.
        head_VCX: the linear head of each view, seed by seed.
        bias_VC: its biases.
        targets: the right answers for the texts.
        norm: whether the pooled vectors are divided by their norm; a text whose q are all zero pools to zero then.
        added_VBTS: what is added to the scores, if anything.
        keep_VBX: what the pooled vectors are multiplied by, if anything: dropout's mask, already scaled.
        impl: the implementation.

    Raises:
        ValueError: a shape, a device or a size (`fits`) breaks a rule, a gradient is asked for that does not exist,
            or `impl` cannot run there.
        TypeError: a type breaks a rule.
        ModuleNotFoundError: `impl` needs Triton, which is not installed.
    """
    _check(x_VBTD, squared_norm_VBT, length_B, query_VSD, head_VCX, bias_VC, targets, added_VBTS, keep_VBX)
    given = (
        *(x_VBTD, squared_norm_VBT, length_B, query_VSD, head_VCX, bias_VC, added_VBTS, keep_VBX),
        *(*_flat(targets), norm),
    )
    if _resolve(x_VBTD, query_VSD.shape[1], head_VCX.shape[1], impl) == "triton":
        loss: torch.Tensor = _ops.read_out_loss(*given)[0]
        return loss
    return reference.read_out_loss(*given)


def _flat(
    targets: LabelTargets | LabelSetTargets,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor | None, torch.Tensor | None, float]:
    """The targets as arguments of both implementations: targets, label weights, absent weights, row weights, focus."""
    if isinstance(targets, LabelSetTargets):
        return targets.target_BC, targets.present_C, targets.absent_C, targets.row_weight_B, targets.focus
    return targets.target, targets.class_weight_C, None, targets.row_weight_B, 0.0


def _resolve(x_VBTD: torch.Tensor, seeds: int, labels: int, impl: Impl) -> Chosen:
    chosen = resolve_impl(x_VBTD.device, impl)
    if chosen == "reference":
        return chosen
    if x_VBTD.dtype != torch.float32:
        raise TypeError(f"the kernels of the readout have one type; expected {torch.float32}, got {x_VBTD.dtype}")
    width = x_VBTD.shape[3]
    if not fits(width, seeds, labels):
        raise ValueError(
            f"the kernels of the readout are for 1 <= D <= {MAX_WIDTH}, 1 <= S <= {MAX_SEEDS}, C >= 1 and"
            f" C S D <= {MAX_HEAD}, got D = {width}, S = {seeds}, C = {labels}; pass impl='reference'"
        )
    return chosen


def _check(
    x_VBTD: torch.Tensor,
    squared_norm_VBT: torch.Tensor,
    length_B: torch.Tensor,
    query_VSD: torch.Tensor,
    head_VCX: torch.Tensor,
    bias_VC: torch.Tensor,
    targets: LabelTargets | LabelSetTargets,
    added_VBTS: torch.Tensor | None,
    keep_VBX: torch.Tensor | None,
) -> None:
    """Check shapes, types and devices."""
    for name, sizes, dimensions in (
        ("x_VBTD", x_VBTD.shape, 4),
        ("query_VSD", query_VSD.shape, 3),
        ("bias_VC", bias_VC.shape, 2),
    ):
        if len(sizes) != dimensions:
            raise ValueError(f"{name} has {dimensions} dimensions; got shape {list(sizes)}")
    if not x_VBTD.is_floating_point():
        raise TypeError(f"x_VBTD is floating; got {x_VBTD.dtype}")
    (views, texts, tokens, width), seeds, labels = x_VBTD.shape, query_VSD.shape[1], bias_VC.shape[1]
    learned: Shapes = {
        "query_VSD": (query_VSD, (views, seeds, width)),
        "head_VCX": (head_VCX, (views, labels, seeds * width)),
        "bias_VC": (bias_VC, (views, labels)),
        "added_VBTS": (added_VBTS, (views, texts, tokens, seeds)),
    }
    given: Shapes = {
        "squared_norm_VBT": (squared_norm_VBT, (views, texts, tokens)),
        "keep_VBX": (keep_VBX, (views, texts, seeds * width)),
        **_target_shapes(targets, texts, labels),
    }
    for name, (tensor, shape) in (learned | given).items():
        if tensor is not None:
            _check_one(name, tensor, shape, x_VBTD.device, (x_VBTD.dtype,))
    _check_one("length_B", length_B, (texts,), x_VBTD.device, INTEGERS)
    if isinstance(targets, LabelTargets) and targets.target.dim() == 1:
        _check_one("target", targets.target, (texts,), x_VBTD.device, (torch.int64,))
    for name, (tensor, _) in given.items():
        if tensor is not None and tensor.requires_grad:
            raise ValueError(f"{name} has no gradient here, and one was asked for; pass {name}.detach()")


def _target_shapes(targets: LabelTargets | LabelSetTargets, texts: int, labels: int) -> Shapes:
    """The floating-point tensors of the targets, with their shapes."""
    row: Shapes = {"row_weight_B": (targets.row_weight_B, (texts,))}
    if isinstance(targets, LabelSetTargets):
        absent, present = (targets.absent_C, (labels,)), (targets.present_C, (labels,))
        return {"target_BC": (targets.target_BC, (texts, labels)), "present_C": present, "absent_C": absent} | row
    soft = None if targets.target.dim() == 1 else targets.target
    return {"target": (soft, (texts, labels)), "class_weight_C": (targets.class_weight_C, (labels,))} | row


def _check_one(
    name: str, tensor: torch.Tensor, shape: tuple[int, ...], device: torch.device, types: tuple[torch.dtype, ...]
) -> None:
    if tuple(tensor.shape) != shape or tensor.device != device:
        raise ValueError(
            f"{name} belongs to the batch or to the model; expected {list(shape)} on {device},"
            f" got {list(tensor.shape)} on {tensor.device}"
        )
    if tensor.dtype not in types:
        raise TypeError(f"{name} is of another type; expected {' or '.join(map(str, types))}, got {tensor.dtype}")
