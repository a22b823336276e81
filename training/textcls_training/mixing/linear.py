"""Linear attention: a kernel in the place of the softmax, so that the sum over tokens is made once.

Shapes: see `textcls_training.ops.mixing`.
"""

import torch
from torch import Tensor, nn

from textcls_training.ops import linear_attention


class LinearAttention(nn.Module):
    """Linear transformers (Katharopoulos et al. 2020, arXiv 2006.16236, section 3.2, eqs. 5 and 7), one head.

    phi(x) = elu(x) + 1. O(N d^2) in N tokens of width d. Not causal, and without positions: it is blind to order.

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
        y_BTX: Tensor = self.leave(linear_attention(q_BTK, k_BTK, v_BTV, mask_BT))
        return y_BTX
