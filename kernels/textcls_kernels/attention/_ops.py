"""The kernels as custom operators of PyTorch, so that `torch.compile` and `torch.export` pass through them.

    textcls_kernels::metric_attention                 (p, metric, lengths?, table?, counts?, causal) -> (t, lse)
    textcls_kernels::metric_attention_backward        -> (dp, dmetric)
    textcls_kernels::seed_metric_attention            (seeds, p, metric, lengths?, cu_lengths?) -> (pooled, weight)
    textcls_kernels::seed_metric_attention_backward   -> (dseeds, dp, dmetric)

Each has a fake implementation (shapes, types and strides without values), which needs no Triton. The metric is packed
or full. Saved for the backward: p, metric, t and lse (float32); for the seed attention, seeds, p, metric and weight.
Short texts need neither t nor lse; they are saved all the same, so that no shape depends on the size class, and N may
be dynamic. `table` and `counts` are those of `texts.PackedTexts`. There are no second derivatives.
"""

from typing import Any, NoReturn

import torch

from textcls_kernels.attention.packing import full_metric, pack_metric, symmetric


def _lse_shape(p: torch.Tensor) -> list[int]:
    """[B, H, N], or [H, T] when packed."""
    return [p.shape[1], p.shape[0]] if p.dim() == 3 else [*p.shape[:3]]


def _seed_shapes(seeds: torch.Tensor, p: torch.Tensor, cu_lengths: torch.Tensor | None) -> tuple[list[int], list[int]]:
    """Shapes of the pooled vectors [B, H, S, K] and of the weights, [B, H, S, N] or packed [H, S, T]."""
    heads, count, width = seeds.shape
    if cu_lengths is not None:
        return [cu_lengths.shape[0] - 1, heads, count, width], [heads, count, p.shape[0]]
    return [p.shape[0], heads, count, width], [p.shape[0], heads, count, p.shape[2]]


@torch.library.custom_op("textcls_kernels::metric_attention", mutates_args=())
def metric_attention(
    p: torch.Tensor,
    metric: torch.Tensor,
    lengths: torch.Tensor | None,
    table: torch.Tensor | None,
    counts: torch.Tensor | None,
    causal: bool = False,
) -> tuple[torch.Tensor, torch.Tensor]:
    """The attended vectors t in p's shape and type; lse in float32, +inf at padding, not written for short texts."""
    from textcls_kernels.attention import _launch  # imports Triton, which may not be installed

    out, lse = torch.empty_like(p), torch.empty(_lse_shape(p), device=p.device)
    if p.numel():
        _launch.forward(p, metric, lengths, table, counts, out, lse, causal)
    return out, lse


@metric_attention.register_fake
def _(p: torch.Tensor, *_rest: Any) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.empty_like(p), torch.empty(_lse_shape(p), device=p.device)


@torch.library.custom_op("textcls_kernels::metric_attention_backward", mutates_args=())
def metric_attention_backward(
    dout: torch.Tensor,
    p: torch.Tensor,
    metric: torch.Tensor,
    lengths: torch.Tensor | None,
    table: torch.Tensor | None,
    counts: torch.Tensor | None,
    out: torch.Tensor,
    lse: torch.Tensor,
    causal: bool = False,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Gradients of p and of the metric, in its own shape."""
    from textcls_kernels.attention import _launch

    dp = torch.empty_like(p)
    if not p.numel():
        return dp, torch.zeros_like(metric, memory_format=torch.contiguous_format)
    return dp, _launch.backward(dout, p, metric, lengths, table, counts, out, lse, dp, causal)


@metric_attention_backward.register_fake
def _(_dout: torch.Tensor, p: torch.Tensor, metric: torch.Tensor, *_rest: Any) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.empty_like(p), torch.empty_like(metric, memory_format=torch.contiguous_format)


def _save(ctx: Any, inputs: tuple[Any, ...], output: tuple[torch.Tensor, torch.Tensor]) -> None:
    *tensors, ctx.causal = inputs
    out, lse = output
    ctx.save_for_backward(*tensors, out, lse)


def _gradients(ctx: Any, dout: torch.Tensor, _dlse: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
    dp, dmetric = metric_attention_backward(dout, *ctx.saved_tensors, ctx.causal)
    return dp, dmetric, None, None, None, None


def _refuse_second(ctx: Any, *_gradients: torch.Tensor) -> NoReturn:
    raise RuntimeError(
        "the kernels of metric attention have first derivatives alone, and a second one was asked for;"
        " pass impl='reference', which has both"
    )


metric_attention.register_autograd(_gradients, setup_context=_save)
metric_attention_backward.register_autograd(_refuse_second)


@torch.library.custom_op("textcls_kernels::seed_metric_attention", mutates_args=())
def seed_metric_attention(
    seeds: torch.Tensor,
    p: torch.Tensor,
    metric: torch.Tensor,
    lengths: torch.Tensor | None,
    cu_lengths: torch.Tensor | None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Pooled vectors in p's type; weights in float32, whatever p's type: the backward reads them."""
    from textcls_kernels.attention import _launch

    pooled_shape, weight_shape = _seed_shapes(seeds, p, cu_lengths)
    pooled = torch.zeros(pooled_shape, dtype=p.dtype, device=p.device)
    weight = torch.zeros(weight_shape, device=p.device)
    if p.numel() and pooled.numel():
        _launch.seed_forward(seeds, p, metric, lengths, cu_lengths, pooled, weight)
    return pooled, weight


@seed_metric_attention.register_fake
def _(seeds: torch.Tensor, p: torch.Tensor, *rest: Any) -> tuple[torch.Tensor, torch.Tensor]:
    pooled_shape, weight_shape = _seed_shapes(seeds, p, rest[-1])
    return torch.empty(pooled_shape, dtype=p.dtype, device=p.device), torch.empty(weight_shape, device=p.device)


@torch.library.custom_op("textcls_kernels::seed_metric_attention_backward", mutates_args=())
def seed_metric_attention_backward(
    dpooled: torch.Tensor,
    dweight: torch.Tensor,
    seeds: torch.Tensor,
    p: torch.Tensor,
    metric: torch.Tensor,
    lengths: torch.Tensor | None,
    cu_lengths: torch.Tensor | None,
    weight: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Gradients of seeds, of p and of the metric, in its own shape."""
    from textcls_kernels.attention import _launch

    dp = torch.empty_like(p)
    dq_BHSK = torch.zeros(dpooled.shape, device=p.device)
    if p.numel() and dpooled.numel():
        _launch.seed_backward(dpooled, dweight, seeds, p, metric, lengths, cu_lengths, weight, dp, dq_BHSK)
    # q = seeds M: what remains is a product of S x K and K x K numbers per head.
    packed = metric.dim() == 2
    dq_HSK = dq_BHSK.sum(0)
    dseeds = dq_HSK @ symmetric(full_metric(metric).float())
    both_HKK = seeds.float().mT @ dq_HSK
    both_HKK = both_HKK + both_HKK.mT
    # A number off the diagonal is in two places of M, one on it in a single place.
    dmetric = pack_metric(both_HKK - both_HKK.diagonal(0, 1, 2).diag_embed() / 2) if packed else both_HKK / 2
    return dseeds.to(seeds.dtype), dp, dmetric.to(metric.dtype)


@seed_metric_attention_backward.register_fake
def _(_dpooled: Any, _dweight: Any, *inputs: Any) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    seeds, p, metric, *_ = inputs
    return seeds.new_empty(seeds.shape), torch.empty_like(p), metric.new_empty(metric.shape)


def _seed_save(ctx: Any, inputs: tuple[Any, ...], output: tuple[torch.Tensor, torch.Tensor]) -> None:
    ctx.save_for_backward(*inputs, output[1])


def _seed_gradients(ctx: Any, dpooled: torch.Tensor, dweight: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
    dseeds, dp, dmetric = seed_metric_attention_backward(dpooled, dweight, *ctx.saved_tensors)
    return dseeds, dp, dmetric, None, None


seed_metric_attention.register_autograd(_seed_gradients, setup_context=_seed_save)
seed_metric_attention_backward.register_autograd(_refuse_second)
