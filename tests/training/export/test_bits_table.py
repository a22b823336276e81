"""The matrix of bits in a saved model: its graph, and whole models of tens of kilobytes."""

from pathlib import Path

import numpy as np
import onnxruntime
import pytest

from tests.explanations import explained
from textcls.errors import ConfigError
from textcls.model import tokenizer
from textcls.model.classifier import Classifier
from textcls_training.config.settings import Attention, TrainConfig
from textcls_training.data.corpus import Corpus
from textcls_training.data.labelled_texts import LabelledTexts
from textcls_training.export.bits_table import BitsTable
from textcls_training.models.bit_codes import BITS
from textcls_training.pipeline.training import train

TEXTS = (
    "",
    "one",
    "My card was charged TWICE!!",
    "nai\u0308ve \u6771\u4eac",
    "so many words that it is cut " * 3,
    " \t",
)
MAX_TOKENS = 12


@pytest.mark.parametrize("folded", [True, False])
def test_the_graph_reads_bits_as_numpy_does(folded: bool) -> None:
    column_KGY = np.random.default_rng(0).standard_normal((BITS, 2, 3)).astype(np.float32)
    table = BitsTable(column_KGY, folded)
    session = onnxruntime.InferenceSession(table.text_graph(MAX_TOKENS).SerializeToString())
    for texts in (TEXTS, TEXTS[:1], TEXTS[4:5]):
        given = np.array([tokenizer.clean(text) for text in texts], object)
        tokens, known, padding, token = session.run(["tokens", "known", "padding", "token"], {"text": given})
        padding_BT, token_BTGX = table.read(Corpus.of(texts, MAX_TOKENS))
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
def test_a_model_by_bits_is_tens_of_kilobytes_and_its_attributions_add_up(
    mixing: str, attention: Attention, most_kb: int, sample: LabelledTexts, tmp_path: Path
) -> None:
    path = tmp_path / "model.onnx"
    config = TrainConfig(
        dim=32, embedding="bits", mixing=mixing, attention=attention, epochs=15, max_tokens=48, device="cpu"
    )
    report = train(sample, path, config)
    assert report.file_bytes < 1000 * most_kb
    assert report.ensemble_weights == (1.0,)
    classifier = Classifier.load(path)
    assert classifier.info.model["embedding"] == "bits"
    answers = classifier.predict(sample.texts, explain=True)
    right = sum(answer.label == label for answer, label in zip(answers, sample.labels, strict=True))
    assert max(explained(answer).completeness_error for answer in answers) < 1e-4
    assert right > 0.5 * len(sample.texts)  # of five labels


def test_training_by_bits_twice_gives_the_same_bytes(sample: LabelledTexts, tmp_path: Path) -> None:
    config = TrainConfig(dim=8, embedding="bits", epochs=1, max_tokens=48, device="cpu")
    for name in ("one", "two"):
        train(sample, tmp_path / name, config)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


def test_a_model_without_rows_refuses_sub_token_attributions(sample: LabelledTexts, tmp_path: Path) -> None:
    config = TrainConfig(dim=8, embedding="bits", epochs=1, max_tokens=48, device="cpu")
    train(sample, tmp_path / "model.onnx", config)
    with pytest.raises(ConfigError, match="attributes to whole tokens only"):
        Classifier.load(tmp_path / "model.onnx").parts("my card")
