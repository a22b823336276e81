"""Scaled dot-product attention, the yardstick for all others.

Shapes: see `textcls_torch.models.ops.mixing`.
"""

from torch import Tensor

from textcls_torch.models.mixing.building_blocks import SelfAttention
from textcls_torch.models.ops.mixing import dot_product_attention


class DotProductAttention(SelfAttention):
    """Self-attention (Vaswani et al. 2017, arXiv 1706.03762, section 3.2.1, eq. 1), one head.

    O(N^2 d) in N tokens of width d, and N^2 numbers per text in memory. Without positions: it is blind to order.
    """

    def attend(self, q_BTK: Tensor, k_BTK: Tensor, v_BTV: Tensor, mask_BT: Tensor) -> Tensor:
        """Return [B, T, D]."""
        return dot_product_attention(q_BTK, k_BTK, v_BTV, mask_BT)
