"""The lambda layer: each token's query is applied to linear functions that summarise the text and the neighbourhood.

Shapes: see `textcls_torch.models.ops.mixing`.
"""

import torch
from torch import Tensor, nn

from textcls_torch.models.layers import Linear
from textcls_torch.models.ops.mixing import lambda_mix


class LambdaLayer(nn.Module):
    """LambdaNetworks (arXiv 2102.08602): content lambda over the text, position lambda over a window.

    One head. Queries, keys and values come from one projection. Bounded by tanh, so that the gate after this layer
    determines how much mixing can change. O(N K d) in N tokens of width d with keys of width K, with positions O(N W K
    d) for a window of W.

    Args:
        dim: width D of the token vectors.
        out: width V of the values, and of the result.
        depth: width K of queries and keys.
        reach: tokens to each side that the position lambda sees; 0 switches it off.
        kernel: whether a kernel replaces the softmax over tokens (`ops.kernel_probabilities`).
    """

    def __init__(self, dim: int, out: int, depth: int = 8, reach: int = 0, kernel: bool = False) -> None:
        super().__init__()
        self.kernel = kernel
        self.widths = [depth, depth, out]
        self.project = Linear(dim, sum(self.widths), bias=False)
        self.position_KW = nn.Parameter(torch.empty(depth, 2 * reach + 1)) if reach else None

    def forward(self, x_BTD: Tensor, mask_BT: Tensor) -> Tensor:
        """Return [B, T, out]."""
        q_BTK, k_BTK, v_BTV = torch.split(self.project(x_BTD), self.widths, -1)
        return torch.tanh(lambda_mix(q_BTK, k_BTK, v_BTV, mask_BT, self.position_KW, self.kernel))
