"""The twin itself: against finite differences, and against a second form written as explicit sums."""

import math
from itertools import pairwise

import pytest
import torch

from textcls_kernels import metric_attention, pack_metric, seed_metric_attention, unpack_metric
from textcls_kernels.testing import make_inputs, values_and_gradients

F64 = torch.float64
CAUSAL = pytest.mark.parametrize("causal", [False, True], ids=["all", "causal"])


def scores_by_sums(p_NK: torch.Tensor, packed_L: torch.Tensor, source: bool = False) -> torch.Tensor:
    """r of one head from the packed numbers, term by term over k <= l; with `source`, as the source expands it."""
    positions, width = p_NK.shape
    rows: list[list[float]] = [[0.0] * positions for _ in range(positions)]
    p, numbers = p_NK.tolist(), packed_L.tolist()
    for c in range(positions):
        for d in range(positions):
            place = 0
            for k in range(width):
                for m in range(k, width):
                    if source:
                        pairs = p[c][k] * p[d][m] * (1 if k == m else 2) * (1 if c == d else 2)
                    else:
                        pairs = p[c][k] * p[d][k] if k == m else p[c][k] * p[d][m] + p[c][m] * p[d][k]
                    rows[c][d] += numbers[place] * pairs
                    place += 1
    return torch.tensor(rows, dtype=F64) / math.sqrt(width)


def attention_by_sums(p_NK: torch.Tensor, packed_L: torch.Tensor, causal: bool = False) -> torch.Tensor:
    score = scores_by_sums(p_NK, packed_L).exp()
    score = score.tril() if causal else score
    return (score / score.sum(1, keepdim=True)) @ p_NK


def one_pass_gradients(
    p_NK: torch.Tensor, metric_KK: torch.Tensor, dout_NK: torch.Tensor, causal: bool = False
) -> tuple[torch.Tensor, torch.Tensor]:
    """The backward that the kernel computes, without its tiles: both softmaxes from one symmetric r."""
    root = math.sqrt(p_NK.shape[1])
    r = p_NK @ metric_KK @ p_NK.mT / root
    lse = r.exp().tril().sum(1).log() if causal else r.logsumexp(1)
    s, s_transposed = (r - lse[:, None]).exp(), (r - lse[None, :]).exp()
    s, s_transposed = (s.tril(), s_transposed.triu()) if causal else (s, s_transposed)
    delta = (dout_NK * (s @ p_NK)).sum(1)
    big_r = s * (dout_NK @ p_NK.mT - delta[:, None]) + s_transposed * (p_NK @ dout_NK.mT - delta[None, :])
    g = big_r @ p_NK / root
    dmetric = p_NK.mT @ g / 2
    return g @ metric_KK + s_transposed @ dout_NK, (dmetric + dmetric.mT) / 2


def lengths_of(*numbers: int) -> torch.Tensor:
    return torch.tensor(numbers)


@CAUSAL
def test_twin_equals_explicit_sums_over_packed_numbers(causal: bool) -> None:
    p, packed = make_inputs((2, 2, 5, 8), F64)
    result = metric_attention(p, packed, causal=causal)
    for text in range(2):
        for head in range(2):
            torch.testing.assert_close(
                result[text, head], attention_by_sums(p[text, head], packed[head], causal), rtol=1e-12, atol=1e-12
            )


def test_packed_expansion_of_the_source_is_wrong_and_the_cross_terms_right_it() -> None:
    p, packed = make_inputs((1, 1, 4, 8), F64)
    true = p[0, 0] @ unpack_metric(packed)[0] @ p[0, 0].mT / math.sqrt(8)
    torch.testing.assert_close(scores_by_sums(p[0, 0], packed[0]), true, rtol=1e-12, atol=1e-12)
    wrong = scores_by_sums(p[0, 0], packed[0], source=True)
    assert (wrong - true).abs().max() > 1
    # Its diagonal c = d is right, for there p_ck p_cl + p_cl p_ck is 2 p_ck p_cl; every other entry is not.
    torch.testing.assert_close(wrong.diagonal(), true.diagonal(), rtol=1e-12, atol=1e-12)
    assert ((wrong - true).abs() > 1e-3)[~torch.eye(4, dtype=torch.bool)].all()


@CAUSAL
def test_one_pass_backward_equals_autograd(causal: bool) -> None:
    p, packed = make_inputs((1, 1, 7, 8), F64)
    metric = unpack_metric(packed)
    upstream = torch.randn(1, 1, 7, 8, dtype=F64, generator=torch.Generator().manual_seed(3))
    leaves = (p.requires_grad_(), metric.requires_grad_())
    dp, dmetric = torch.autograd.grad(metric_attention(*leaves, causal=causal), leaves, upstream)
    got_dp, got_dmetric = one_pass_gradients(p[0, 0].detach(), metric[0].detach(), upstream[0, 0], causal)
    torch.testing.assert_close(got_dp, dp[0, 0], rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(got_dmetric, dmetric[0], rtol=1e-12, atol=1e-12)


@CAUSAL
@pytest.mark.parametrize("semidefinite", [False, True], ids=["metric", "L-LT"])
@pytest.mark.parametrize("full", [False, True], ids=["packed-metric", "full-metric"])
def test_gradients_equal_finite_differences(full: bool, semidefinite: bool, causal: bool) -> None:
    p, metric = make_inputs((3, 2, 4, 8), F64)
    metric = unpack_metric(metric) + torch.rand(2, 8, 8, dtype=F64) if full else metric

    def run(p: torch.Tensor, metric: torch.Tensor) -> torch.Tensor:
        return metric_attention(p, metric, lengths=lengths_of(4, 1, 0), semidefinite=semidefinite, causal=causal)

    assert torch.autograd.gradcheck(run, (p.requires_grad_(), metric.requires_grad_()), fast_mode=True)


@CAUSAL
def test_packed_batch_gradients_equal_finite_differences(causal: bool) -> None:
    p = make_inputs((1, 6, 2, 8), F64)[0]  # read as [T, H, K] below
    cu = lengths_of(0, 3, 3, 6)

    def run(p: torch.Tensor, metric: torch.Tensor) -> torch.Tensor:
        return metric_attention(p, metric, cu_lengths=cu, causal=causal)

    leaves = (p[0].clone().requires_grad_(), make_inputs((1, 2, 1, 8), F64)[1].requires_grad_())
    assert torch.autograd.gradcheck(run, leaves, fast_mode=True)


@pytest.mark.parametrize("packed_batch", [False, True], ids=["padded", "packed"])
def test_seed_gradients_equal_finite_differences(packed_batch: bool) -> None:
    p, metric = make_inputs((3, 2, 4, 8), F64)
    seeds = torch.randn(2, 3, 8, dtype=F64)
    if packed_batch:
        p = p.transpose(1, 2).flatten(0, 1)

    def run(seeds: torch.Tensor, p: torch.Tensor, metric: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        if packed_batch:
            return seed_metric_attention(seeds, p, metric, cu_lengths=lengths_of(0, 4, 4, 12))
        return seed_metric_attention(seeds, p, metric, lengths=lengths_of(4, 1, 0))

    leaves = (seeds.requires_grad_(), p.detach().requires_grad_(), metric.requires_grad_())
    assert torch.autograd.gradcheck(run, leaves, fast_mode=True)


def test_causal_position_gets_what_it_would_get_if_its_text_ended_there() -> None:
    p, metric = make_inputs((1, 2, 9, 8), F64)
    alone = torch.stack([metric_attention(p[:, :, : c + 1], metric)[:, :, -1] for c in range(9)], 2)
    torch.testing.assert_close(metric_attention(p, metric, causal=True), alone)
    ragged = metric_attention(p, metric, lengths=lengths_of(6), causal=True)
    torch.testing.assert_close(ragged[:, :, :6], alone[:, :, :6])
    assert not ragged[:, :, 6:].any()
    ends = [0, 4, 4, 9]
    packed = metric_attention(p[0].transpose(0, 1), metric, cu_lengths=torch.tensor(ends), causal=True)
    for start, end in pairwise(ends):
        text = metric_attention(p[:, :, start:end], metric, causal=True)
        torch.testing.assert_close(packed[start:end], text[0].transpose(0, 1))


def test_packed_texts_equal_texts_alone() -> None:
    p, metric = make_inputs((1, 2, 12, 8), F64)
    p_THK, ends = p[0].transpose(0, 1), [0, 5, 5, 6, 12]
    together = metric_attention(p_THK, metric, cu_lengths=torch.tensor(ends))
    seeds = torch.randn(2, 3, 8, dtype=F64)
    pooled, weight = seed_metric_attention(seeds, p_THK, metric, cu_lengths=torch.tensor(ends))
    for text, (start, end) in enumerate(pairwise(ends)):
        alone = metric_attention(p[:, :, start:end], metric)[0].transpose(0, 1)
        torch.testing.assert_close(together[start:end], alone)
        pooled_alone, weight_alone = seed_metric_attention(seeds, p[:, :, start:end], metric)
        torch.testing.assert_close(pooled[text], pooled_alone[0])
        torch.testing.assert_close(weight[:, :, start:end], weight_alone[0])


def test_padding_does_not_change_values_and_gets_no_gradient() -> None:
    p, metric = make_inputs((2, 2, 6, 8), F64)
    p[1, :, 2:] = float("nan")

    def run(p: torch.Tensor, metric: torch.Tensor) -> torch.Tensor:
        return metric_attention(p, metric, lengths=lengths_of(6, 2))

    out, dp, dmetric = values_and_gradients(run, (p, metric))
    torch.testing.assert_close(out[1:, :, :2], metric_attention(p[1:, :, :2], metric))
    assert not out[1, :, 2:].any()
    assert not dp[1, :, 2:].any()
    assert dmetric.isfinite().all()


def test_empty_text_gives_zero_and_one_position_gives_itself() -> None:
    p, metric = make_inputs((2, 2, 3, 8), F64)
    out = metric_attention(p, metric, lengths=lengths_of(0, 1))
    assert not out[0].any()
    torch.testing.assert_close(out[1, :, 0], p[1, :, 0])
    pooled, weight = seed_metric_attention(torch.randn(2, 1, 8, dtype=F64), p, metric, lengths=lengths_of(0, 1))
    assert not pooled[0].any()
    assert not weight[0].any()
    assert weight[1, :, 0].tolist() == [[1.0, 0.0, 0.0]] * 2
    assert metric_attention(p[:, :, :0], metric).shape == (2, 2, 0, 8)


def test_seed_attention_is_a_softmax_of_metric_scores() -> None:
    p, metric = make_inputs((2, 2, 5, 8), F64)
    seeds = torch.randn(2, 3, 8, dtype=F64)
    pooled, weight = seed_metric_attention(seeds, p, metric)
    score = torch.einsum("hsk,hkl,bhnl->bhsn", seeds, unpack_metric(metric), p) / math.sqrt(8)
    torch.testing.assert_close(weight, score.softmax(-1))
    torch.testing.assert_close(pooled, torch.einsum("bhsn,bhnk->bhsk", weight, p))


def test_semidefinite_metric_is_l_times_its_transpose() -> None:
    p, numbers = make_inputs((1, 2, 5, 8), F64, spread=3)
    lower = unpack_metric(numbers).tril()
    metric = lower @ lower.mT
    assert (torch.linalg.eigvalsh(metric) > -1e-9).all()
    expected = metric_attention(p, metric)
    torch.testing.assert_close(metric_attention(p, numbers, semidefinite=True), expected)
    torch.testing.assert_close(metric_attention(p, lower, semidefinite=True), expected)


def test_only_the_symmetric_part_of_a_full_metric_counts() -> None:
    p, packed = make_inputs((1, 2, 5, 8), F64)
    metric = unpack_metric(packed)
    skew = torch.randn(2, 8, 8, dtype=F64)
    torch.testing.assert_close(metric_attention(p, metric + skew - skew.mT), metric_attention(p, metric))


def test_packing_round_trip_and_order() -> None:
    packed = torch.arange(36.0)[None]
    full = unpack_metric(packed)
    assert full[0, 0].tolist() == [0, 1, 2, 3, 4, 5, 6, 7]
    assert full[0, 1].tolist() == [1, 8, 9, 10, 11, 12, 13, 14]
    assert torch.equal(full, full.mT)
    assert torch.equal(pack_metric(full), packed)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, F64])
def test_types_are_kept(dtype: torch.dtype) -> None:
    p, metric = make_inputs((2, 2, 5, 8), dtype)
    out, dp, dmetric = values_and_gradients(metric_attention, (p, metric.float() if dtype != F64 else metric))
    assert out.dtype == dp.dtype == dtype
    assert dmetric.dtype == (F64 if dtype == F64 else torch.float32)


def test_reference_compiles_and_exports() -> None:
    class Layer(torch.nn.Module):
        def forward(self, p: torch.Tensor, metric: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
            return metric_attention(p, metric, lengths=lengths)

    p, metric = make_inputs((2, 2, 5, 8))
    inputs = (p, metric, lengths_of(5, 2))
    expected = Layer()(*inputs)
    exported = torch.export.export(Layer(), inputs)
    torch.testing.assert_close(exported.module()(*inputs), expected)
    torch.testing.assert_close(torch.compile(Layer(), backend="eager", fullgraph=True)(*inputs), expected)
