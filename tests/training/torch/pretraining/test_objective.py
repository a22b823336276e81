"""The objective of mutual information: what it is for views that agree, disagree, or say nothing."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from textcls_torch.pretraining.clusters.objective import (
    SHARPNESS,
    Marginal,
    cross_entropy,
    entropy,
    information,
    information_loss,
)


def logits(texts: int, clusters: int, seed: int, scale: float = 1.0) -> Tensor:
    return scale * torch.randn(texts, clusters, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def test_two_views_that_surely_say_the_same_share_all_there_is_to_say() -> None:
    sure_RC = 100 * torch.eye(4).repeat(5, 1)
    assert information(sure_RC, sure_RC) == pytest.approx(math.log(4), abs=1e-6)


def test_views_that_are_never_sure_share_nothing() -> None:
    assert information(torch.zeros(8, 4), torch.zeros(8, 4)) == pytest.approx(0, abs=1e-6)


def test_all_texts_in_one_cluster_share_nothing() -> None:
    one_RC = torch.zeros(8, 4)
    one_RC[:, 2] = 100
    assert information(one_RC, one_RC) == pytest.approx(0, abs=1e-6)


def test_views_of_different_texts_share_nothing() -> None:
    assert information(logits(2000, 5, 0), logits(2000, 5, 1)) < 0


@given(st.integers(2, 6), st.integers(1, 40), st.integers(0, 10_000), st.floats(0, 20))
def test_no_views_share_more_than_the_logarithm_of_the_clusters(
    clusters: int, texts: int, seed: int, scale: float
) -> None:
    a_RC, b_RC = logits(texts, clusters, seed, scale), logits(texts, clusters, seed + 1, scale)
    assert information(a_RC, b_RC) <= math.log(clusters) + 1e-9
    assert information(a_RC, b_RC) == pytest.approx(information(b_RC, a_RC))


def test_the_slope_at_the_running_mean_is_that_of_the_entropy_where_the_mean_is_of_this_batch() -> None:
    a_VBC = logits(12, 3, 0).view(2, 6, 3).requires_grad_()
    b_VBC = logits(12, 3, 1).view(2, 6, 3).requires_grad_()
    information_loss(a_VBC, b_VBC, Marginal(torch.full((3,), 1 / 3), 0.0)).backward()  # type: ignore[no-untyped-call]
    found = a_VBC.grad
    a_VBC.grad = None
    p_a_BC, p_b_BC = ((SHARPNESS * one.mean(0)).softmax(1) for one in (a_VBC, b_VBC))
    disagreement = (cross_entropy(p_b_BC, a_VBC) + cross_entropy(p_a_BC, b_VBC)).sum() / 2
    exact = disagreement - 2 * 6 * entropy((p_a_BC + p_b_BC).mean(0) / 2)
    exact.backward()  # type: ignore[no-untyped-call]
    assert found is not None
    torch.testing.assert_close(found, a_VBC.grad)


def test_the_running_mean_keeps_a_share_of_what_it_was() -> None:
    marginal = Marginal(torch.tensor([1.0, 0.0]), 0.75)
    marginal.update(torch.tensor([[0.0, 1.0], [0.5, 0.5]]))
    torch.testing.assert_close(marginal.value_C, torch.tensor([0.8125, 0.1875]))
