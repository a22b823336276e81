"""Scaled dot-product attention, the yardstick of all the others.

Shapes: see `textcls_training.ops.mixing`.
"""

import torch
from torch import Tensor, nn

from textcls_training.ops import dot_product_attention


class DotProductAttention(nn.Module):
    """Self-attention (Vaswani et al. 2017, arXiv 1706.03762, section 3.2.1, eq. 1), one head.

    O(N^2 d) in N tokens of width d, and N^2 numbers a text in memory. Without positions: it is blind to order.

    Args:
        dim: width D of the token vectors, and of queries, keys and values.
        out: width of the result.
    """

    def __init__(self, dim: int, out: int) -> None:
        super().__init__()
        self.project = nn.Linear(dim, 3 * dim, bias=False)
        self.leave = nn.Linear(dim, out, bias=False)

    def forward(self, x_BTD: Tensor, mask_BT: Tensor) -> Tensor:
        """Return [B, T, out]."""
        q_BTK, k_BTK, v_BTV = torch.chunk(self.project(x_BTD), 3, -1)
        y_BTX: Tensor = self.leave(dot_product_attention(q_BTK, k_BTK, v_BTV, mask_BT))
        return y_BTX
