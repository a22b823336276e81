"""The token-mixing MLP of MLP-Mixer: a learned matrix over places.

Shapes: see `textcls_torch.models.ops.mixing`.
"""

from torch import Tensor, nn

from textcls_torch.models.layers import Linear
from textcls_torch.models.mixing.building_blocks import leave
from textcls_torch.models.ops.mixing import token_mlp


class TokenMLP(nn.Module):
    """MLP-Mixer (Tolstikhin et al. 2021, arXiv 2105.01601, section 2, eq. 1): two layers over tokens, per channel.

    O(N M d) with N = `tokens`, whatever the length, hidden width M and channels d. A matrix over places has one
    length: the first `tokens` tokens of a text are mixed and the others are not. Padding counts as zeros, so how much
    of it there is does not matter. The block's channel-mixing half is left out.

    Args:
        dim: width D of the token vectors.
        out: width of the result.
        tokens: the number of tokens mixed.
        hidden: width of the hidden layer.
    """

    def __init__(self, dim: int, out: int, tokens: int = 128, hidden: int = 64) -> None:
        super().__init__()
        self.enter = Linear(tokens, hidden)
        self.back = Linear(hidden, tokens)
        self.leave = leave(dim, out)

    def forward(self, x_BTD: Tensor, mask_BT: Tensor) -> Tensor:
        """Return [B, T, out]."""
        weights = self.enter.weight, self.enter.bias, self.back.weight, self.back.bias
        y_BTX: Tensor = self.leave(token_mlp(x_BTD, *weights, mask_BT))
        return y_BTX
