"""Metric tensor attention: the public functions.

    r_cd = sum_kl M_kl p_ck p_dl / sqrt(K);   s = softmax over valid d of r;   t_ck = sum_d s_cd p_dk

All d of a text are valid for each of its c, or with `causal` those that are not after c.

`impl` chooses the implementation, and is never changed behind the caller's back:

    "reference"   plain PyTorch (`reference.py`): any device, any floating type, memory quadratic in N
    "triton"      the fused kernels (`_short.py`, `_triton.py`): CUDA; float16, bfloat16, float32; memory linear in N
    "auto"        "triton" for tensors on a CUDA device, else "reference"; `resolve_impl` says which
    "sdpa"        PyTorch's own attention (`sdpa.py`), only for `metric_attention` of padded batches: for long texts

Letters: B texts, H heads, N positions, T positions of all texts together, S seeds, K width of a head.
"""

from typing import get_args

import torch

from textcls_kernels.attention import _ops, reference, sdpa
from textcls_kernels.attention.packing import full_metric, unpack_metric
from textcls_kernels.attention.texts import PackedTexts, packed_texts
from textcls_kernels.attention.validation import check_arguments, check_rows
from textcls_kernels.impl import AttentionImpl, Chosen, Impl, resolve_impl

TRITON_FLOATS = (torch.float16, torch.bfloat16, torch.float32)


def _resolve(p: torch.Tensor, impl: Impl, names: tuple[str, ...] = get_args(Impl)) -> Chosen:
    chosen = resolve_impl(p.device, impl, names)
    if chosen == "triton" and p.dtype not in TRITON_FLOATS:
        raise TypeError(f"impl 'triton' has kernels for some types; expected {list(TRITON_FLOATS)}, got {p.dtype}")
    return chosen


def _checked(
    p: torch.Tensor,
    metric: torch.Tensor,
    lengths: torch.Tensor | None,
    cu_lengths: torch.Tensor | PackedTexts | None,
    seeds: torch.Tensor | None = None,
) -> PackedTexts | None:
    """Check all arguments, and return the texts of a packed batch, or None for a padded one."""
    ends = cu_lengths.cu_lengths if isinstance(cu_lengths, PackedTexts) else cu_lengths
    check_arguments(p, metric, lengths, ends, seeds)
    if isinstance(cu_lengths, PackedTexts):
        check_rows(p, cu_lengths.rows)
        return cu_lengths
    return None if cu_lengths is None else packed_texts(cu_lengths, p.shape[0])


def _product_with_transpose(factor: torch.Tensor) -> torch.Tensor:
    """Return L L^T [H, K, K]; packed numbers are L's transpose row by row; a full L may be any square matrix."""
    lower_HKK = factor if factor.dim() == 3 else unpack_metric(factor).tril()
    return lower_HKK @ lower_HKK.mT


def metric_attention(
    p: torch.Tensor,
    metric: torch.Tensor,
    *,
    lengths: torch.Tensor | None = None,
    cu_lengths: torch.Tensor | PackedTexts | None = None,
    semidefinite: bool = False,
    causal: bool = False,
    impl: AttentionImpl = "auto",
) -> torch.Tensor:
    """Return t, every position's mean of its text's positions under the metric; differentiable in p and metric.

    Args:
        p: [B, H, N, K], padded to N; or [T, H, K], texts end to end, with `cu_lengths`. float16, bfloat16, float32,
            and float64 for the reference; 8 <= K <= 128; any strides; N, T and B may be 0.
        metric: [H, K(K + 1)/2] (`pack_metric`) or [H, K, K], of which the symmetric part counts; p's type or float32.
        lengths: how many first positions of each text are valid; [B], int32 or int64, 0 to N (clamped). None: all.
        cu_lengths: 0 and the end of each text, the last at T; [B + 1], int32 or int64. Checking its values waits for
            the GPU; `packed_texts` does that once for all layers, and its result is accepted here.
        semidefinite: `metric` is L, and the metric is L L^T: r_cc >= 0 and r_cd is a scalar product.
        causal: a position sees only itself and those before it in its text.
        impl: "auto", "reference", "triton" or "sdpa"; see the module.

    Returns:
        p's shape and type; 0 at positions that belong to no text. p there is not read, and its gradient is 0. The
        kernels have first derivatives alone: a second is refused with a RuntimeError, and is what the reference is for.

    Raises:
        ValueError: a shape, a device, the values of `cu_lengths` or `impl` break a rule.
        TypeError: a type breaks a rule.
        ModuleNotFoundError: `impl` means Triton, which is not installed.
    """
    texts = _checked(p, metric, lengths, cu_lengths)
    metric = _product_with_transpose(metric) if semidefinite else metric
    if impl == "sdpa":
        if texts is not None:
            raise ValueError("impl 'sdpa' is for padded batches; expected p [B, H, N, K] with lengths, got cu_lengths")
        return sdpa.metric_attention(p, full_metric(metric), lengths, causal)
    chosen = _resolve(p, impl, get_args(AttentionImpl))
    if chosen == "triton":
        packed = (None, None) if texts is None else (texts.table, texts.counts)
        t: torch.Tensor = _ops.metric_attention(p, metric, lengths, *packed, causal)[0]
        return t
    if texts is not None:
        return reference.packed_metric_attention(p, full_metric(metric), texts.cu_lengths, causal)
    return reference.metric_attention(p, full_metric(metric), lengths, causal)


def seed_metric_attention(
    seeds: torch.Tensor,
    p: torch.Tensor,
    metric: torch.Tensor,
    *,
    lengths: torch.Tensor | None = None,
    cu_lengths: torch.Tensor | PackedTexts | None = None,
    semidefinite: bool = False,
    impl: Impl = "auto",
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return what learned seeds pool from each text, and the weights; differentiable in seeds, p and metric.

    Args:
        seeds: [H, S, K], the queries, alike for all texts; p's type or float32; 1 <= S <= 16.
        p: as in `metric_attention`.
        metric: as in `metric_attention`.
        lengths: as in `metric_attention`.
        cu_lengths: as in `metric_attention`.
        semidefinite: as in `metric_attention`.
        impl: as in `metric_attention`.

    Returns:
        The pooled vectors [B, H, S, K] and the weights, [B, H, S, N] or packed [H, S, T], both in p's type. Weights
        sum to 1 over a text; both are 0 where a text has no position.

    Raises:
        ValueError, TypeError, ModuleNotFoundError: as in `metric_attention`.
    """
    texts = _checked(p, metric, lengths, cu_lengths, seeds)
    ends = None if texts is None else texts.cu_lengths
    chosen = _resolve(p, impl)
    metric = _product_with_transpose(metric) if semidefinite else metric
    if chosen == "triton":
        pooled_BHSK, weight = _ops.seed_metric_attention(seeds, p, metric, lengths, ends)
        return pooled_BHSK, weight.to(p.dtype)
    if ends is not None:
        return reference.packed_seed_metric_attention(seeds, p, full_metric(metric), ends)
    return reference.seed_metric_attention(seeds, p, full_metric(metric), lengths)
