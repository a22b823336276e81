"""Metric attention by PyTorch's own `scaled_dot_product_attention`, with queries q = p M and p as keys and values.

The same function as the twin's, in memory linear in N if PyTorch has a kernel for that and chooses it.
For long texts, where products bound the work. Near a one-hot softmax its 16-bit dM is less exact than the kernels'.

Letters: B texts, H heads, N positions, K width of a head, C and D positions as queries and as keys.
"""

import torch
from torch.nn.functional import scaled_dot_product_attention

from textcls_kernels.attention.packing import symmetric


def metric_attention(
    p_BHNK: torch.Tensor, metric_HKK: torch.Tensor, lengths_B: torch.Tensor | None = None, causal: bool = False
) -> torch.Tensor:
    """Metric attention of a padded batch; arguments and result as of `reference.metric_attention`."""
    metric_HKK = symmetric(metric_HKK).to(p_BHNK.dtype)
    if lengths_B is None:
        return scaled_dot_product_attention(p_BHNK @ metric_HKK, p_BHNK, p_BHNK, is_causal=causal)
    place_N = torch.arange(p_BHNK.shape[2], device=p_BHNK.device)
    padding_B1N1 = (place_N >= lengths_B[:, None])[:, None, :, None]
    p_BHNK = p_BHNK.masked_fill(padding_B1N1, 0)
    # All see the first position, even of an empty text: not every kernel gives zero for a row that sees nothing.
    seen_BHCD = ((place_N < lengths_B[:, None]) | (place_N == 0))[:, None, None]
    if causal:
        seen_BHCD = seen_BHCD & (place_N[:, None] >= place_N)
    t_BHNK = scaled_dot_product_attention(p_BHNK @ metric_HKK, p_BHNK, p_BHNK, attn_mask=seen_BHCD)
    return t_BHNK.masked_fill(padding_B1N1, 0)
