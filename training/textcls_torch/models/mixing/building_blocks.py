"""Building blocks that several mixers share."""

from abc import ABC, abstractmethod

import torch
from torch import Tensor, nn

from textcls_torch.models.layers import Linear
from textcls_torch.models.ops import attention as ops


def leave(dim: int, out: int) -> nn.Module:
    """Return a layer that brings mixed vectors to the width asked for; an identity if they already have it.

    The papers' layers without weights keep the width. If scores are mixed, one per seed, a matrix computes them.
    """
    return nn.Identity() if dim == out else Linear(dim, out, bias=False)


class SelfAttention(nn.Module, ABC):
    """Queries, keys and values of one projection, and a way to attend: one head.

    Args:
        dim: width D of the token vectors, and of queries, keys and values.
        out: width of the result.
    """

    def __init__(self, dim: int, out: int) -> None:
        super().__init__()
        self.project = Linear(dim, 3 * dim, bias=False)
        self.leave = Linear(dim, out, bias=False)

    @abstractmethod
    def attend(self, q_BTK: Tensor, k_BTK: Tensor, v_BTV: Tensor, mask_BT: Tensor) -> Tensor:
        """Return [B, T, D]."""

    def forward(self, x_BTD: Tensor, mask_BT: Tensor) -> Tensor:
        """Return [B, T, out]."""
        q_BTK, k_BTK, v_BTV = torch.chunk(self.project(x_BTD), 3, -1)
        y_BTX: Tensor = self.leave(self.attend(q_BTK, k_BTK, v_BTV, mask_BT))
        return y_BTX


class StaticVector(nn.Module):
    """A learned vector, over-parameterised while it is trained (SHA-RNN, arXiv 1911.11423, section 6.4).

        v = sigmoid(W_f s) * tanh(W_c s)                  s starts at zero and passes a sigmoid first

    Afterwards `fold` leaves only v, as such a vector is the same for all texts.
    """

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.start_1D = nn.Parameter(torch.empty(1, dim))
        self.forget_DD = nn.Parameter(torch.empty(dim, dim))
        self.candidate_DD = nn.Parameter(torch.empty(dim, dim))

    def forward(self) -> Tensor:
        """Return v [D]."""
        if "folded_D" in self._buffers:
            return self.get_buffer("folded_D")
        return ops.fold_seed(torch.sigmoid(self.start_1D), self.forget_DD, self.candidate_DD)[0]

    @torch.no_grad()
    def fold(self) -> None:
        """Keep only the vector."""
        folded_D = self().clone()
        for name in list(self._parameters):
            delattr(self, name)
        self.register_buffer("folded_D", folded_D)
