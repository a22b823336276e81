"""The saved graph against PyTorch: the same answers for every model, and nothing written when they differ."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
import torch

from textcls import tokenizer
from textcls.artifact import OUTPUTS, ModelInfo
from textcls.errors import ArtifactError
from textcls.features import FeatureConfig
from textcls_training import export, loop
from textcls_training.encoding import Corpus, FeatureSpace
from textcls_training.export import ServingModel
from textcls_training.loop import Fitted
from textcls_training.model import HashEmbedding, ModelConfig, TextClassifier
from textcls_training.run import Source

LABELS, MAX_TOKENS, TEMPERATURE = 3, 20, 1.7
TEXTS = (
    "",
    "refund",
    "My card was charged TWICE!!",
    "\U0001f469\u200d\U0001f4bb 1\ufe0f\u20e3",
    "\u6771\u4eac\u30bf\u30ef\u30fc",
    "where is my parcel? " * 20,
    "supercalifragilisticexpialidocious qzxv",
    "nai\u0308ve \u0928\u092e\u0938\u094d\u0924\u0947 \u0e2a\u0e27\u0e31\u0e2a\u0e14\u0e35",
    " \t\u3000",
)

# Every mixing meets every attention; values, seeds and features take turns.
MODELS = [
    (ModelConfig(mixing="none", attention="norm", values="token", seeds=1), FeatureConfig(bigrams=False)),
    (ModelConfig(mixing="none", attention="softmax", values="mixed", seeds=3), FeatureConfig(ngram_sizes=(2, 4))),
    (ModelConfig(mixing="none", attention="cosine", values="token", seeds=3), FeatureConfig()),
    (ModelConfig(mixing="lambda", attention="norm", values="token", seeds=1), FeatureConfig(ngram_sizes=(3, 5))),
    (ModelConfig(mixing="lambda", attention="softmax", values="token", seeds=3), FeatureConfig(word_hashes=2)),
    (ModelConfig(mixing="lambda", attention="cosine", values="mixed", seeds=1), FeatureConfig()),
    (ModelConfig(mixing="gmlp", attention="norm", values="mixed", seeds=3), FeatureConfig(ngram_sizes=(3, 5))),
    (ModelConfig(mixing="gmlp", attention="softmax", values="mixed", seeds=1), FeatureConfig(bigrams=False)),
    (ModelConfig(mixing="gmlp", attention="cosine", values="token", seeds=1), FeatureConfig(word_hashes=3)),
]
MODEL_NAMES = [f"{m.mixing}-{m.attention}-{m.values}-{m.seeds}" for m, _ in MODELS]


def random_model(config: ModelConfig, features: FeatureConfig, source: Source) -> Fitted:
    """A model with random weights, whose rows and weights lose nothing when they are rounded to 8 and 16 bits."""
    torch.manual_seed(0)
    space = FeatureSpace.fit(Corpus.of(source.texts, MAX_TOKENS), features)
    space = replace(space, weight=(np.ceil(space.weight * 16) / 16).astype(np.float32))
    rounded_VD = torch.randint(-127, 128, (len(space.weight), config.dim)).float()
    rounded_VD[:, 0] = 127
    rounded_VD[0] = 0
    embedding = HashEmbedding(rounded_VD / 64, torch.from_numpy(space.weight))
    model = TextClassifier(config, LABELS).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter), alpha=0.2)
    return Fitted(space, embedding, model)


def small(config: ModelConfig) -> ModelConfig:
    return replace(config, dim=8, gate=1.0)


def session_of(graph: onnx.ModelProto) -> Callable[[Sequence[str]], dict[str, np.ndarray]]:
    session = onnxruntime.InferenceSession(graph.SerializeToString(), providers=["CPUExecutionProvider"])

    def answer(texts: Sequence[str]) -> dict[str, np.ndarray]:
        given = np.array([tokenizer.clean(text) for text in texts], object)
        return dict(zip(OUTPUTS, session.run(list(OUTPUTS), {"text": given}), strict=True))

    return answer


@torch.no_grad()
def by_training(fitted: Fitted, texts: Sequence[str]) -> dict[str, np.ndarray]:
    """The answers by the way of training: bags of rows, unfolded seeds, unrounded rows."""
    batch = fitted.space.encode(Corpus.of(texts, MAX_TOKENS)).batch(np.arange(len(texts)))
    unit_UD, energy_U1 = fitted.embedding.units(batch)
    given = batch.spread(unit_UD), batch.spread(energy_U1), batch.mask_BT
    _, attention_BT, contributions_BTC = fitted.model.explain(*given)
    logits_BC = fitted.model(*given)
    return {
        "probabilities": torch.softmax(logits_BC / TEMPERATURE, 1).numpy(),
        "logits": logits_BC.numpy(),
        "attention": attention_BT.numpy(),
        "contributions": contributions_BTC.numpy(),
    }


def assert_close(found: np.ndarray, expected: np.ndarray) -> None:
    np.testing.assert_allclose(found, expected, atol=1e-4 * (1 + np.abs(expected).max(initial=0)), rtol=0)


@pytest.mark.parametrize(("config", "features"), MODELS, ids=MODEL_NAMES)
def test_the_saved_graph_answers_as_training_does(config: ModelConfig, features: FeatureConfig, sample: Source) -> None:
    fitted = random_model(small(config), features, sample)
    expected = by_training(fitted, TEXTS)
    answer = session_of(export.build_graph(ServingModel(fitted, TEMPERATURE).eval(), fitted.space, MAX_TOKENS))
    found = answer(TEXTS)
    tokens = [tokenizer.tokenize(text)[:MAX_TOKENS] for text in TEXTS]
    assert [[t for t in row if t] for row in found["tokens"]] == tokens
    assert np.ptp(expected["logits"], 0).max() > 0.1
    for name, theirs in expected.items():
        assert_close(found[name], theirs)

    bias_C = fitted.model.head.bias.detach().numpy()
    assert_close(bias_C + found["contributions"].sum(1), found["logits"])
    np.testing.assert_allclose(found["attention"].sum(1), [float(bool(row)) for row in tokens], atol=1e-5)
    assert (found["attention"] >= 0).all()
    # Alone and in the smallest batches, which have other shapes.
    for i in (0, 1, 4):
        alone = answer([TEXTS[i]])
        assert_close(alone["logits"][0], expected["logits"][i])
        assert_close(alone["contributions"][0, : len(tokens[i])], expected["contributions"][i, : len(tokens[i])])
    empty = answer(["", " "])
    assert_close(empty["logits"], np.stack([bias_C, bias_C]))
    assert not empty["attention"].any()
    assert not empty["contributions"].any()


def test_rows_are_rounded_by_half_a_step_at_most_and_answers_stay_close(sample: Source) -> None:
    fitted = random_model(small(MODELS[3][0]), FeatureConfig(ngram_sizes=(3, 5)), sample)
    fitted.embedding.table_VD.copy_(torch.randn(fitted.embedding.table_VD.shape))
    fitted.embedding.table_VD[0] = 0
    serving = ServingModel(fitted, 1.0)
    assert serving.rounded_VD.dtype == torch.int8
    exact_VD = fitted.embedding.table_VD * fitted.embedding.weight_V.unsqueeze(1)
    scale_V1 = serving.scale_V1.float() * serving.largest_scale
    error_VD = (serving.rounded_VD.float() * scale_V1 - exact_VD).abs()
    # Half a step of 8 bits, and what 16 bits lose of the step.
    assert (error_VD <= 0.6 * scale_V1).all()
    assert error_VD.any()
    widest_V = serving.rounded_VD.abs().amax(1)
    assert (widest_V[1:] == 127).all()

    corpus = Corpus.of(sample.texts, MAX_TOKENS)
    before = loop.predict_logits(fitted, fitted.space.encode(corpus))
    rounded_VD = serving.rounded_VD.float() * scale_V1 / fitted.embedding.weight_V.unsqueeze(1)
    fitted.embedding.table_VD.copy_(rounded_VD.nan_to_num())
    after = loop.predict_logits(fitted, fitted.space.encode(corpus))
    assert np.abs(after - before).max() < 0.05 * np.ptp(before)
    assert (after.argmax(1) == before.argmax(1)).mean() > 0.97


def info_of(fitted: Fitted, serving: ServingModel) -> ModelInfo:
    return ModelInfo(
        labels=("a", "b", "c"),
        bias=export.empty_text_logits(serving),
        temperature=TEMPERATURE,
        max_tokens=MAX_TOKENS,
        features=fitted.space.config,
        model={},
        text_columns=("text",),
        label_column="label",
        training={},
    )


def test_a_graph_that_answers_otherwise_is_not_written(
    sample: Source, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fitted = random_model(small(MODELS[0][0]), FeatureConfig(bigrams=False), sample)
    serving = ServingModel(fitted, TEMPERATURE).eval()
    graph = export.build_graph(serving, fitted.space, MAX_TOKENS)
    monkeypatch.setattr(export, "build_graph", lambda *_: graph)
    path = tmp_path / "model.onnx"
    export.save(serving, fitted.space, info_of(fitted, serving), path)
    good = path.read_bytes()

    with torch.no_grad():
        serving.model.head.bias[0] += 0.01
    with pytest.raises(
        ArtifactError, match=r"disagree on 'probabilities' by .* more than 0\.0001; nothing was written"
    ):
        export.save(serving, fitted.space, info_of(fitted, serving), path)
    with pytest.raises(ArtifactError, match="nothing was written"):
        export.save(serving, fitted.space, info_of(fitted, serving), tmp_path / "other.onnx")
    assert [file.name for file in tmp_path.iterdir()] == ["model.onnx"]
    assert path.read_bytes() == good


def test_the_check_before_writing_reads_awkward_texts() -> None:
    counts = [len(tokenizer.tokenize(text)) for text in export.PARITY_TEXTS]
    assert 0 in counts
    assert 1 in counts
    assert len(set(counts)) > 3
    joined = "".join(export.PARITY_TEXTS)
    assert "\u200d" in joined
    assert "\u6771" in joined
