"""The saved graph against PyTorch: the same answers for every model, and nothing written when they differ."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
import torch

from tests.training.helpers import LABELS, module_of, plain_bigrams, plain_trigrams, random_model
from textcls.errors import ArtifactError, ConfigError
from textcls.model import features, tokenizer
from textcls.model.artifact import OUTPUTS, ModelInfo
from textcls.model.features import FeatureConfig
from textcls_training.config.settings import ModelConfig
from textcls_training.data.corpus import Corpus
from textcls_training.data.labelled_texts import LabelledTexts
from textcls_training.export import parity, quantize
from textcls_training.export import save as saving
from textcls_training.export.builder import GraphBuilder
from textcls_training.export.heads.scoring_head import empty_text_logits, scoring_head
from textcls_training.export.prune import lookup_tables
from textcls_training.export.quantize import QuantizedRows
from textcls_training.export.tables import LookupTables
from textcls_training.models.calibration import Calibration
from textcls_training.models.ensemble import HashedView, TrainedModel

MAX_TOKENS, TEMPERATURE = 20, 1.7
# Ensemble weights are those of the model.
CALIBRATION = Calibration((), TEMPERATURE)
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

# Three mixings meet every attention; values, seeds and features take turns. The others are in test_heads.
MODELS = [
    (ModelConfig(mixing="none", attention="norm", values="token", seeds=1), FeatureConfig(bigrams=False)),
    (ModelConfig(mixing="none", attention="norm", values="token", seeds=1), FeatureConfig(ngram_sizes=(3, 5))),
    (ModelConfig(mixing="none", attention="norm", values="token", seeds=2), FeatureConfig(ngram_sizes=(2, 4))),
    (ModelConfig(mixing="none", attention="softmax", values="token", seeds=2), FeatureConfig()),
    (ModelConfig(mixing="none", attention="softmax", values="mixed", seeds=5), FeatureConfig(ngram_sizes=(2, 4))),
    (ModelConfig(mixing="none", attention="cosine", values="token", seeds=3), FeatureConfig()),
    (ModelConfig(mixing="lambda", attention="norm", values="token", seeds=1), FeatureConfig(ngram_sizes=(3, 5))),
    (ModelConfig(mixing="lambda", attention="softmax", values="token", seeds=3), FeatureConfig()),
    (ModelConfig(mixing="lambda", attention="cosine", values="mixed", seeds=1), FeatureConfig()),
    (
        ModelConfig(mixing="gmlp", attention="norm", values="mixed", seeds=3),
        FeatureConfig(bigrams=False, ngram_sizes=(3, 5)),
    ),
    (ModelConfig(mixing="gmlp", attention="softmax", values="mixed", seeds=1), FeatureConfig(bigrams=False)),
    (ModelConfig(mixing="gmlp", attention="cosine", values="token", seeds=1), FeatureConfig(ngram_sizes=(4,))),
    (ModelConfig(mixing="metric", attention="norm", values="token", seeds=1), FeatureConfig(ngram_sizes=(3, 5))),
    (ModelConfig(mixing="metric", attention="softmax", values="mixed", seeds=2), FeatureConfig()),
    (ModelConfig(mixing="metric", attention="cosine", values="token", seeds=1), FeatureConfig()),
    (ModelConfig(mixing="metric", attention="metric", values="token", seeds=1), FeatureConfig()),
    (ModelConfig(mixing="lambda", attention="metric", values="token", seeds=1), FeatureConfig()),
    (ModelConfig(mixing="gmlp", attention="metric", values="mixed", seeds=3), FeatureConfig()),
    (ModelConfig(mixing="none", attention="metric", values="token", seeds=2), FeatureConfig()),
    (ModelConfig(mixing="none", attention="norm", metric=True, seeds=1), FeatureConfig(ngram_sizes=(3, 5))),
    (ModelConfig(mixing="sha", attention="kernel", values="token", seeds=2), FeatureConfig(ngram_sizes=(3, 5))),
    (ModelConfig(mixing="fourier", attention="softmax", values="mixed", seeds=1), FeatureConfig()),
    (
        ModelConfig(mixing="none", attention="norm", values="token", seeds=1),
        FeatureConfig(ngram_sizes=(3, 5), trigrams=True),
    ),
    (ModelConfig(mixing="none", attention="softmax", values="token", seeds=2), FeatureConfig(trigrams=True)),
]
FOLDED = MODELS[1]
MODEL_NAMES = [
    f"{m.mixing}-{m.attention}{'-metric scores' * bool(m.metric)}-{m.values}-{m.seeds}-{f.ngram_sizes}-{f.orders}"
    for m, f in MODELS
]


def model_of(config: ModelConfig, features: FeatureConfig, given: LabelledTexts) -> TrainedModel:
    """A random model of the words of `given`."""
    return random_model(config, features.views(), Corpus.of(given.texts, MAX_TOKENS))


def small(config: ModelConfig) -> ModelConfig:
    return replace(config, dim=8, gate=1.0)


def tables(model: TrainedModel, given: LabelledTexts, max_bytes: int | None = None) -> LookupTables:
    return lookup_tables(model, Corpus.of(given.texts, MAX_TOKENS), max_bytes)


def graph_of(model: TrainedModel, tables: LookupTables) -> onnx.ModelProto:
    return saving.build_graph(tables, scoring_head(model, CALIBRATION), MAX_TOKENS)


def session_of(graph: onnx.ModelProto) -> Callable[[Sequence[str]], dict[str, np.ndarray]]:
    session = onnxruntime.InferenceSession(graph.SerializeToString(), providers=["CPUExecutionProvider"])

    def answer(texts: Sequence[str]) -> dict[str, np.ndarray]:
        given = np.array([tokenizer.clean(text) for text in texts], object)
        return dict(zip(OUTPUTS, session.run(list(OUTPUTS), {"text": given}), strict=True))

    return answer


def cut(text: str) -> tuple[list[str], bool]:
    tokens = tokenizer.tokenize(text)
    return tokens[:MAX_TOKENS], len(tokens) >= MAX_TOKENS


@cache
def seen_hashes(texts: tuple[str, ...], config: FeatureConfig) -> set[int]:
    """Everything that training has seen."""
    seen = {0}
    for tokens, full in map(cut, texts):
        grams, exist = features.ngram_hashes(tokens, config)
        seen |= {*features.word_hashes(tokens).tolist(), *grams[exist].tolist()}
        seen |= set(plain_bigrams(tokens, full)) if config.bigrams and tokens else set()
        seen |= set(plain_trigrams(tokens, full)) if config.trigrams else set()
    return seen


def plain_rows(view: HashedView, text: str, seen: set[int]) -> list[list[int]]:
    """The rows of each token in training, of what was seen there."""
    tokens, full = cut(text)
    bigram, trigram = plain_bigrams(tokens, full), plain_trigrams(tokens, full)
    grams, exist = features.ngram_hashes(tokens, view.space.config)
    owned = []
    for i, word in enumerate(features.word_hashes(tokens)):
        pairs = bigram[i : i + 2] if view.space.config.bigrams else bigram[:0]
        triples = trigram[max(0, i - 1) : i + 2] if view.space.config.trigrams else []
        hashes = [h for h in (word, *pairs, *triples, *grams[i][exist[i]]) if int(h) in seen]
        owned.append(view.space.rows(np.array(hashes, np.uint32)).tolist())
    return owned


@torch.no_grad()
def by_training(model: TrainedModel, given: LabelledTexts, texts: Sequence[str]) -> list[dict[str, Any]]:
    """The answers by the way of training: bags of rows, unfolded seeds, rows in full precision, each text alone."""
    found = []
    for text in texts:
        parts = []
        for view, weight_of_view in zip(model.hashed_views, model.ensemble_weights, strict=True):
            rows = plain_rows(view, text, seen_hashes(tuple(given.texts), view.space.config))
            weight = torch.from_numpy(view.space.weight)
            x_td = torch.stack(
                [(weight[row].unsqueeze(1) * torch.from_numpy(view.table_VD)[row]).sum(0) for row in rows or [[0]]]
            )
            squared_norm_t = torch.stack([weight[row].square().sum() for row in rows or [[0]]])
            mask = torch.full((1, len(x_td)), bool(rows))
            tensors = x_td[None], squared_norm_t[None, :, None], mask
            answer = module_of(view).explain(*tensors)
            np.testing.assert_allclose(answer.logits_BC, module_of(view)(*tensors), atol=1e-4, rtol=1e-5)
            parts.append([part[0] * weight_of_view for part in answer])
        logits, attention, contributions = (sum(of_views).numpy() for of_views in zip(*parts, strict=True))
        probabilities = torch.softmax(torch.from_numpy(logits) / TEMPERATURE, 0).numpy()
        found.append(dict(zip(
            ("probabilities", "logits", "attention", "contributions"),
            (probabilities, logits, attention, contributions), strict=True,
        )))  # fmt: skip
    return found


def assert_close(found: np.ndarray, expected: np.ndarray, error: float = 1e-4) -> None:
    np.testing.assert_allclose(found, expected, atol=error * (1 + np.abs(expected).max(initial=0)), rtol=0)


@pytest.fixture
def exact(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of 32 bits in the place of 8 and 4, and of 16 when loaded."""

    def of(column_rgy: Any, squared_norm_r: Any, bits: int) -> QuantizedRows:
        scale = np.ones(column_rgy.shape[:2], np.float16)
        return QuantizedRows(8, column_rgy.astype(np.float32), scale, 1.0, squared_norm_r.astype(np.float32))

    def constant(self: GraphBuilder, value: Any, dtype: Any, name: str | None = None) -> str:
        wide = name is not None and name.endswith(("_columns", "_energies"))
        return plain(self, value, np.float32 if wide else dtype, name)

    plain = GraphBuilder.constant
    monkeypatch.setattr(quantize, "LOADED_TYPE", np.float32)
    monkeypatch.setattr(QuantizedRows, "of", of)
    monkeypatch.setattr(GraphBuilder, "constant", constant)


@pytest.mark.usefixtures("exact")
@pytest.mark.parametrize(("config", "features"), MODELS, ids=MODEL_NAMES)
def test_the_saved_graph_answers_as_training_does(
    config: ModelConfig, features: FeatureConfig, sample: LabelledTexts
) -> None:
    model = model_of(small(config), features, sample)
    texts = [*TEXTS, *sample.texts[:5]]
    expected = by_training(model, sample, texts)
    answer = session_of(graph_of(model, tables(model, sample)))
    found = answer(texts)
    tokens = [tokenizer.tokenize(text)[:MAX_TOKENS] for text in texts]
    assert [[t for t in row if t] for row in found["tokens"]] == tokens
    assert np.ptp([one["logits"] for one in expected], 0).max() > 0.1
    for i, one in enumerate(expected):
        for name, theirs in one.items():
            ours = found[name][i] if theirs.shape == (LABELS,) else found[name][i][: len(theirs)]
            assert_close(ours, theirs)
            assert not found[name][i][len(theirs) :].any()

    bias_c = np.array(empty_text_logits(model), np.float32)
    assert_close(bias_c + found["contributions"].sum(1), found["logits"])
    np.testing.assert_allclose(found["attention"].sum(1), [float(bool(row)) for row in tokens], atol=1e-5)
    assert (found["attention"] >= 0).all()
    # Alone and in the smallest batches, which have other shapes.
    for i in (0, 1, 4, 6, 9):
        alone = answer([texts[i]])
        assert_close(alone["logits"][0], expected[i]["logits"])
        assert_close(alone["contributions"][0, : len(tokens[i])], expected[i]["contributions"][: len(tokens[i])])
    empty = answer(["", " "])
    assert_close(empty["logits"], np.stack([bias_c, bias_c]))
    assert not empty["attention"].any()
    assert not empty["contributions"].any()


@pytest.mark.parametrize(("config", "features"), MODELS[1:7:5], ids=MODEL_NAMES[1:7:5])
def test_quantisation_changes_answers_little(
    config: ModelConfig, features: FeatureConfig, sample: LabelledTexts
) -> None:
    model = model_of(small(config), features, sample)
    texts = sample.texts[:40]
    expected = np.stack([one["logits"] for one in by_training(model, sample, texts)])
    found = session_of(graph_of(model, tables(model, sample)))(texts)["logits"]
    assert (found != expected).any()
    assert np.abs(found - expected).max() < 0.1 * np.ptp(expected)
    assert (found.argmax(1) == expected.argmax(1)).mean() > 0.9


def test_scores_and_few_labels_are_folded_and_nothing_else(sample: LabelledTexts) -> None:
    folded = [tables(model_of(small(m), f, sample), sample).folded for m, f in MODELS]
    assert folded == [m.mixing == "none" and m.linear_scores and m.seeds < 5 for m, _ in MODELS]


@pytest.mark.parametrize(("config", "features"), [MODELS[1], MODELS[6]], ids=["folded", "vectors"])
def test_a_batch_with_words_out_of_vocabulary_is_answered_as_its_texts_alone(
    config: ModelConfig, features: FeatureConfig, sample: LabelledTexts
) -> None:
    model = model_of(small(config), features, sample)
    answer = session_of(graph_of(model, tables(model, sample)))
    known, unknown = sample.texts[0], "qzxv refunding \u6771 parcelled! unheard"
    texts = [known, unknown, "", f"{known} {unknown}"]
    together = answer(texts)
    for i, text in enumerate(texts):
        alone = answer([text])
        for name in ("probabilities", "logits"):
            assert_close(together[name][i], alone[name][0], 1e-6)
        tokens = alone["contributions"].shape[1]
        assert_close(together["contributions"][i, :tokens], alone["contributions"][0], 1e-6)


def test_within_a_budget_the_graph_reads_the_tables_as_python_does(sample: LabelledTexts) -> None:
    model = model_of(small(FOLDED[0]), FOLDED[1], sample)
    kept = tables(model, sample, 60_000)
    texts = [*sample.texts, *TEXTS]
    # Some bigrams are kept whose words are not: such a word owns bigrams and n-grams.
    corpus = Corpus.of(texts, MAX_TOKENS)
    padding_bt, token_btgx = kept.read(corpus)
    left_out = kept.index.rows(features.word_hashes(corpus.types))[corpus.token] == kept.index.absent
    assert (token_btgx[~padding_bt][left_out, 0, :-1] != 0).any()
    expected = scoring_head(model, CALIBRATION).answers(padding_bt, token_btgx)
    found = session_of(graph_of(model, kept))(texts)
    assert_close(found["logits"], expected[1], 1e-5)
    assert_close(found["contributions"][:, : padding_bt.shape[1]], expected[3], 1e-5)


def node_types(graph: onnx.GraphProto) -> list[str]:
    return [node.op_type for node in graph.node]


def test_a_folded_model_is_few_nodes_when_it_is_loaded(sample: LabelledTexts, tmp_path: Path) -> None:
    model = model_of(small(FOLDED[0]), FOLDED[1], sample)
    options = onnxruntime.SessionOptions()
    options.optimized_model_filepath = str(tmp_path / "optimised.onnx")
    options.log_severity_level = 4
    onnxruntime.InferenceSession(graph_of(model, tables(model, sample)).SerializeToString(), options)
    graph = onnx.load(options.optimized_model_filepath).graph
    assert len(graph.node) <= 55
    (branch,) = [node for node in graph.node if node.op_type == "If"]
    then, otherwise = (attribute.g for attribute in branch.attribute)
    assert "MatMul" in node_types(then)
    assert node_types(otherwise) == ["Identity"]


def info_of(model: TrainedModel, tables: LookupTables) -> ModelInfo:
    return ModelInfo(
        labels=("a", "b", "c"),
        bias=empty_text_logits(model),
        temperature=TEMPERATURE,
        max_tokens=MAX_TOKENS,
        features=tables.features,
        model={},
        text_columns=("text",),
        label_column="label",
        training={},
    )


def save(model: TrainedModel, tables: LookupTables, path: Path) -> None:
    saving.save(model, tables, CALIBRATION, info_of(model, tables), path)


def test_the_same_model_is_saved_as_the_same_bytes(sample: LabelledTexts, tmp_path: Path) -> None:
    saved = []
    for name in ("one.onnx", "other.onnx"):
        model = model_of(small(FOLDED[0]), FOLDED[1], sample)
        save(model, tables(model, sample), tmp_path / name)
        saved.append((tmp_path / name).read_bytes())
    assert saved[0] == saved[1]
    assert b"site-packages" not in saved[0]


def test_a_graph_that_answers_otherwise_is_not_written(
    sample: LabelledTexts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = model_of(small(MODELS[0][0]), FeatureConfig(bigrams=False), sample)
    known = tables(model, sample)
    graph = graph_of(model, known)
    monkeypatch.setattr(saving, "build_graph", lambda *_: graph)
    path = tmp_path / "model.onnx"
    save(model, known, path)
    good = path.read_bytes()

    with torch.no_grad():
        module_of(model.views[0]).head.bias[0] += 0.01
    with pytest.raises(
        ArtifactError, match=r"disagree on 'probabilities' by .* more than 0\.0001, so .*model\.onnx was not written"
    ):
        save(model, known, path)
    # What was trained is not lost, and the good model is as it was.
    assert sorted(file.name for file in tmp_path.iterdir()) == ["model.onnx", "model.unverified.onnx"]
    assert path.read_bytes() == good
    assert onnx.load(tmp_path / "model.unverified.onnx").graph.node


def test_a_model_whose_answers_are_not_finite_is_not_written(sample: LabelledTexts, tmp_path: Path) -> None:
    model = model_of(small(MODELS[0][0]), FeatureConfig(bigrams=False), sample)
    with torch.no_grad():
        module_of(model.views[0]).head.bias[0] = torch.nan
    with pytest.raises(ConfigError, match=r"^Training diverged: answers are not finite, so nothing was written; lower"):
        save(model, tables(model, sample), tmp_path / "model.onnx")
    assert not list(tmp_path.iterdir())


def test_the_check_before_writing_reads_awkward_texts() -> None:
    counts = [len(tokenizer.tokenize(text)) for text in parity.PARITY_TEXTS]
    assert 0 in counts
    assert 1 in counts
    assert len(set(counts)) > 3
    joined = "".join(parity.PARITY_TEXTS)
    assert "\u200d" in joined
    assert "\u6771" in joined


def test_what_is_added_up_may_round_as_much_as_it_is_large_and_a_short_text_may_not() -> None:
    logit_NC = np.array([[-57.6, 40.0], [-1.0, 2.0]], np.float32)
    contribution_NTC = np.array([[[-57.6, 40.0], [0, 0]], [[-1.0, 2.0], [0, 0]]], np.float32)
    size_N = parity.sizes(logit_NC, contribution_NTC)
    np.testing.assert_allclose(size_N, [58.6, 3.0], rtol=1e-6)
    for name, error in (("logits", 9e-4), ("probabilities", 3.5e-4)):
        long, short = (logit_NC + np.float32(error) * np.array(which, np.float32) for which in ([[1], [0]], [[0], [1]]))
        assert parity.disagreement(name, logit_NC, long, size_N) < parity.TOLERANCE
        assert parity.disagreement(name, logit_NC, short, size_N) > parity.TOLERANCE
    attention_NT, padded_NT = np.array([[0.5], [0.25]]), np.array([[0.5, 0.0], [0.25, 2e-4]])
    assert parity.disagreement("attention", attention_NT, padded_NT, size_N) > parity.TOLERANCE
    cancelled = parity.sizes(np.zeros((1, 2), np.float32), np.array([[[30.0, 1.0], [-30.0, -1.0]]], np.float32))
    np.testing.assert_allclose(cancelled, [61.0])


def test_the_longest_text_of_the_training_is_asked_as_well(sample: LabelledTexts) -> None:
    model = model_of(small(FOLDED[0]), FOLDED[1], sample)
    corpus = Corpus.of(sample.texts, MAX_TOKENS)
    asked = parity.Parity(tables(model, sample), scoring_head(model, CALIBRATION), MAX_TOKENS, model.types, corpus)
    assert len(tokenizer.tokenize([*asked.batches()][-1][0])) == corpus.lengths().max()


# Of these every constant says something: under `norm` attention the squared norms of rows do, too.
KINDS = [MODELS[1], MODELS[6], MODELS[-2]]


def wrong_graphs(graph: onnx.ModelProto) -> dict[str, onnx.ModelProto]:
    """The graph with one thing wrong: each number of a constant that says something, and a node that does."""
    found = {}
    floats = [
        one for one in graph.graph.initializer
        if one.data_type in (onnx.TensorProto.FLOAT, onnx.TensorProto.FLOAT16) and np.prod(one.dims, dtype=int) > 1
    ]  # fmt: skip
    for constant in floats:
        values = onnx.numpy_helper.to_array(constant)
        changed = values + np.asarray(0.05 * np.abs(values).max(), values.dtype)
        wrong = onnx.ModelProto()
        wrong.CopyFrom(graph)
        (place,) = [i for i, one in enumerate(wrong.graph.initializer) if one.name == constant.name]
        wrong.graph.initializer[place].CopyFrom(onnx.numpy_helper.from_array(changed, constant.name))
        found[f"constant {constant.name} {values.shape}"] = wrong
    wrong = onnx.ModelProto()
    wrong.CopyFrom(graph)
    next(node for node in wrong.graph.node if node.op_type == "Softmax").op_type = "Sigmoid"
    del next(node for node in wrong.graph.node if node.op_type == "Sigmoid").attribute[:]
    return found | {"node": wrong}


@pytest.mark.parametrize(("config", "features"), KINDS, ids=[MODEL_NAMES[MODELS.index(kind)] for kind in KINDS])
def test_a_graph_that_is_wrong_in_one_place_does_not_pass_the_check(
    config: ModelConfig, features: FeatureConfig, sample: LabelledTexts
) -> None:
    model = model_of(small(config), features, sample)
    read, head = tables(model, sample), scoring_head(model, CALIBRATION)
    corpus = Corpus.of(sample.texts, MAX_TOKENS)
    asked = parity.Parity(read, head, MAX_TOKENS, model.types, corpus)
    graph = graph_of(model, read)
    asked.check(graph.SerializeToString())
    passed = []
    for what, wrong in wrong_graphs(graph).items():
        try:
            asked.check(wrong.SerializeToString())
        except ArtifactError:
            continue
        passed.append(what)
    assert passed == []
