"""Single-headed attention over a recurrent network: one LSTM, one head with one matrix, one Boom layer.

Shapes: see `textcls_torch.models.ops.mixing`.
"""

import torch
from torch import Tensor, nn

from textcls_torch.models.layers import LSTM, Linear
from textcls_torch.models.mixing.building_blocks import StaticVector, leave
from textcls_torch.models.ops.mixing import boom, dot_product_attention


class SingleHeadedAttention(nn.Module):
    """One block of SHA-RNN (Merity 2019, arXiv 1911.11423, section 6), with its order of residuals and layer norms.

        h = x + LSTM(x);   h = h + attention(q = s_q * norm(W h), k = s_k * norm(h), v = s_v * norm(h));
        y = norm(h) + Boom(norm'(h))

    Queries have a matrix, keys and values do not: learned vectors scale all three, s_q and s_k by a sigmoid, s_v
    over-parameterised (`StaticVector`), which is folded when the model is saved. O(N d^2 + N^2 d) in N tokens of width
    d, N^2 numbers per text in memory, and N steps one after the other.

    Deviations: attention sees the whole text and no memory of an earlier one, as nothing is predicted word by word.
    The LSTM reads forward only: padding, which is last, cannot reach a token.

    Args:
        dim: width D of the token vectors and of the hidden state.
        out: width of the result.
        boom_factor: width of the Boom layer, as a multiple of D.
    """

    def __init__(self, dim: int, out: int, boom_factor: int = 4) -> None:
        super().__init__()
        self.lstm = LSTM(dim, dim, batch_first=True)
        self.middle_norm, self.memory_norm = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.query, self.query_norm = Linear(dim, dim), nn.LayerNorm(dim)
        self.query_D, self.key_D = nn.Parameter(torch.empty(dim)), nn.Parameter(torch.empty(dim))
        self.value = StaticVector(dim)
        self.boom_norm, self.skip_norm = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.boom = Linear(dim, boom_factor * dim)
        self.leave = leave(dim, out)

    def forward(self, x_BTD: Tensor, mask_BT: Tensor) -> Tensor:
        """Return [B, T, out]."""
        h_BTD = x_BTD + self.lstm(x_BTD)[0]
        memory_BTD, h_BTD = self.memory_norm(h_BTD), self.middle_norm(h_BTD)
        q_BTD = torch.sigmoid(self.query_D) * self.query_norm(self.query(h_BTD))
        k_BTD, v_BTD = torch.sigmoid(self.key_D) * memory_BTD, self.value() * memory_BTD
        h_BTD = h_BTD + dot_product_attention(q_BTD, k_BTD, v_BTD, mask_BT)
        y_BTD = self.skip_norm(h_BTD) + boom(self.boom_norm(h_BTD), self.boom.weight, self.boom.bias)
        y_BTX: Tensor = self.leave(y_BTD)
        return y_BTX
