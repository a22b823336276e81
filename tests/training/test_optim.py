"""The table's optimizer against a dense table in autograd."""

import numpy as np
import torch

from textcls.features import FeatureConfig
from textcls_training.encoding import Corpus, FeatureSpace
from textcls_training.model import HashEmbedding
from textcls_training.optim import TableOptimizer

TEXTS = ("my card, my card!", "", "card lost", "aaaaaa refund", "my refund my")
NEW_TEXTS = ("unseen refund", "my card")
RATE, START, D = 0.3, 0.01, 3


def test_a_step_equals_row_wise_adagrad_on_a_dense_table() -> None:
    space = FeatureSpace.fit(Corpus.of(TEXTS, 64), FeatureConfig(ngram_sizes=(2,), word_hashes=2))
    torch.manual_seed(0)
    embedding = HashEmbedding.fresh(torch.from_numpy(space.weight), D, std=1.0)
    optimizer = TableOptimizer(embedding, START)
    dense_VD = embedding.table_VD.clone().requires_grad_()
    sum_V = torch.full((len(dense_VD),), START)

    for texts, which in ((TEXTS, [0, 1, 3]), (TEXTS, [4, 0, 0, 2]), (NEW_TEXTS, [0, 1])):
        batch = space.encode(Corpus.of(texts, 64)).batch(np.array(which))
        unit_UD, _ = embedding.units(batch)
        x_BTD = batch.spread(unit_UD)
        target_BTD = torch.randn(x_BTD.shape)
        (x_BTD - target_BTD).square().sum().backward()  # type: ignore[no-untyped-call]
        assert unit_UD.grad is not None
        optimizer.step(batch, unit_UD.grad, RATE)

        dense_VD.grad = None
        unit_of_row_R = torch.repeat_interleave(torch.arange(len(batch.size_U)), batch.size_U)
        spread_RV = torch.zeros(len(batch.row_R), len(dense_VD))
        spread_RV[torch.arange(len(batch.row_R)), batch.row_R] = embedding.weight_V[batch.row_R]
        collect_UR = torch.zeros(len(batch.size_U), len(batch.row_R))
        collect_UR[unit_of_row_R, torch.arange(len(batch.row_R))] = 1
        (batch.spread(collect_UR @ spread_RV @ dense_VD) - target_BTD).square().sum().backward()  # type: ignore[no-untyped-call]
        assert dense_VD.grad is not None
        with torch.no_grad():
            sum_V += dense_VD.grad.square().mean(1)
            dense_VD -= RATE * dense_VD.grad / sum_V.sqrt().unsqueeze(1)
        torch.testing.assert_close(embedding.table_VD, dense_VD.detach())
        torch.testing.assert_close(optimizer.sum_V, sum_V)


def test_a_step_touches_the_rows_of_its_batch_alone_and_never_row_nothing() -> None:
    space = FeatureSpace.fit(Corpus.of(TEXTS, 64), FeatureConfig())
    torch.manual_seed(0)
    embedding = HashEmbedding.fresh(torch.from_numpy(space.weight), D, std=1.0)
    before_VD = embedding.table_VD.clone()
    optimizer = TableOptimizer(embedding, START)
    batch = space.encode(Corpus.of(NEW_TEXTS, 64)).batch(np.array([0]))
    unit_UD, _ = embedding.units(batch)
    optimizer.step(batch, torch.ones_like(unit_UD), RATE)
    moved = (embedding.table_VD != before_VD).any(1).nonzero().flatten().tolist()
    assert moved == sorted({r for r in batch.row_R.tolist() if r})
    assert moved
    assert 0 in batch.row_R
    assert (optimizer.sum_V != START).nonzero().flatten().tolist() == moved


def test_a_batch_without_tokens_moves_nothing() -> None:
    space = FeatureSpace.fit(Corpus.of(TEXTS, 64), FeatureConfig())
    embedding = HashEmbedding.fresh(torch.from_numpy(space.weight), D, std=1.0)
    before_VD = embedding.table_VD.clone()
    optimizer = TableOptimizer(embedding, START)
    batch = space.encode(Corpus.of(["", " "], 64)).batch(np.array([0, 1]))
    unit_UD, energy_U1 = embedding.units(batch)
    batch.spread(unit_UD).sum().backward()  # type: ignore[no-untyped-call]
    assert unit_UD.grad is not None
    optimizer.step(batch, unit_UD.grad, RATE)
    assert not batch.spread(energy_U1).any()
    assert torch.equal(embedding.table_VD, before_VD)
