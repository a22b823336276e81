"""The slow twin of the kernels: plain PyTorch, any floating type (float64 stays float64), any device, no Triton.

    r_cd = sum_kl M_kl p_ck p_dl / sqrt(K)      M is the symmetric part of the metric given
    s_c: = softmax over the valid d of r_cd     0 where c or d is not valid
    t_ck = sum_d s_cd p_dk                      keys and values are the same tensor

Causal attention is the same over d <= c: the result for a position does not depend on what comes after it.

The seed attention is the same with learned vectors in place of p_c. Gradients are autograd's.

Source: NLP MetaFormer, "CUDA Kernel of the Metric Tensor Attention", whose first equation this is. Its packed
expansion, and its kernel with it, is NOT this function: off the diagonal of M it doubles p_ck p_dl where the two cross
terms p_ck p_dl + p_cl p_dk stand, and it doubles every pair c != d although r is not summed over c and d. Right is

    sqrt(K) r_cd = sum_k M_kk p_ck p_dk + sum_{k<l} M_kl (p_ck p_dl + p_cl p_dk).

Letters: B texts, H heads, N positions, T positions of all texts together, S seeds, K and L width of a head, C and D
positions as queries and as keys. All of it needs memory quadratic in N or T.
"""

import math

import torch

from textcls_kernels.attention.packing import symmetric


def _masked_softmax(r: torch.Tensor, valid: torch.Tensor | None) -> torch.Tensor:
    """Softmax over the valid entries of the last dimension; all zero if there is none."""
    if valid is None:
        return r.softmax(-1)
    # The least finite number, not -inf, with which a row without a valid entry would be NaN, and so its gradient.
    return r.masked_fill(~valid, torch.finfo(r.dtype).min).softmax(-1).masked_fill(~valid, 0)


def _not_after(place_N: torch.Tensor) -> torch.Tensor:
    """Which positions d are not after c, [C, D]."""
    return place_N[:, None] >= place_N[None, :]


def text_of_position(cu_lengths: torch.Tensor, positions: int) -> torch.Tensor:
    """Return the text of each of `positions` packed positions, int64 [T]; B for those after the last text."""
    place_T = torch.arange(positions, device=cu_lengths.device, dtype=cu_lengths.dtype)
    return torch.searchsorted(cu_lengths[1:].contiguous(), place_T, right=True)


def metric_attention(
    p_BHNK: torch.Tensor, metric_HKK: torch.Tensor, lengths_B: torch.Tensor | None = None, causal: bool = False
) -> torch.Tensor:
    """Metric attention of a padded batch.

    Args:
        p_BHNK: [B, H, N, K], floating. Padded positions are never read, not even NaN.
        metric_HKK: [H, K, K], floating; its symmetric part counts.
        lengths_B: valid positions of each text, [B], or None: all.
        causal: a position sees itself and those before it alone.

    Returns:
        [B, H, N, K] in p's type; 0 at padded positions.
    """
    place_N = torch.arange(p_BHNK.shape[2], device=p_BHNK.device)
    pair_BHCD = _not_after(place_N) if causal else None
    if lengths_B is not None:
        valid_BN = place_N < lengths_B[:, None]
        p_BHNK = p_BHNK.masked_fill(~valid_BN[:, None, :, None], 0)
        both_BHCD = (valid_BN[:, :, None] & valid_BN[:, None, :])[:, None]
        pair_BHCD = both_BHCD if pair_BHCD is None else both_BHCD & pair_BHCD
    q_BHNK = p_BHNK @ symmetric(metric_HKK).to(p_BHNK.dtype)
    r_BHCD = q_BHNK @ p_BHNK.mT / math.sqrt(p_BHNK.shape[-1])
    return _masked_softmax(r_BHCD, pair_BHCD) @ p_BHNK


def packed_metric_attention(
    p_THK: torch.Tensor, metric_HKK: torch.Tensor, cu_lengths: torch.Tensor, causal: bool = False
) -> torch.Tensor:
    """Metric attention of texts laid end to end: a position sees the positions of its own text.

    Args:
        p_THK: [T, H, K], floating.
        metric_HKK: [H, K, K], floating; its symmetric part counts.
        cu_lengths: 0 and the end of each text, [B + 1]. Positions after the last text belong to none.
        causal: a position sees itself and those before it alone.

    Returns:
        [T, H, K] in p's type; 0 at positions of no text.
    """
    text_T = text_of_position(cu_lengths, p_THK.shape[0])
    inside_T = text_T < cu_lengths.shape[0] - 1
    p_HTK = p_THK.masked_fill(~inside_T[:, None, None], 0).transpose(0, 1)
    pair_CD = (text_T[:, None] == text_T[None, :]) & inside_T
    if causal:
        pair_CD = pair_CD & _not_after(torch.arange(len(text_T), device=text_T.device))
    r_HCD = p_HTK @ symmetric(metric_HKK).to(p_THK.dtype) @ p_HTK.mT / math.sqrt(p_THK.shape[-1])
    return (_masked_softmax(r_HCD, pair_CD) @ p_HTK).transpose(0, 1)


def seed_metric_attention(
    seeds_HSK: torch.Tensor, p_BHNK: torch.Tensor, metric_HKK: torch.Tensor, lengths_B: torch.Tensor | None = None
) -> tuple[torch.Tensor, torch.Tensor]:
    """Metric attention of seeds over a padded batch.

    Args:
        seeds_HSK: [H, S, K], floating.
        p_BHNK: [B, H, N, K], floating.
        metric_HKK: [H, K, K], floating; its symmetric part counts.
        lengths_B: valid positions of each text, [B], or None: all.

    Returns:
        The pooled vectors [B, H, S, K] and the weights [B, H, S, N], in p's type; both 0 for a text without positions.
    """
    valid_BHSN = None
    if lengths_B is not None:
        valid_BN = torch.arange(p_BHNK.shape[2], device=p_BHNK.device) < lengths_B[:, None]
        p_BHNK = p_BHNK.masked_fill(~valid_BN[:, None, :, None], 0)
        valid_BHSN = valid_BN[:, None, None]
    q_HSK = seeds_HSK.to(p_BHNK.dtype) @ symmetric(metric_HKK).to(p_BHNK.dtype)
    weight_BHSN = _masked_softmax(q_HSK @ p_BHNK.mT / math.sqrt(p_BHNK.shape[-1]), valid_BHSN)
    return weight_BHSN @ p_BHNK, weight_BHSN


def packed_seed_metric_attention(
    seeds_HSK: torch.Tensor, p_THK: torch.Tensor, metric_HKK: torch.Tensor, cu_lengths: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Metric attention of seeds over texts laid end to end.

    Args:
        seeds_HSK: [H, S, K], floating.
        p_THK: [T, H, K], floating.
        metric_HKK: [H, K, K], floating; its symmetric part counts.
        cu_lengths: 0 and the end of each text, [B + 1].

    Returns:
        The pooled vectors [B, H, S, K] and the weights [H, S, T], in p's type; weights sum to 1 over a text.
    """
    text_T = text_of_position(cu_lengths, p_THK.shape[0])
    texts = cu_lengths.shape[0] - 1
    p_HTK = p_THK.masked_fill((text_T == texts)[:, None, None], 0).transpose(0, 1)
    member_BHST = (text_T == torch.arange(texts, device=text_T.device)[:, None])[:, None, None]
    q_HSK = seeds_HSK.to(p_THK.dtype) @ symmetric(metric_HKK).to(p_THK.dtype)
    r_HST = q_HSK @ p_HTK.mT / math.sqrt(p_THK.shape[-1])
    weight_BHST = _masked_softmax(r_HST.expand(texts, -1, -1, -1), member_BHST)
    return weight_BHST @ p_HTK, weight_BHST.sum(0)
