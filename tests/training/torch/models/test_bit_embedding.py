"""The bit embedding: the codes, the vectors, and the gradient of the matrix."""

import mmh3
import numpy as np
import pytest
import torch

from textcls.model import features, tokenizer
from textcls_torch.models.bit_embedding import BitEmbedding
from textcls_training.data.corpus import Corpus
from textcls_training.models.bit_codes import BITS, SEEDS, codes

TEXTS = (
    "",
    "one",
    "My card was charged TWICE!!",
    "nai\u0308ve \u6771\u4eac",
    "so many words that it is cut " * 3,
    " \t",
)
MAX_TOKENS = 12


def test_a_code_is_the_bits_of_its_hashes_from_the_lowest_one_on() -> None:
    assert (BITS, len(set(SEEDS))) == (256, 8)
    (code_K,) = codes(["refund"])
    for h, seed in enumerate(SEEDS):
        value = mmh3.hash("refund", seed, signed=False)
        expected = [1 if value >> bit & 1 else -1 for bit in range(32)]
        np.testing.assert_allclose(code_K[32 * h : 32 * h + 32] * 16, expected)


def test_codes_have_the_length_one_and_are_nearly_orthogonal() -> None:
    code_VK = codes([f"word{i}" for i in range(300)])
    product_VV = code_VK @ code_VK.T
    np.testing.assert_allclose(product_VV.diagonal(), 1, rtol=1e-6)
    others = product_VV[~np.eye(300, dtype=bool)]
    # Of independent bits the standard deviation is 1/16.
    assert others.std() == pytest.approx(1 / 16, rel=0.05)
    assert abs(others).max() < 6 / 16


def test_no_seed_of_the_codes_is_one_of_the_other_features() -> None:
    assert not {0, features.CHARACTER_SEED} & set(SEEDS)


def test_the_gradient_of_the_matrix_is_that_of_autograd() -> None:
    torch.manual_seed(0)
    corpus = Corpus.of(TEXTS, MAX_TOKENS)
    embedding = BitEmbedding(5, 1.0)
    batch = embedding.batch(embedding.encode(corpus), np.array([4, 0, 2]))
    x_BTD, squared_norm_BT1 = embedding.read(batch)
    target_BTD = torch.randn_like(x_BTD)
    weight_KD = embedding.weight_KD.detach().clone().requires_grad_()
    by_autograd = batch.codes() @ weight_KD
    torch.testing.assert_close(x_BTD, by_autograd)
    torch.testing.assert_close(squared_norm_BT1, batch.mask_BT.unsqueeze(-1).float())
    (by_autograd * target_BTD).sum().backward()  # type: ignore[no-untyped-call]
    embedding.update(batch, target_BTD, rate=1.0)
    assert embedding.weight_KD.grad is not None
    torch.testing.assert_close(embedding.weight_KD.grad, weight_KD.grad)


def test_vectors_are_codes_times_the_matrix_in_the_order_of_the_batch() -> None:
    corpus = Corpus.of(TEXTS, MAX_TOKENS)
    embedding = BitEmbedding(4, 1.0)
    x_BTD, _ = embedding.read(embedding.batch(embedding.encode(corpus), np.array([2, 1])))
    for b, text in enumerate((TEXTS[2], TEXTS[1])):
        tokens = tokenizer.tokenize(text)
        expected = torch.from_numpy(codes(tokens)) @ embedding.weight_KD
        torch.testing.assert_close(x_BTD[b, : len(tokens)], expected)
        assert not x_BTD[b, len(tokens) :].any()
