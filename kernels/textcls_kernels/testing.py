"""What the kernels' tests and benchmarks share: inputs, error budgets, and a count of launches."""

import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import NamedTuple

import torch
from torch.nn.functional import pad, scaled_dot_product_attention

from textcls_kernels.attention.metric_attention import seed_metric_attention
from textcls_kernels.attention.packing import full_metric, pack_metric, symmetric

Tensors = tuple[torch.Tensor, ...]


def make_inputs(
    shape: tuple[int, int, int, int],
    dtype: torch.dtype = torch.float32,
    *,
    scale: float = 1.0,
    spread: float = 0.3,
    seed: int = 0,
    device: torch.device | str = "cpu",
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return p [B, H, N, K] and a packed metric [H, K(K + 1)/2], rounded to `dtype`.

    p is normal with deviation `scale`; the metric is the identity plus a symmetric normal matrix of deviation `spread`
    (at 0.3 and K = 24 it has negative eigenvalues, at 3 there is little left of the identity).
    """
    generator = torch.Generator().manual_seed(seed)
    _, heads, _, width = shape
    p = torch.randn(shape, generator=generator, dtype=torch.float64) * scale
    noise = torch.randn(heads, width, width, generator=generator, dtype=torch.float64)
    metric = torch.eye(width, dtype=torch.float64) + spread * (noise + noise.mT) / 2
    return p.to(device, dtype), pack_metric(metric).to(device, dtype)


class Errors(NamedTuple):
    """Deviations of one tensor from its float64 value, root mean square and largest, and their limits."""

    kernel: float
    same_precision: float
    budget: float
    largest: float
    largest_budget: float

    @property
    def within(self) -> bool:
        """Whether the kernel stays within the budget; False for NaN."""
        return self.kernel <= self.budget and self.largest <= self.largest_budget

    def __str__(self) -> str:
        return (
            f"rms: kernel {self.kernel:.2e}, same precision {self.same_precision:.2e}, budget {self.budget:.2e}; "
            f"largest: kernel {self.largest:.2e}, budget {self.largest_budget:.2e}"
        )


def measure_errors(
    kernel: torch.Tensor, same_precision: Sequence[torch.Tensor], exact: torch.Tensor, magnitude: float = 0.0
) -> Errors:
    """Compare a kernel's tensor, and those of PyTorch in the same precision, with the twin's in float64.

    The budget is twice PyTorch's root mean square error, and three times its largest error, a single draw that varies
    (no element may be far off). It is at least one rounding of the exact values, or of `magnitude`, the size of what
    was summed, if that is larger: otherwise, if PyTorch happens to be exact, no rounding would be allowed.
    """
    exact = exact.detach().double()
    if not exact.numel():
        return Errors(0.0, 0.0, 0.0, 0.0, 0.0)
    gaps = [(tensor.detach().double() - exact).abs() for tensor in (kernel, *same_precision)]
    own, *pytorch = [float(gap.square().mean().sqrt()) for gap in gaps]
    own_largest, *pytorch_largest = [float(gap.max()) for gap in gaps]
    eps = torch.finfo(kernel.dtype).eps
    rounding = eps * max(magnitude, float(exact.square().mean().sqrt()))
    largest_rounding = eps * max(magnitude, float(exact.abs().max()))
    return Errors(
        kernel=own,
        same_precision=max(pytorch),
        budget=max(2 * max(pytorch), rounding),
        largest=own_largest,
        largest_budget=max(3 * max(pytorch_largest), largest_rounding),
    )


def fused_pytorch(
    p: torch.Tensor,
    metric: torch.Tensor,
    lengths: torch.Tensor | None = None,
    cu_lengths: torch.Tensor | None = None,
    causal: bool = False,
) -> torch.Tensor:
    """Metric attention by `scaled_dot_product_attention` with q = p M and k = v = p, text by text.

    PyTorch's other way to the same numbers, and a fused one: its backward, as the kernels', takes rowsum(dt * t) for
    the sum of S D over a row, whose roundings then do not cancel. In float32 that alone doubles the error of gradients.
    """
    metric_HKK = symmetric(full_metric(metric))
    done = [_fused(p_HNK @ metric_HKK, p_HNK, causal) for p_HNK in _texts(p, lengths, cu_lengths)]
    if cu_lengths is None:
        return torch.stack([pad(t_HNK, (0, 0, 0, p.shape[2] - t_HNK.shape[1])) for t_HNK in done])
    t_THK = torch.cat([t_HNK.transpose(0, 1) for t_HNK in done])
    return pad(t_THK, (0, 0, 0, 0, 0, p.shape[0] - t_THK.shape[0]))


def fused_seed_pytorch(
    seeds: torch.Tensor,
    p: torch.Tensor,
    metric: torch.Tensor,
    lengths: torch.Tensor | None = None,
    cu_lengths: torch.Tensor | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Seed attention likewise; the weights, which the fused function keeps to itself, are the twin's."""
    q_HSK = seeds @ symmetric(full_metric(metric))
    pooled = torch.stack([_fused(q_HSK, p_HNK) for p_HNK in _texts(p, lengths, cu_lengths)])
    _, weight = seed_metric_attention(seeds, p, metric, lengths=lengths, cu_lengths=cu_lengths, impl="reference")
    return pooled, weight


def _texts(p: torch.Tensor, lengths: torch.Tensor | None, cu_lengths: torch.Tensor | None) -> list[torch.Tensor]:
    """The valid positions of each text, [H, N, K]."""
    if cu_lengths is not None:
        ends = cu_lengths.tolist()
        return [p[start:end].transpose(0, 1) for start, end in pairwise(ends)]
    numbers = [p.shape[2]] * p.shape[0] if lengths is None else lengths.tolist()
    return [p_HNK[:, :number] for p_HNK, number in zip(p, numbers, strict=True)]


def _fused(q_HNK: torch.Tensor, p_HNK: torch.Tensor, causal: bool = False) -> torch.Tensor:
    if not p_HNK.shape[1]:
        return q_HNK * 0
    p_HNK = p_HNK.contiguous()  # other strides make PyTorch fall back to its unfused form
    q_BHNK, p_BHNK = q_HNK.contiguous()[None], p_HNK[None]
    return scaled_dot_product_attention(q_BHNK, p_BHNK, p_BHNK, is_causal=causal)[0]


def values_and_gradients(
    function: Callable[..., torch.Tensor | Tensors], inputs: Tensors, upstream_seed: int = 1
) -> list[torch.Tensor]:
    """Return the outputs of `function(*inputs)`, then each input's gradient for fixed random output gradients."""
    leaves = [tensor.detach().requires_grad_() for tensor in inputs]
    result = function(*leaves)
    outputs = result if isinstance(result, tuple) else (result,)
    generator = torch.Generator().manual_seed(upstream_seed)
    upstream = [torch.randn(out.shape, generator=generator, dtype=torch.float64).to(out) for out in outputs]
    gradients = torch.autograd.grad(outputs, leaves, upstream)
    return [*(out.detach() for out in outputs), *gradients]


@contextmanager
def count_launches() -> Iterator[Counter[str]]:
    """Count the launches of each kernel inside the block; the counter is filled when the block ends."""
    counted: Counter[str] = Counter()
    before = _launches()
    yield counted
    counted.update(_launches() - before)


def _launches() -> Counter[str]:
    launching = sys.modules.get("textcls_kernels.launching")  # if it is not loaded, nothing was launched
    return Counter() if launching is None else Counter(launching.LAUNCHES)
