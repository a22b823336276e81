"""Average pooling: the control for whether it matters how tokens are mixed.

Shapes: see `textcls_torch.models.ops.mixing`.
"""

from torch import Tensor, nn

from textcls_torch.models.mixing.building_blocks import leave
from textcls_torch.models.ops.mixing import average_pool


class AveragePool(nn.Module):
    """PoolFormer (Yu et al. 2022, arXiv 2111.11418, section 3.2, eq. 4): the mean of the neighbourhood minus the token.

    No weights except for scores. O(N d) in N tokens of width d. It sees neighbours, not their order.

    Args:
        dim: width D of the token vectors.
        out: width of the result.
        size: tokens of the window, odd.
    """

    def __init__(self, dim: int, out: int, size: int = 3) -> None:
        super().__init__()
        self.size = size
        self.leave = leave(dim, out)

    def forward(self, x_BTD: Tensor, mask_BT: Tensor) -> Tensor:
        """Return [B, T, out]."""
        y_BTX: Tensor = self.leave(average_pool(x_BTD, mask_BT, self.size))
        return y_BTX
