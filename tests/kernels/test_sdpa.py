"""Metric attention by PyTorch's own attention is that of the twin."""

from functools import partial

import pytest
import torch

from textcls_kernels import metric_attention, seed_metric_attention
from textcls_kernels.testing import values_and_gradients

LENGTHS = {"all": None, "some": [7, 0, 1], "beyond": [99, -1, 7], "none": [0, 0, 0]}


@pytest.mark.parametrize("causal", [False, True], ids=["all", "causal"])
@pytest.mark.parametrize("semidefinite", [False, True], ids=["any metric", "semidefinite"])
@pytest.mark.parametrize("told", LENGTHS)
def test_values_and_gradients_are_those_of_the_twin(told: str, semidefinite: bool, causal: bool) -> None:
    generator = torch.Generator().manual_seed(0)
    p = torch.randn(3, 2, 7, 8, generator=generator, dtype=torch.float64)
    metric = torch.randn(2, 36, generator=generator, dtype=torch.float64)
    lengths = None if LENGTHS[told] is None else torch.tensor(LENGTHS[told])
    run = partial(metric_attention, lengths=lengths, semidefinite=semidefinite, causal=causal)
    ours, twin = (values_and_gradients(partial(run, impl=impl), (p, metric)) for impl in ("sdpa", "reference"))
    for got, wanted in zip(ours, twin, strict=True):
        torch.testing.assert_close(got, wanted, rtol=1e-12, atol=1e-12)


def test_padding_is_not_read() -> None:
    p, metric = torch.randn(2, 1, 5, 8), torch.randn(1, 36)
    lengths = torch.tensor([3, 0])
    beside = p.clone()
    beside[0, :, 3:] = beside[1] = torch.nan
    run = partial(metric_attention, lengths=lengths, impl="sdpa")
    for got, wanted in zip(
        values_and_gradients(run, (beside, metric)), values_and_gradients(run, (p, metric)), strict=True
    ):
        assert torch.equal(got, wanted)


def test_packed_texts_and_seeds_are_refused_in_words() -> None:
    p, metric = torch.randn(5, 1, 8), torch.randn(1, 36)
    with pytest.raises(ValueError, match=r"^impl 'sdpa' is for padded batches; expected p \[B, H, N, K\] with lengths"):
        metric_attention(p, metric, cu_lengths=torch.tensor([0, 5]), impl="sdpa")
    with pytest.raises(ValueError, match=r"expected one of \['auto', 'reference', 'triton'\], got 'sdpa'"):
        seed_metric_attention(torch.randn(1, 1, 8), p[None].transpose(1, 2), metric, impl="sdpa")  # type: ignore[arg-type]
