"""gMLP and aMLP: channel projections around one spatial gating unit.

Shapes: see `textcls_torch.models.ops.mixing`.
"""

from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from textcls_torch.models.layers import Linear
from textcls_torch.models.ops.mixing import dot_product_attention, full_spatial_gate, spatial_gate

Gating = Literal["split", "multiplicative", "additive", "linear"]


class ToeplitzGate(nn.Module):
    """f(Z) = W Z + b with a banded Toeplitz W for any length, one for all channels (`ops.spatial_gate`). O(N W d).

    Attributes:
        start: the initial value of the bias.
        identity: whether W begins as the identity.
    """

    def __init__(self, reach: int, start: float, identity: bool) -> None:
        super().__init__()
        self.start, self.identity = start, identity
        self.filter_W = nn.Parameter(torch.empty(2 * reach + 1))
        self.bias = nn.Parameter(torch.empty(()))

    def forward(self, z_BTF: Tensor, mask_BT: Tensor) -> Tensor:
        """Return f(Z) [B, T, F]."""
        return spatial_gate(z_BTF, self.filter_W, self.bias, mask_BT)


class FullGate(nn.Module):
    """f(Z) = W Z + b with a full W over the first `tokens` tokens, one bias per token (`ops.full_spatial_gate`).

    Attributes:
        toeplitz_width: the width of the filter that it replaces.
    """

    def __init__(self, tokens: int, toeplitz_width: int) -> None:
        super().__init__()
        self.toeplitz_width = toeplitz_width
        self.weight_NN = nn.Parameter(torch.empty(tokens, tokens))
        self.bias_N = nn.Parameter(torch.empty(tokens))

    def forward(self, z_BTF: Tensor, mask_BT: Tensor) -> Tensor:
        """Return f(Z) [B, T, F]."""
        return full_spatial_gate(z_BTF, self.weight_NN, self.bias_N, mask_BT)


class TinyAttention(nn.Module):
    """One narrow head beside the gate (gMLP paper, arXiv 2105.08050, section 4.3). O(N^2 K)."""

    def __init__(self, dim: int, out: int, width: int = 64) -> None:
        super().__init__()
        self.project = Linear(dim, 3 * width)
        self.leave = Linear(width, out)

    def forward(self, x_BTD: Tensor, mask_BT: Tensor) -> Tensor:
        """Return [B, T, out]."""
        q_BTK, k_BTK, v_BTK = torch.chunk(self.project(x_BTD), 3, -1)
        y_BTX: Tensor = self.leave(dot_product_attention(q_BTK, k_BTK, v_BTK, mask_BT))
        return y_BTX


class GatedMLP(nn.Module):
    """gMLP block (Liu et al. 2021, arXiv 2105.08050, section 2): Z = gelu(X U), Y = s(Z) V.

        split            s(Z) = Z1 * f(norm(Z2)), Z = Z1 || Z2       eq. 4, the default
        multiplicative   s(Z) = Z * f(norm(Z))                       eq. 3
        additive         s(Z) = Z + f(norm(Z))                       table 3
        linear           s(Z) = f(norm(Z))                           table 3

    f mixes tokens by a banded Toeplitz matrix shared by all channels; its weights start near zero and its bias at one,
    so the block starts as a plain feed-forward layer. W mixes tokens (tokens x tokens); `full` has the paper's full
    matrix, over the first 128 of them.

    Deviations: with `additive` gating f's bias starts at zero; with `linear` gating its filter starts as the identity;
    padding is masked.

    O(N d^2 + N W d) in N tokens of width d with a window of W; `full` O(N d^2 + 128^2 d); `attention` adds O(N^2 64).

    Args:
        dim: width D of the token vectors.
        out: width of the result.
        reach: tokens to each side that the gate sees.
        gating: the kind of s.
        full: tokens that a full matrix mixes; 0 for a Toeplitz one.
        attention: width of a tiny attention whose result is added to f, which makes an aMLP; 0 for none.
    """

    def __init__(
        self, dim: int, out: int, reach: int = 15, gating: Gating = "split", full: int = 0, attention: int = 0
    ) -> None:
        super().__init__()
        self.gating = gating
        width = dim if gating == "split" else 2 * dim
        self.enter = Linear(dim, 2 * dim)
        self.norm = nn.LayerNorm(width)
        self.gate = FullGate(full, 2 * reach + 1) if full else _toeplitz_gate(reach, gating)
        self.attention = TinyAttention(dim, width, attention) if attention else None
        self.leave = Linear(width, out)

    def forward(self, x_BTD: Tensor, mask_BT: Tensor) -> Tensor:
        """Return [B, T, out]."""
        z_BTF = F.gelu(self.enter(x_BTD))
        kept_BTF, seen_BTF = z_BTF.chunk(2, -1) if self.gating == "split" else (z_BTF, z_BTF)
        gate_BTF = self.gate(self.norm(seen_BTF), mask_BT)
        if self.attention is not None:
            gate_BTF = gate_BTF + self.attention(x_BTD, mask_BT)
        if self.gating == "additive":
            gate_BTF = kept_BTF + gate_BTF
        elif self.gating != "linear":
            gate_BTF = kept_BTF * gate_BTF
        y_BTX: Tensor = self.leave(gate_BTF)
        return y_BTX


def _toeplitz_gate(reach: int, gating: Gating) -> ToeplitzGate:
    start = 1.0 if gating in ("split", "multiplicative") else 0.0
    return ToeplitzGate(reach, start, identity=gating == "linear")
