"""gMLP: channel projections around one spatial gating unit.

Shapes: see `textcls_training.ops`.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from textcls_training.ops import spatial_gate


class GatedMLP(nn.Module):
    """gMLP block (arXiv 2105.08050, section 2): Z = gelu(X U), Z = Z1 || Z2, Y = (Z1 * f(norm(Z2))) V.

    f mixes tokens by a banded Toeplitz matrix shared by all channels (`spatial_gate`); its weights start near zero and
    its bias at one, so the block starts as a plain feed-forward layer. O(T W F) in the number of tokens.

    Args:
        dim: width D of the token vectors.
        out: width of the result.
        reach: tokens to each side that the gate sees.
    """

    def __init__(self, dim: int, out: int, reach: int = 15) -> None:
        super().__init__()
        self.enter = nn.Linear(dim, 2 * dim)
        self.norm = nn.LayerNorm(dim)
        self.filter_W = nn.Parameter(torch.randn(2 * reach + 1) * 1e-3)
        self.bias = nn.Parameter(torch.ones(()))
        self.leave = nn.Linear(dim, out)

    def forward(self, x_BTD: Tensor, mask_BT: Tensor) -> Tensor:
        """Return [B, T, out]."""
        z1_BTF, z2_BTF = F.gelu(self.enter(x_BTD)).chunk(2, -1)
        gate_BTF = spatial_gate(self.norm(z2_BTF), self.filter_W, self.bias, mask_BT)
        y_BTD: Tensor = self.leave(z1_BTF * gate_BTF)
        return y_BTD
