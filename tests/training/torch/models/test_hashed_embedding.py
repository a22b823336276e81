"""The table of rows: what a batch reads against plain loops, and how it moves against a dense table in autograd."""

from collections.abc import Sequence

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from tests.training.helpers import plain_features
from textcls.model import tokenizer
from textcls.model.features import FeatureConfig
from textcls_torch.models.embedding_table import EmbeddingTable, HashedBatch
from textcls_training.data.corpus import Corpus
from textcls_training.data.feature_space import FeatureSpace

CONFIGS = (
    FeatureConfig(ngram_sizes=(3, 5)),
    FeatureConfig(),
    FeatureConfig(bigrams=False, ngram_sizes=(2,), max_chars=4),
    FeatureConfig(bigrams=False),
)
every_config = pytest.mark.parametrize(
    "config", CONFIGS, ids=["words, bigrams, n-grams", "words, bigrams", "words, n-grams", "words alone"]
)

# The bigram of "refund refund" belongs twice to the middle one of three.
TEXTS = ("my card, my card!", "", "Card lost \u6771\u4eac", "aaaaaa refund", "  ", "my", "refund refund refund my card")
NEW_TEXTS = ("refund my \u6771 unseen", "", "card", "nothing known here")
RATE, START, D = 0.3, 0.01, 3

word_texts = st.lists(st.sampled_from(["my", "card", "!", "\u6771", "refund", "aaaa"]), max_size=6).map(" ".join)


def fitted(config: FeatureConfig, texts: Sequence[str] = TEXTS) -> tuple[FeatureSpace, EmbeddingTable]:
    space = FeatureSpace.fit(Corpus.of(texts, 64), config)
    torch.manual_seed(0)
    return space, EmbeddingTable(space.weight, D, std=1.0, accumulator=START)


def batch_of(space: FeatureSpace, texts: Sequence[str], which: Sequence[int]) -> HashedBatch:
    return HashedBatch.of(space.encode(Corpus.of(texts, 64)), np.array(which, np.int64))


def plain_rows(space: FeatureSpace, texts: Sequence[str], which: Sequence[int]) -> list[list[list[int]]]:
    """The rows of each token of each text."""
    return [
        [[int(space.row_of_bucket[h % space.buckets]) for _, h in owned] for owned in plain_features(texts[i], config)]
        for i in which
        for config in [space.config]
    ]


def check_read(space: FeatureSpace, table: EmbeddingTable, texts: Sequence[str], which: Sequence[int]) -> None:
    batch = batch_of(space, texts, which)
    x_BTD, squared_norm_BT1 = table.read(batch)
    lengths = [len(tokenizer.tokenize(texts[i])) for i in which]
    assert batch.mask_BT.sum(1).tolist() == lengths
    assert batch.mask_BT.shape == (len(which), max(1, *lengths))
    for b, tokens in enumerate(plain_rows(space, texts, which)):
        for t, rows in enumerate(tokens):
            assert batch.mask_BT[b, t]
            vector_D = sum((table.weight_V[r] * table.row_VD[r] for r in rows), np.zeros(D))
            np.testing.assert_allclose(x_BTD[b, t], vector_D, rtol=1e-5, atol=1e-5)
            np.testing.assert_allclose(squared_norm_BT1[b, t, 0], sum(table.weight_V[r] ** 2 for r in rows), rtol=1e-5)
    assert not x_BTD[~batch.mask_BT].any()
    assert not squared_norm_BT1[~batch.mask_BT].any()


@every_config
@pytest.mark.parametrize("texts", [TEXTS, NEW_TEXTS], ids=["training texts", "new texts"])
def test_a_batch_sums_up_the_rows_of_each_token(config: FeatureConfig, texts: tuple[str, ...]) -> None:
    check_read(*fitted(config), texts, [3, 0, 1, 0, 2])


@every_config
@given(st.lists(word_texts, min_size=1, max_size=6), st.data())
@settings(max_examples=25)
def test_any_texts_in_any_order_read_as_plain_loops_do(
    config: FeatureConfig, texts: list[str], data: st.DataObject
) -> None:
    which = data.draw(st.lists(st.integers(0, len(texts) - 1), min_size=1, max_size=8))
    check_read(*fitted(config, texts), texts, which)


@every_config
@pytest.mark.parametrize("which", [[1, 4], []], ids=["empty texts", "no texts"])
def test_a_batch_without_a_single_token_has_one_column_of_padding_and_moves_nothing(
    config: FeatureConfig, which: list[int]
) -> None:
    space, table = fitted(config)
    before_VD, batch = table.row_VD.copy(), batch_of(space, TEXTS, which)
    x_BTD, squared_norm_BT1 = table.read(batch)
    assert batch.mask_BT.shape == (len(which), 1)
    assert x_BTD.shape == (len(which), 1, D)
    assert not any(tensor.any() for tensor in (x_BTD, squared_norm_BT1, batch.mask_BT))
    table.update(batch, torch.ones_like(x_BTD), RATE)
    np.testing.assert_array_equal(table.row_VD, before_VD)
    assert (table.sum_V == np.float32(START)).all()


def dense_read(dense_VD: Tensor, weight_V: Tensor, rows_of_texts: list[list[list[int]]], width: int) -> Tensor:
    """Token vectors [B, T, D] as a product of matrices."""
    spread_BTV = torch.zeros(len(rows_of_texts), width, len(dense_VD))
    for b, tokens in enumerate(rows_of_texts):
        for t, rows in enumerate(tokens):
            for r in rows:
                spread_BTV[b, t, r] += weight_V[r]
    return spread_BTV @ dense_VD


@every_config
def test_updates_equal_row_wise_adagrad_on_a_dense_table(config: FeatureConfig) -> None:
    space, table = fitted(config)
    dense_VD = torch.from_numpy(table.row_VD.copy()).requires_grad_()
    weight_V, sum_V = torch.from_numpy(space.weight), torch.full((len(space.weight),), START)
    for texts, which in ((TEXTS, [0, 1, 3]), (TEXTS, [6, 0, 0, 2]), (NEW_TEXTS, [0, 1])):
        batch = batch_of(space, texts, which)
        x_BTD, _ = table.read(batch)
        target_BTD = torch.randn(x_BTD.shape)
        (x_BTD.requires_grad_() - target_BTD).square().sum().backward()  # type: ignore[no-untyped-call]
        assert x_BTD.grad is not None
        table.update(batch, x_BTD.grad, RATE)

        dense_VD.grad = None
        dense_BTD = dense_read(dense_VD, weight_V, plain_rows(space, texts, which), x_BTD.shape[1])
        (dense_BTD - target_BTD).square().sum().backward()  # type: ignore[no-untyped-call]
        assert dense_VD.grad is not None
        with torch.no_grad():
            sum_V += dense_VD.grad.square().mean(1)
            dense_VD -= RATE * dense_VD.grad / sum_V.sqrt().unsqueeze(1)
        torch.testing.assert_close(torch.from_numpy(table.row_VD), dense_VD.detach())
        torch.testing.assert_close(torch.from_numpy(table.sum_V), sum_V)


@every_config
def test_an_update_moves_the_rows_of_its_batch_alone_and_never_row_nothing(config: FeatureConfig) -> None:
    space, table = fitted(config)
    # Row nothing has no weight; were it to have one, it should not move either.
    table.weight_V = np.maximum(table.weight_V, np.float32(0.1))
    before_VD, batch = table.row_VD.copy(), batch_of(space, NEW_TEXTS, [0])
    known = {r for tokens in plain_rows(space, NEW_TEXTS, [0]) for rows in tokens for r in rows if r}
    table.update(batch, torch.ones(*batch.mask_BT.shape, D), RATE)
    assert known
    assert len(known) + 1 < len(before_VD)
    assert np.flatnonzero((table.row_VD != before_VD).any(1)).tolist() == sorted(known)
    assert np.flatnonzero(table.sum_V != np.float32(START)).tolist() == sorted(known)


@every_config
def test_the_scratch_of_an_update_is_clean_again_after_it(config: FeatureConfig) -> None:
    space, table = fitted(config)
    for which in ([0, 6], [2], [1]):
        batch = batch_of(space, TEXTS, which)
        table.update(batch, torch.ones(*batch.mask_BT.shape, D), RATE)
        assert not table.number_V.any()


def test_the_same_updates_give_the_same_bytes() -> None:
    tables = []
    for _ in range(2):
        space, table = fitted(CONFIGS[0])
        for seed, which in enumerate(([0, 1, 3], [6, 0, 0, 2])):
            batch = batch_of(space, TEXTS, which)
            generator = torch.Generator().manual_seed(seed)
            table.update(batch, torch.randn(*batch.mask_BT.shape, D, generator=generator), RATE)
        tables.append((table.row_VD.tobytes(), table.sum_V.tobytes()))
    assert tables[0] == tables[1]


def test_fresh_rows_have_the_spread_asked_for_and_row_nothing_is_zero() -> None:
    torch.manual_seed(0)
    table = EmbeddingTable(np.ones(2000, np.float32), 8, std=0.005, accumulator=START)
    assert not table.row_VD[0].any()
    assert table.row_VD[1:].std() == pytest.approx(0.005, rel=0.05)
    assert table.row_VD.dtype == np.float32
    assert (table.sum_V == np.float32(START)).all()
