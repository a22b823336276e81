"""The kernels for short texts: in Triton's interpreter, or on the GPU where there is one."""

from functools import partial
from itertools import product
from typing import Any

import pytest
import torch

from textcls_kernels import metric_attention, packed_texts
from textcls_kernels.testing import (
    Tensors,
    count_launches,
    fused_pytorch,
    make_inputs,
    measure_errors,
    values_and_gradients,
)

pytest.importorskip("triton", reason="the kernels need triton: pip install 'textcls[kernels]'")

from textcls_kernels.attention import _launch_short, _short

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
TYPES = pytest.mark.parametrize("dtype", [torch.float32, torch.float16], ids=["fp32", "fp16"])
KERNEL = partial(metric_attention, impl="triton")
TWIN = partial(metric_attention, impl="reference")


def on_device(*tensors: torch.Tensor) -> Tensors:
    return tuple(tensor.to(DEVICE) for tensor in tensors)


def assert_within_budget(inputs: Tensors, magnitude: float = 0, **options: Any) -> None:
    exact = values_and_gradients(partial(TWIN, **options), tuple(tensor.double() for tensor in inputs))
    pytorch = [values_and_gradients(partial(twin, **options), inputs) for twin in (TWIN, fused_pytorch)]
    got = values_and_gradients(partial(KERNEL, **options), inputs)
    for place, name in enumerate(("t", "dp", "dmetric")):
        errors = measure_errors(got[place], [result[place] for result in pytorch], exact[place], magnitude)
        assert errors.within, f"{name}: {errors}"


@TYPES
@pytest.mark.parametrize(
    ("positions", "width"), [*product((1, 2, 17, 63, 64, 65, 127, 128), (16, 32, 64, 128))], ids=str
)
def test_short_texts_keep_to_the_error_budget(positions: int, width: int, dtype: torch.dtype) -> None:
    heads = (1, 3, 4)[(positions + width // 16) % 3]
    spread = 0.3 if width < 64 else 0.1  # scores of about the same size at every width
    # Of one position no score has a gradient: sums of products that cancel.
    magnitude = 8 if positions == 1 else 0
    if dtype == torch.float32 and width > 32:  # for the tiles, whose S = exp(r - lse) has the rounding of an r of 20
        magnitude = 64
    assert_within_budget(on_device(*make_inputs((2, heads, positions, width), dtype, spread=spread)), magnitude)


@TYPES
@pytest.mark.parametrize("causal", [False, True], ids=["all", "causal"])
@pytest.mark.parametrize(("longest", "width"), [(30, 64), (61, 24), (128, 24), (128, 64)])
def test_ragged_short_texts_keep_to_the_error_budget(
    longest: int, width: int, causal: bool, dtype: torch.dtype
) -> None:
    inputs = on_device(*make_inputs((5, 3, longest, width), dtype))
    lengths = torch.tensor([longest, 0, 1, longest // 2, 17], device=DEVICE)
    assert_within_budget(inputs, lengths=lengths, causal=causal)


@pytest.mark.parametrize("scale", [1, 20], ids=["quiet", "loud"])
def test_what_comes_later_changes_no_bit_before_it(scale: float) -> None:
    # However loud it is: in a causal text no decision is made from all of its scores.
    p, metric = on_device(*make_inputs((1, 2, 60, 32), torch.float16))
    changed = p.clone()
    changed[:, :, 30:] = scale * (3 - p[:, :, 30:])
    outs = [metric_attention(it, metric, causal=True, impl="triton")[:, :, :30] for it in (p, changed)]
    assert torch.equal(*outs)


@TYPES
@pytest.mark.parametrize(
    "lengths",
    [[10], [0, 10, 0], [40, 3, 0, 64, 128, 1, 32, 33, 65], [7, 130, 0, 20, 300, 64]],
    ids=["one-text", "one-of-three", "every-class", "long-ones-too"],
)
def test_packed_texts_of_every_size_class_keep_to_the_error_budget(lengths: list[int], dtype: torch.dtype) -> None:
    p, metric = on_device(*make_inputs((1, 2, sum(lengths), 24), dtype))
    cu = torch.tensor([0, *lengths], device=DEVICE).cumsum(0)
    assert_within_budget((p[0].transpose(0, 1).contiguous(), metric), cu_lengths=cu)


@pytest.mark.parametrize("positions", [30, 64, 100])
def test_bfloat16_runs_and_is_near(positions: int) -> None:
    # The interpreter cuts bfloat16 off where hardware rounds, so that the budget cannot hold there.
    inputs = on_device(*make_inputs((2, 3, positions, 32), torch.bfloat16))
    exact = values_and_gradients(TWIN, tuple(tensor.double() for tensor in inputs))
    for got, wanted in zip(values_and_gradients(KERNEL, inputs), exact, strict=True):
        assert (got.double() - wanted).norm() < 0.03 * wanted.norm()


@pytest.mark.skipif(DEVICE == "cuda", reason="a compiled kernel keeps the constant that is changed here")
@pytest.mark.parametrize(("scale", "spread", "sign"), [(4, 1, 1), (8, 0.05, -1)], ids=["above", "below"])
def test_loud_scores_get_the_second_term(
    scale: float, spread: float, sign: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    p, metric = make_inputs((1, 1, 100, 32), torch.float16, scale=scale, spread=spread)
    inputs = on_device(p, sign * metric)
    exact = TWIN(*(tensor.double() for tensor in inputs))

    def error() -> float:
        return float((KERNEL(*inputs).double() - exact).norm())

    with_two = error()
    monkeypatch.setattr(_short, "LOUD", type(_short.LOUD)(float("inf")))
    assert 4 * with_two < error()


@TYPES
def test_same_bits_on_every_run_and_in_every_batch(dtype: torch.dtype) -> None:
    for positions in (30, 64, 100):
        p, metric = on_device(*make_inputs((3, 2, positions, 32), dtype))
        first, again = (values_and_gradients(KERNEL, (p, metric)) for _ in range(2))
        assert all(torch.equal(a, b) for a, b in zip(first, again, strict=True))
        alone = values_and_gradients(KERNEL, (p[:1], metric))
        assert torch.equal(first[0][:1], alone[0])


@pytest.mark.parametrize("positions", [64, 128])
def test_programs_that_take_several_texts_add_them_up(positions: int, monkeypatch: pytest.MonkeyPatch) -> None:
    inputs = on_device(*make_inputs((5, 2, positions, 16), torch.float16))
    apart = values_and_gradients(KERNEL, inputs)
    monkeypatch.setattr(_launch_short, "SHORT_PROGRAMS", 4)
    monkeypatch.setattr(_launch_short, "PARTIAL_BYTES", 4 * 4 * 16 * 16)
    with count_launches() as launches:
        together = values_and_gradients(KERNEL, inputs)
    # A kernel that loops goes through the texts in one launch; one that does not is launched for two texts at a time.
    assert launches["short_backward_kernel"] == (1 if positions == 64 else 3)
    assert torch.equal(apart[0], together[0])
    assert torch.equal(apart[1], together[1])
    torch.testing.assert_close(apart[2], together[2], rtol=2e-3, atol=2e-3)


def test_a_step_of_short_texts_is_three_launches() -> None:
    inputs = on_device(*make_inputs((2, 2, 100, 32), torch.float16))
    with count_launches() as launches:
        values_and_gradients(KERNEL, inputs)
    assert launches == {"short_forward_kernel": 1, "short_backward_kernel": 1, "metric_gradient_kernel": 1}


@pytest.mark.skipif(DEVICE == "cuda", reason="not every GPU has a kernel for short texts of wide heads")
def test_a_step_of_short_texts_with_wide_heads_is_five_launches() -> None:
    with count_launches() as launches:
        values_and_gradients(KERNEL, make_inputs((2, 2, 20, 72), torch.float16))
    assert launches == {
        "prepare_metric_kernel": 2,
        "short_forward_kernel": 1,
        "short_backward_kernel": 1,
        "metric_gradient_kernel": 1,
    }


def test_packed_batch_launches_a_kernel_a_size_class() -> None:
    lengths = torch.tensor([5, 10, 0, 40, 70, 128])
    p, metric = on_device(*make_inputs((1, 2, int(lengths.sum()), 32), torch.float16))
    texts = packed_texts(torch.cat([torch.zeros(1, dtype=torch.int64), lengths.cumsum(0)]).to(DEVICE), p.shape[2])
    with count_launches() as launches:
        values_and_gradients(partial(KERNEL, cu_lengths=texts), (p[0].transpose(0, 1), metric))
    assert launches == {"short_forward_kernel": 3, "short_backward_kernel": 3, "metric_gradient_kernel": 1}


def test_padding_of_short_texts_is_never_read_and_gets_no_gradient() -> None:
    p, metric = on_device(*make_inputs((3, 1, 50, 8)))
    lengths = torch.tensor([50, 3, 0], device=DEVICE)
    for text, length in enumerate(lengths.tolist()):
        p[text, :, length:] = float("nan")
    out, dp, dmetric = values_and_gradients(partial(KERNEL, lengths=lengths), (p, metric))
    for text, length in enumerate(lengths.tolist()):
        assert not out[text, :, length:].any()
        assert not dp[text, :, length:].any()
    assert all(tensor.isfinite().all() for tensor in (out, dp, dmetric))
