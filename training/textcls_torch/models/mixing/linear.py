"""Linear attention: a kernel in place of the softmax, so that the sum over tokens is computed once.

Shapes: see `textcls_torch.models.ops.mixing`.
"""

from torch import Tensor

from textcls_torch.models.mixing.building_blocks import SelfAttention
from textcls_torch.models.ops.mixing import linear_attention


class LinearAttention(SelfAttention):
    """Linear transformers (Katharopoulos et al. 2020, arXiv 2006.16236, section 3.2, eqs. 5 and 7), one head.

    phi(x) = elu(x) + 1. O(N d^2) in N tokens of width d. Not causal, and without positions: it is blind to order.
    """

    def attend(self, q_BTK: Tensor, k_BTK: Tensor, v_BTV: Tensor, mask_BT: Tensor) -> Tensor:
        """Return [B, T, D]."""
        return linear_attention(q_BTK, k_BTK, v_BTV, mask_BT)
