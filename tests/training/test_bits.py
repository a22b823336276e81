"""The embedding by bits: the codes, the gradient, the graph, and a whole model of tens of kilobytes."""

from pathlib import Path

import mmh3
import numpy as np
import onnxruntime
import pytest
import torch

from textcls import tokenizer
from textcls.classifier import Classifier
from textcls.errors import ConfigError
from textcls_training.bits import BITS, SEEDS, BitEmbedding, BitLexicon, codes
from textcls_training.choices import Attention
from textcls_training.config import TrainConfig
from textcls_training.encoding import Corpus
from textcls_training.model import ModelConfig
from textcls_training.run import Source, train

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
    from textcls import features

    assert not {0, features.CHARACTER_SEED} & set(SEEDS)


def test_the_gradient_of_the_matrix_is_that_of_autograd() -> None:
    torch.manual_seed(0)
    corpus = Corpus.of(TEXTS, MAX_TOKENS)
    embedding = BitEmbedding(5, 1.0)
    batch = embedding.batch(embedding.encode(corpus), np.array([4, 0, 2]))
    x_BTD, energy_BT1 = embedding.read(batch)
    target_BTD = torch.randn_like(x_BTD)
    weight_KD = embedding.weight_KD.detach().clone().requires_grad_()
    by_autograd = batch.codes() @ weight_KD
    torch.testing.assert_close(x_BTD, by_autograd)
    torch.testing.assert_close(energy_BT1, batch.mask_BT.unsqueeze(-1).float())
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


@pytest.mark.parametrize("folded", [True, False])
def test_the_graph_reads_bits_as_numpy_does(folded: bool) -> None:
    column_KGY = np.random.default_rng(0).standard_normal((BITS, 2, 3)).astype(np.float32)
    lexicon = BitLexicon(column_KGY, folded)
    session = onnxruntime.InferenceSession(lexicon.frontend(MAX_TOKENS).SerializeToString())
    for texts in (TEXTS, TEXTS[:1], TEXTS[4:5]):
        given = np.array([tokenizer.clean(text) for text in texts], object)
        tokens, known, padding, token = session.run(["tokens", "known", "padding", "token"], {"text": given})
        padding_BT, token_BTGX = lexicon.read(Corpus.of(texts, MAX_TOKENS))
        width = padding_BT.shape[1]
        np.testing.assert_array_equal(padding[:, :width], padding_BT)
        assert padding[:, width:].all()
        np.testing.assert_allclose(token[:, :width], token_BTGX, atol=1e-5)
        assert known.all()
        assert [[t for t in row if t] for row in tokens] == [tokenizer.tokenize(text)[:MAX_TOKENS] for text in texts]


@pytest.mark.parametrize(
    ("mixing", "attention", "most_kb"),
    [("none", "norm", 30), ("none", "softmax", 30), ("none", "kernel", 80), ("gmlp", "norm", 90)],
)
def test_a_model_by_bits_is_tens_of_kilobytes_and_its_contributions_add_up(
    mixing: str, attention: Attention, most_kb: int, sample: Source, tmp_path: Path
) -> None:
    path = tmp_path / "model.onnx"
    model = ModelConfig(dim=32, embedding="bits", mixing=mixing, attention=attention)
    report = train(sample, path, TrainConfig(model=model, epochs=15, max_tokens=48, device="cpu"))
    assert report.file_bytes < 1000 * most_kb
    assert report.shares == (1.0,)
    classifier = Classifier.load(path)
    assert classifier.info.model["embedding"] == "bits"
    right = 0
    for text, label in zip(sample.texts, sample.labels, strict=True):
        answer = classifier.predict(text, explain=True)
        right += answer.label == label
        assert answer.explanation is not None
        bias_c = np.array(list(answer.explanation.bias.values()))
        logits_c = np.array(list(answer.explanation.logits.values()))
        np.testing.assert_allclose(bias_c + answer.explanation.contributions.sum(0), logits_c, atol=1e-4)
    assert right > 0.5 * len(sample.texts)  # of five labels


def test_training_by_bits_twice_gives_the_same_bytes(sample: Source, tmp_path: Path) -> None:
    config = TrainConfig(model=ModelConfig(dim=8, embedding="bits"), epochs=1, max_tokens=48, device="cpu")
    for name in ("one", "two"):
        train(sample, tmp_path / name, config)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


def test_what_rows_say_is_not_asked_of_a_model_without_rows(sample: Source, tmp_path: Path) -> None:
    config = TrainConfig(model=ModelConfig(dim=8, embedding="bits"), epochs=1, max_tokens=48, device="cpu")
    train(sample, tmp_path / "model.onnx", config)
    with pytest.raises(ConfigError, match="credits whole tokens only"):
        Classifier.load(tmp_path / "model.onnx").parts("my card")


def test_ngrams_of_an_embedding_by_bits_are_refused() -> None:
    with pytest.raises(ConfigError, match="words alone"):
        TrainConfig(model=ModelConfig(embedding="bits"), ngram_sizes=(3,))


def test_an_embedding_that_does_not_exist_is_named() -> None:
    with pytest.raises(ConfigError, match="'bytes'"):
        ModelConfig(embedding="bytes")  # type: ignore[arg-type]
