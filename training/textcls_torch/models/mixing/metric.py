"""Metric tensor attention: each token becomes the mean of all tokens of its text under a learned metric.

Shapes: see `textcls_torch.models.ops.mixing`.
"""

import torch
from torch import Tensor, nn

from textcls_kernels.attention.validation import MIN_WIDTH
from textcls_kernels.impl import Impl
from textcls_torch.models.layers import Linear
from textcls_torch.models.ops.mixing import metric_mix


class MetricAttention(nn.Module):
    """Metric tensor attention (NLP MetaFormer; `textcls_kernels` says what is wrong in the source's kernel).

        p = x P      r_cd = sum_kl M_kl p_ck p_dl / sqrt(K)      y_c = concat_h(sum_d softmax_d(r_cd) p_d) E

    Keys and values are the same tokens p, and one symmetric M per head, stored packed, takes the place of two
    projections. M starts as the identity: scaled dot products. O(N^2 H K + N d H K) time in N tokens of width d; memory
    grows with N^2 in PyTorch and with N in the fused kernels, which run on a GPU.

    Deviation: one narrow head of at most 32, no wider than the token vectors unless those are below the kernels' least
    width.

    Args:
        dim: width D of the token vectors.
        out: width of the result.
        heads: number H of heads.
        impl: the implementation of the attention, see `textcls_kernels.metric_attention`.
    """

    def __init__(self, dim: int, out: int, heads: int = 1, impl: Impl = "auto") -> None:
        super().__init__()
        self.impl = impl
        self.widths = heads, max(MIN_WIDTH, min(dim, 32))
        flat = heads * self.widths[1]
        self.project = Linear(dim, flat, bias=False)
        self.metric_HL = nn.Parameter(torch.empty(heads, self.widths[1] * (self.widths[1] + 1) // 2))
        self.leave = Linear(flat, out, bias=False)

    def forward(self, x_BTD: Tensor, mask_BT: Tensor) -> Tensor:
        """Return [B, T, out]; zero at padding. The real tokens of a text come first."""
        p_BTHK = self.project(x_BTD).unflatten(-1, self.widths)
        t_BTHK = metric_mix(p_BTHK, self.metric_HL, mask_BT, self.impl)
        y_BTX: Tensor = self.leave(t_BTHK.flatten(2))
        return y_BTX
