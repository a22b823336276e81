"""The slow twin of the readout's kernels: plain PyTorch, any floating type, any device, no Triton.

    p_t = softmax over the tokens of a text of (query . x_t + added_t)      for each seed
    a_t = p_t / sqrt(sum_t p_t^2 q_t)    (norm), or p_t                     y = keep sum_t a_t x_t
    l_c = b_c + sum_s head_cs . y_s

and the cost of l: for one label per text the cross-entropy of a softmax, for several the focused cross-entropy of a
sigmoid per label. Gradients are autograd's. `norm` is that of the readme's section on the readout; a text whose q are
all zero, and one without tokens, pools to zero.

Letters: V views, B texts, T tokens of the longest text, D width, S seeds, C labels, X = S D.
"""

import math

import torch
from torch.nn import functional as F

# The smallest square of a pooled norm: the gradient divides by the square, and 1e30 still fits in 32 bits.
LEAST_SQUARE = 1e-30


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
) -> torch.Tensor:
    """Return the loss for one label per text, or with `absent_C` for several; see `readout.read_out_loss`."""
    y_VBX = pooled(x_VBTD, squared_norm_VBT, length_B, query_VSD, added_VBTS, norm).flatten(2)
    y_VBX = y_VBX if keep_VBX is None else y_VBX * keep_VBX
    logit_VBC = bias_VC[:, None] + y_VBX @ head_VCX.mT
    if absent_C is None:
        cost_VB = label_cost(logit_VBC, target, weight_C)
    else:
        cost_VB = label_set_cost(logit_VBC, target, weight_C, absent_C, focus)
    return cost_VB.sum() if row_weight_B is None else (cost_VB * row_weight_B).sum()


def pooled(
    x_VBTD: torch.Tensor,
    squared_norm_VBT: torch.Tensor,
    length_B: torch.Tensor,
    query_VSD: torch.Tensor,
    added_VBTS: torch.Tensor | None,
    norm: bool,
) -> torch.Tensor:
    """Return the weighted sums of each text's token vectors [V, B, S, D]."""
    real_BT1 = (torch.arange(x_VBTD.shape[2], device=x_VBTD.device) < length_B[:, None])[:, :, None]
    x_VBTD = x_VBTD.where(real_BT1, 0)  # never read, not even NaN
    score_VBTS = x_VBTD @ query_VSD[:, None].mT
    score_VBTS = score_VBTS if added_VBTS is None else score_VBTS + added_VBTS
    least = torch.finfo(score_VBTS.dtype).min
    weight_VBTS = score_VBTS.where(real_BT1, least).softmax(2).where(real_BT1, 0)
    if norm:
        squared_norm_VBT1 = squared_norm_VBT[..., None].where(real_BT1, 0)
        square_VB1S = (weight_VBTS * weight_VBTS * squared_norm_VBT1).sum(2, keepdim=True)
        weight_VBTS = weight_VBTS / square_VB1S.clamp_min(LEAST_SQUARE).sqrt().where(square_VB1S > 0, math.inf)
    return weight_VBTS.mT @ x_VBTD


def label_cost(logit_VBC: torch.Tensor, target: torch.Tensor, class_weight_C: torch.Tensor) -> torch.Tensor:
    """Return -sum_c weight_c p_c log q_c of each view and text [V, B].

    Args:
        logit_VBC: what each view answers.
        target: the numbers of hard labels [B], or probabilities [B, C].
        class_weight_C: the weight of each label.
    """
    if target.dim() == 1:
        target = (torch.arange(logit_VBC.shape[2], device=target.device) == target[:, None]).to(class_weight_C.dtype)
    return -(class_weight_C * target * logit_VBC.log_softmax(2)).sum(2)


def label_set_cost(
    logit_VBC: torch.Tensor, target_BC: torch.Tensor, present_C: torch.Tensor, absent_C: torch.Tensor, focus: float
) -> torch.Tensor:
    """Return -sum_c (present_c p_c log q_c + absent_c (1 - p_c) q_c^focus log(1 - q_c)) of each view and text [V, B].

    Args:
        logit_VBC: what each view answers.
        target_BC: how probable each label is.
        present_C: the weight of a row that has the label.
        absent_C: the weight of a row that does not have it.
        focus: the power of q.
    """
    missed_VBC = F.softplus(-logit_VBC)  # -log q; adding the logit gives -log(1 - q)
    present_VBC = present_C * target_BC * missed_VBC
    absent_VBC = absent_C * (1 - target_BC) * torch.exp(-focus * missed_VBC) * (logit_VBC + missed_VBC)
    return (present_VBC + absent_VBC).sum(2)
