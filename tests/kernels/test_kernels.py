"""The kernels' values and gradients: in Triton's interpreter, or on the GPU where there is one."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import pytest
import torch

from textcls_kernels import metric_attention, packed_texts, seed_metric_attention, unpack_metric
from textcls_kernels.impl import Impl
from textcls_kernels.testing import (
    Tensors,
    count_launches,
    fused_pytorch,
    fused_seed_pytorch,
    make_inputs,
    measure_errors,
    values_and_gradients,
)

pytest.importorskip("triton", reason="the kernels need triton: pip install 'textcls[kernels]'")

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
CAUSAL = pytest.mark.parametrize("causal", [False, True], ids=["all", "causal"])
TYPES = pytest.mark.parametrize("dtype", [torch.float32, torch.float16], ids=["fp32", "fp16"])
Function = Callable[..., torch.Tensor | Tensors]

# name: shape, lengths, deviation of p, deviation of the metric from the identity
CASES: dict[str, tuple[tuple[int, int, int, int], list[int] | None, float, float]] = {
    "N1-K8": ((2, 2, 1, 8), None, 1, 0.3),
    "N2-K24": ((2, 2, 2, 24), None, 1, 0.3),
    "N63-K64": ((1, 2, 63, 64), None, 1, 0.3),
    "N65-K24": ((2, 1, 65, 24), None, 1, 0.3),
    "N129-K8": ((1, 2, 129, 8), None, 1, 0.3),
    "N129-K64": ((1, 1, 129, 64), None, 1, 0.3),
    "N128-K32-whole-tiles": ((1, 2, 128, 32), None, 1, 0.3),
    "N192-K32-whole-tiles": ((1, 1, 192, 32), None, 1, 0.3),
    "N65-K128-wide": ((1, 1, 65, 128), None, 1, 0.2),
    "padded-and-empty": ((4, 2, 65, 24), [65, 0, 1, 30], 1, 0.3),
    "N130-padded-and-empty": ((4, 2, 130, 24), [130, 0, 1, 65], 1, 0.3),
    "all-empty": ((2, 1, 3, 8), [0, 0], 1, 0.3),
    "large-r": ((1, 2, 65, 24), [65], 4, 0.3),
    "N130-large-r": ((1, 2, 130, 24), [129], 4, 0.3),
    "far-metric": ((1, 2, 65, 24), None, 1, 3),
    "N130-far-metric": ((1, 2, 130, 24), None, 1, 3),
}
CAUSAL_CASES = ("N1-K8", "N129-K64", "N128-K32-whole-tiles", "N65-K128-wide", "padded-and-empty", "large-r")


def on_device(*tensors: torch.Tensor) -> Tensors:
    return tuple(tensor.to(DEVICE) for tensor in tensors)


def assert_within_budget(
    kernel: Function, twins: Sequence[Function], inputs: Tensors, names: tuple[str, ...], magnitude: float = 0
) -> None:
    exact = values_and_gradients(twins[0], tuple(tensor.double() for tensor in inputs))
    pytorch = [values_and_gradients(twin, inputs) for twin in twins]
    got = values_and_gradients(kernel, inputs)
    assert len(got) == len(names)
    for place, name in enumerate(names):
        errors = measure_errors(got[place], [result[place] for result in pytorch], exact[place], magnitude)
        print(f"ERR {name}: {errors}")  # noqa: T201 - shown where the test fails
        assert got[place].dtype == pytorch[0][place].dtype
        assert errors.within, f"{name}: {errors}"


@TYPES
@pytest.mark.parametrize(
    ("case", "causal"),
    [(case, False) for case in CASES] + [(case, True) for case in CAUSAL_CASES],
    ids=[*CASES, *(f"causal-{case}" for case in CAUSAL_CASES)],
)
def test_values_and_gradients_keep_to_the_error_budget(case: str, causal: bool, dtype: torch.dtype) -> None:
    shape, numbers, scale, spread = CASES[case]
    inputs = on_device(*make_inputs(shape, dtype, scale=scale, spread=spread))
    lengths = None if numbers is None else torch.tensor(numbers, device=DEVICE)
    options: dict[str, Any] = {"lengths": lengths, "causal": causal}
    assert_within_budget(
        partial(metric_attention, impl="triton", **options),
        [partial(metric_attention, impl="reference", **options), partial(fused_pytorch, **options)],
        inputs,
        ("t", "dp", "dmetric"),
        magnitude=8 if case == "N1-K8" else 0,  # no score has a gradient there: sums of products that cancel
    )


def test_bfloat16_runs_and_is_near() -> None:
    # The interpreter cuts bfloat16 off where hardware rounds, so that the budget cannot hold there.
    inputs = on_device(*make_inputs((2, 1, 65, 24), torch.bfloat16))
    exact = values_and_gradients(partial(metric_attention, impl="reference"), tuple(x.double() for x in inputs))
    for got, wanted in zip(values_and_gradients(partial(metric_attention, impl="triton"), inputs), exact, strict=True):
        assert (got.double() - wanted).norm() < 0.03 * wanted.norm()


@TYPES
@pytest.mark.parametrize("semidefinite", [False, True], ids=["metric", "L-LT"])
def test_full_metric_and_non_contiguous_p_keep_to_the_error_budget(dtype: torch.dtype, semidefinite: bool) -> None:
    base = make_inputs((2, 65, 2, 48), dtype)[0]  # read as [B, N, H, 2 K] below
    metric = unpack_metric(make_inputs((1, 2, 1, 24), dtype)[1])
    lengths = torch.tensor([65, 40], device=DEVICE)
    skew = torch.randn(2, 24, 24, generator=torch.Generator().manual_seed(5)).to(dtype) / 4

    def run(impl: Impl, p: torch.Tensor, metric: torch.Tensor) -> torch.Tensor:
        return metric_attention(
            p.transpose(1, 2)[..., ::2], metric, lengths=lengths, semidefinite=semidefinite, impl=impl
        )

    def fused(p: torch.Tensor, metric: torch.Tensor) -> torch.Tensor:
        metric = metric @ metric.mT if semidefinite else metric
        return fused_pytorch(p.transpose(1, 2)[..., ::2], metric, lengths)

    inputs = on_device(base, metric + skew)
    assert_within_budget(partial(run, "triton"), [partial(run, "reference"), fused], inputs, ("t", "dp", "dmetric"))


def test_float32_parameters_beside_float16_p_keep_their_types() -> None:
    p, metric, seeds = on_device(*make_inputs((2, 2, 5, 24), torch.float16), torch.ones(2, 1, 24))
    kernel, twin = (partial(seed_metric_attention, impl=impl) for impl in ("triton", "reference"))
    got, wanted = (values_and_gradients(f, (seeds, p, metric.float())) for f in (kernel, twin))
    assert [tensor.dtype for tensor in got] == [tensor.dtype for tensor in wanted]
    t, dp, dmetric = values_and_gradients(partial(metric_attention, impl="triton"), (p, metric.float()))
    assert (t.dtype, dp.dtype, dmetric.dtype) == (torch.float16, torch.float16, torch.float32)


@TYPES
@CAUSAL
def test_packed_batch_keeps_to_the_error_budget(dtype: torch.dtype, causal: bool) -> None:
    p, metric = make_inputs((1, 2, 150, 24), dtype)
    cu = torch.tensor([0, 5, 5, 69, 70, 150], device=DEVICE)
    inputs = on_device(p[0].transpose(0, 1).contiguous(), metric)
    run = partial(metric_attention, cu_lengths=cu, causal=causal)
    kernel = partial(run, impl="triton")
    twins = [partial(run, impl="reference"), partial(fused_pytorch, cu_lengths=cu, causal=causal)]
    assert_within_budget(kernel, twins, inputs, ("t", "dp", "dmetric"))


@TYPES
def test_packed_batch_of_one_text_keeps_to_the_error_budget(dtype: torch.dtype) -> None:
    p, metric = make_inputs((1, 2, 10, 24), dtype)
    cu = torch.tensor([0, 10], device=DEVICE)
    inputs = on_device(p[0].transpose(0, 1).contiguous(), metric)
    kernel = partial(metric_attention, cu_lengths=cu, impl="triton")
    twins = [partial(metric_attention, cu_lengths=cu, impl="reference"), partial(fused_pytorch, cu_lengths=cu)]
    assert_within_budget(kernel, twins, inputs, ("t", "dp", "dmetric"))


def test_texts_packed_beforehand_give_the_same_bits() -> None:
    p, metric = on_device(*make_inputs((1, 2, 150, 24)))
    cu = torch.tensor([0, 5, 5, 140, 150], device=DEVICE, dtype=torch.int32)
    packed, texts = p[0].transpose(0, 1).contiguous(), packed_texts(cu, 150)
    for impl in ("triton", "reference"):
        kernel = partial(metric_attention, impl=impl)
        results = [values_and_gradients(partial(kernel, cu_lengths=it), (packed, metric)) for it in (cu, texts)]
        assert all(torch.equal(a, b) for a, b in zip(*results, strict=True))


@pytest.mark.parametrize("positions", [96, 130])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16], ids=["fp32", "fp16", "bf16"])
def test_gradient_of_the_metric_is_right_where_the_softmax_is_near_one_hot(dtype: torch.dtype, positions: int) -> None:
    # The gradient through the scores is a thousandth of that through the values: delta made from a rounded t misses
    # it by 5 % in float16, and PyTorch's attention by as much; in bfloat16 by nearly all of it.
    inputs = on_device(*make_inputs((1, 1, positions, 64), dtype, scale=1.3, spread=0.05))
    exact = values_and_gradients(partial(metric_attention, impl="reference"), tuple(x.double() for x in inputs))
    got = values_and_gradients(partial(metric_attention, impl="triton"), inputs)
    assert (got[2].double() - exact[2]).norm() < 16 * torch.finfo(dtype).eps * exact[2].norm()


@pytest.mark.parametrize("packed", [False, True], ids=["padded", "packed"])
def test_second_derivative_is_refused_by_the_kernels_and_right_in_the_reference(packed: bool) -> None:
    p, metric = on_device(*make_inputs((1, 2, 5, 8)))
    cu = torch.tensor([0, 5], device=DEVICE) if packed else None
    p = p[0].transpose(0, 1) if packed else p
    seeds = torch.ones(2, 1, 8, device=DEVICE)

    def second(impl: Impl, seeded: bool) -> torch.Tensor:
        leaf = p.detach().requires_grad_()
        if seeded:
            out = seed_metric_attention(seeds, leaf, metric, cu_lengths=cu, impl=impl)[0]
        else:
            out = metric_attention(leaf, metric, cu_lengths=cu, impl=impl)
        (gradient,) = torch.autograd.grad(out.square().sum(), leaf, create_graph=True)
        return torch.autograd.grad(gradient.square().sum(), leaf)[0]

    for seeded in (False, True):
        assert second("reference", seeded).isfinite().all()
        with pytest.raises(RuntimeError, match=r"first derivatives alone.*impl='reference', which has both"):
            second("triton", seeded)


@CAUSAL
def test_packed_texts_equal_padded_texts(causal: bool) -> None:
    lengths, cu = torch.tensor([130, 0, 1, 64], device=DEVICE), torch.tensor([0, 130, 130, 131, 195], device=DEVICE)
    p, metric = on_device(*make_inputs((4, 2, 130, 24)))
    packed = torch.cat([p[text, :, : int(n)].transpose(0, 1) for text, n in enumerate(lengths)])
    run = partial(metric_attention, causal=causal, impl="triton")
    padded_out = run(p, metric, lengths=lengths)
    packed_out = run(packed, metric, cu_lengths=cu)
    flat = torch.cat([padded_out[text, :, : int(n)].transpose(0, 1) for text, n in enumerate(lengths)])
    assert torch.equal(flat[:130], packed_out[:130])  # tile by tile in both
    torch.testing.assert_close(flat, packed_out, rtol=1e-5, atol=1e-5)


@TYPES
@pytest.mark.parametrize("seeds", [1, 3])
@pytest.mark.parametrize("layout", ["padded", "packed", "whole"])
def test_seed_attention_keeps_to_the_error_budget(layout: str, seeds: int, dtype: torch.dtype) -> None:
    p, metric = make_inputs((4, 2, 64 if layout == "whole" else 65, 24), dtype)
    seed_vectors = torch.randn(2, seeds, 24, generator=torch.Generator().manual_seed(2)).to(dtype)
    options: dict[str, Any] = {"lengths": torch.tensor([65, 0, 1, 30], device=DEVICE)}
    if layout == "packed":
        p, options = p[0].transpose(0, 1).contiguous(), {"cu_lengths": torch.tensor([0, 40, 40, 41, 65], device=DEVICE)}
    options = {} if layout == "whole" else options
    kernel = partial(seed_metric_attention, impl="triton", **options)
    twins = [partial(seed_metric_attention, impl="reference", **options), partial(fused_seed_pytorch, **options)]
    names = ("pooled", "weight", "dseeds", "dp", "dmetric")
    assert_within_budget(kernel, twins, on_device(seed_vectors, p, metric), names)


def test_padding_is_never_read_and_gets_no_gradient() -> None:
    p, metric = on_device(*make_inputs((2, 1, 66, 8)))
    lengths = torch.tensor([66, 3], device=DEVICE)
    p[1, :, 3:] = float("nan")
    leaves = (p.requires_grad_(), metric.requires_grad_())
    out = metric_attention(*leaves, lengths=lengths, impl="triton")
    upstream = torch.ones_like(out)
    upstream[1, :, 3:] = float("nan")
    dp, dmetric = torch.autograd.grad(out, leaves, upstream)
    assert not out[1, :, 3:].any()
    assert not dp[1, :, 3:].any()
    assert all(tensor.isfinite().all() for tensor in (out, dp, dmetric))


@TYPES
def test_what_comes_later_changes_no_bit_before_it_and_gets_no_gradient_from_there(dtype: torch.dtype) -> None:
    p, metric = on_device(*make_inputs((1, 2, 129, 24), dtype))
    changed = p.clone()
    changed[:, :, 70:] = 3 - p[:, :, 70:]
    leaves = [tensor.requires_grad_() for tensor in (p, changed)]
    outs = [metric_attention(leaf, metric, causal=True, impl="triton")[:, :, :70] for leaf in leaves]
    gradients = [torch.autograd.grad(out.sum(), leaf)[0] for out, leaf in zip(outs, leaves, strict=True)]
    assert torch.equal(*outs)
    assert torch.equal(gradients[0][:, :, :70], gradients[1][:, :, :70])
    assert not gradients[0][:, :, 70:].any()


def test_lengths_out_of_range_are_clamped() -> None:
    p, metric = on_device(*make_inputs((2, 1, 5, 8)))
    run = partial(metric_attention, p, metric, impl="triton")
    wild, tame = torch.tensor([9, -1], device=DEVICE), torch.tensor([5, 0], device=DEVICE)
    assert torch.equal(run(lengths=wild), run(lengths=tame))


def test_same_bits_on_every_run_and_in_every_batch() -> None:
    p, metric = on_device(*make_inputs((2, 2, 130, 24)))
    kernel = partial(metric_attention, impl="triton")
    first, again = (values_and_gradients(kernel, (p, metric)) for _ in range(2))
    assert all(torch.equal(a, b) for a, b in zip(first, again, strict=True))
    assert torch.equal(first[0][1:], kernel(p[1:], metric))


def test_tiles_of_one_program_add_up(monkeypatch: pytest.MonkeyPatch) -> None:
    from textcls_kernels.attention import _launch

    p, metric = on_device(*make_inputs((2, 2, 193, 8)))
    kernel = partial(metric_attention, impl="triton")
    apart = values_and_gradients(kernel, (p, metric))
    monkeypatch.setattr(_launch, "PROGRAMS", 4)
    together = values_and_gradients(kernel, (p, metric))
    assert torch.equal(apart[1], together[1])
    torch.testing.assert_close(apart[2], together[2], rtol=1e-5, atol=1e-5)


def test_where_there_is_nothing_to_attend_to_shapes_stay_and_gradients_are_zero() -> None:
    metric = make_inputs((1, 2, 1, 8))[1].to(DEVICE)
    for shape in ((2, 2, 0, 8), (0, 2, 5, 8)):
        out, dp, dmetric = values_and_gradients(
            partial(metric_attention, impl="triton"), (torch.zeros(shape, device=DEVICE), metric)
        )
        assert (out.shape, dp.shape, dmetric.any().item()) == (shape, shape, False)
    pooled, weight = seed_metric_attention(
        torch.zeros(2, 1, 8, device=DEVICE), torch.zeros(2, 2, 0, 8, device=DEVICE), metric, impl="triton"
    )
    assert (pooled.shape, weight.shape, pooled.any().item()) == ((2, 2, 1, 8), (2, 2, 1, 0), False)


class Layer(torch.nn.Module):
    def forward(
        self, p: torch.Tensor, metric: torch.Tensor, seeds: torch.Tensor, lengths: torch.Tensor
    ) -> torch.Tensor:
        mixed = metric_attention(p, metric, lengths=lengths, impl="triton")
        return seed_metric_attention(seeds, mixed, metric, lengths=lengths, impl="triton")[0]


def test_operators_compile_export_and_check() -> None:
    p, metric = on_device(*make_inputs((2, 2, 5, 8)))
    seeds, lengths = on_device(torch.ones(2, 1, 8), torch.tensor([5, 2]))
    inputs = (p, metric, seeds, lengths)
    expected = Layer()(*inputs)
    exported = torch.export.export(Layer(), inputs)
    assert torch.equal(exported.module()(*inputs), expected)
    compiled = torch.compile(Layer(), backend="aot_eager", fullgraph=True)
    leaves = [tensor.clone().requires_grad_() for tensor in inputs[:3]]
    gradients = torch.autograd.grad(compiled(*leaves, lengths).sum(), leaves)
    plain = torch.autograd.grad(Layer()(*leaves, lengths).sum(), leaves)
    assert all(torch.equal(a, b) for a, b in zip(gradients, plain, strict=True))
    operators = torch.ops.textcls_kernels
    torch.library.opcheck(operators.seed_metric_attention.default, (leaves[2], *leaves[:2], lengths, None))
    # Short texts leave lse as it lies in memory, so that its numbers cannot be compared.
    without_values = ("test_schema", "test_autograd_registration", "test_faketensor")
    attend = operators.metric_attention.default
    torch.library.opcheck(attend, (*leaves[:2], lengths, None, None), test_utils=without_values)
    longer = [tensor.requires_grad_() for tensor in on_device(*make_inputs((2, 2, 129, 8)))]
    torch.library.opcheck(attend, (*longer, lengths, None, None))
    torch.library.opcheck(attend, (*longer, None, None, None, True))


def test_one_export_serves_texts_of_every_size_class() -> None:
    p, metric = on_device(*make_inputs((2, 2, 40, 8)))
    seeds, lengths = on_device(torch.ones(2, 1, 8), torch.tensor([40, 2]))
    shapes = {"p": {2: torch.export.Dim("N", min=2, max=1024)}, "metric": None, "seeds": None, "lengths": None}
    exported = torch.export.export(Layer(), (p, metric, seeds, lengths), dynamic_shapes=shapes).module()
    for positions in (2, 40, 130):
        longer = on_device(*make_inputs((2, 2, positions, 8)))
        assert torch.equal(exported(*longer, seeds, lengths), Layer()(*longer, seeds, lengths))


def test_a_step_launches_each_kernel_once() -> None:
    p, metric = on_device(*make_inputs((1, 2, 129, 8)))
    with count_launches() as launches:
        values_and_gradients(partial(metric_attention, impl="triton"), (p, metric))
    assert launches == {
        "prepare_metric_kernel": 2,
        "forward_kernel": 1,
        "delta_kernel": 1,
        "backward_kernel": 1,
        "metric_gradient_kernel": 1,
    }
