"""Scoring heads: the hand-written graph and the traced one against the PyTorch modules that they must repeat."""

from dataclasses import replace
from functools import cache
from itertools import product
from typing import Any, get_args

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from torch import Tensor

from tests.training.helpers import LABELS, module_of, random_model
from textcls.errors import ArtifactError
from textcls.model.features import FeatureConfig
from textcls.model.model_file.contents import foreign
from textcls_torch.export.heads.vector_head import VectorHead
from textcls_torch.models.mixing import MIXERS, lambda_layer
from textcls_training.config.settings import Attention, ModelConfig, Values
from textcls_training.data.corpus import Corpus
from textcls_training.export.heads.folded_head import FoldedHead
from textcls_training.export.heads.linear_head import LinearHead
from textcls_training.export.heads.outputs import INPUTS, OUTPUTS, HeadOutputs
from textcls_training.export.heads.scoring_head import ScoringHead, empty_text_logits, scoring_head
from textcls_training.export.tables import NO_SCORE
from textcls_training.models.calibration import Calibration
from textcls_training.models.ensemble import HashedView, TrainedModel

TOKENS, TEMPERATURE = 7, 1.7
# Ensemble weights are those of the model.
CALIBRATION = Calibration((), TEMPERATURE)
LENGTHS = (7, 3, 1, 0)


def model_with(config: ModelConfig, views: int) -> TrainedModel:
    """A random model of so many views."""
    return random_model(config, [FeatureConfig()] * views, Corpus.of(["some words of a text"], TOKENS))


def vectors(config: ModelConfig, views: int, *lengths: int) -> tuple[Tensor, Tensor, Tensor]:
    """Padding [B, T], vectors [B, T, V, D] and squared feature norms [B, T, V, 1] of random texts; none at padding."""
    generator = torch.Generator().manual_seed(1)
    padding_BT = torch.arange(max(1, *lengths)) >= torch.tensor(lengths)[:, None]
    real_BT11 = ~padding_BT[..., None, None]
    x_BTVD = torch.randn(*padding_BT.shape, views, config.dim, generator=generator) * real_BT11
    squared_norm_BTV1 = (torch.rand(*padding_BT.shape, views, 1, generator=generator) + 0.1) * real_BT11
    return padding_BT, x_BTVD, squared_norm_BTV1


@torch.no_grad()
def token_sums(model: TrainedModel, padding_BT: Tensor, x_BTVD: Tensor, squared_norm_BTV1: Tensor) -> Tensor:
    """What a text graph gives of these tokens [B, T, G, X], padding as in `Lexicon.marks`."""
    first = model.views[0].classifier
    squared_norm_BTV1 = squared_norm_BTV1.masked_fill(padding_BT[..., None, None], 1.0)
    if not first.foldable:
        return torch.cat([x_BTVD, squared_norm_BTV1], -1)
    seeds, parts = first.config.seeds, []
    for i, view in enumerate(model.views):
        folded_BTSY = module_of(view).fold(x_BTVD[:, :, i].flatten(0, 1)).view(*padding_BT.shape, seeds, -1)
        value_BTSC = folded_BTSY[..., :-1] * model.ensemble_weights[i]
        score_BTS = folded_BTSY[..., -1].masked_fill(padding_BT.unsqueeze(-1), NO_SCORE)
        squared_norm_BTS1 = squared_norm_BTV1[:, :, i].unsqueeze(2).expand(*score_BTS.shape, 1)
        parts.append(torch.cat([value_BTSC, score_BTS.unsqueeze(-1), squared_norm_BTS1], -1))
    return torch.cat(parts, 2)


@torch.no_grad()
def unfolded(model: TrainedModel, padding_BT: Tensor, x_BTVD: Tensor, squared_norm_BTV1: Tensor) -> HeadOutputs:
    """The answers by the classifiers as they were trained."""
    parts = []
    for i, (view, weight) in enumerate(zip(model.views, model.ensemble_weights, strict=True)):
        answer = module_of(view).explain(x_BTVD[:, :, i], squared_norm_BTV1[:, :, i], ~padding_BT)
        parts.append([part * weight for part in answer])
    logits_BC, attention_BT, attribution_BTC = (torch.stack(of_views).sum(0) for of_views in zip(*parts, strict=True))
    return torch.softmax(logits_BC / TEMPERATURE, -1), logits_BC, attention_BT, attribution_BTC


@cache
def exported(config: ModelConfig, views: int) -> tuple[TrainedModel, ScoringHead, onnx.ModelProto]:
    """A random model, its head and the head's graph, made once."""
    model = model_with(config, views)
    head = scoring_head(model, CALIBRATION)
    return model, head, head.graph()


def session_of(graph: onnx.ModelProto) -> onnxruntime.InferenceSession:
    content = graph.SerializeToString()
    assert foreign(content) is None
    return onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])


def run(session: onnxruntime.InferenceSession, padding_BT: Tensor, token_BTGX: Tensor) -> list[np.ndarray]:
    given = dict(zip(INPUTS, (padding_BT.numpy(), token_BTGX.numpy()), strict=True))
    found: list[np.ndarray] = session.run(list(OUTPUTS), given)
    return found


def assert_same(found: Any, expected: Any) -> None:
    for name, ours, theirs in zip(OUTPUTS, found, expected, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=2e-5, rtol=1e-4, err_msg=name)


FOLDED = [
    (ModelConfig(dim=8, attention=attention, values=values, seeds=seeds), views)
    for attention, values, seeds, views in product(get_args(Attention), get_args(Values), (1, 2), (1, 2))
    if attention not in ("cosine", "kernel")
]
FOLDED += [(replace(config, metric=True), views) for config, views in FOLDED if config.attention == "norm"]
VECTORS = [
    (ModelConfig(dim=8, attention="cosine", seeds=2), 2),
    (ModelConfig(dim=8, mixing="lambda", attention="norm", gate=1.0), 1),
    (ModelConfig(dim=8, mixing="gmlp", attention="softmax", values="mixed", seeds=2, gate=1.0), 2),
    (ModelConfig(dim=8, mixing="metric", attention="norm", metric=True, gate=1.0), 2),
    (ModelConfig(dim=8, mixing="metric", attention="metric", values="mixed", seeds=2, gate=1.0), 1),
    (ModelConfig(dim=8, attention="kernel", seeds=2), 2),
]
LINEAR = [
    (ModelConfig(dim=8, attention="norm", seeds=5), 2),
    (ModelConfig(dim=8, attention="softmax", seeds=5), 1),
    (ModelConfig(dim=8, attention="norm", metric=True, values="mixed", seeds=5), 2),
]
EVERY = [*FOLDED, *LINEAR, *VECTORS]
NAMES = [
    f"{c.mixing}-{c.attention}{'-metric scores' * bool(c.metric)}-{c.values}-{c.seeds} seeds-{views} views"
    for c, views in EVERY
]


@pytest.mark.parametrize(("config", "views"), EVERY, ids=NAMES)
def test_a_head_and_its_graph_answer_as_the_classifiers_do(config: ModelConfig, views: int) -> None:
    model, head, graph = exported(config, views)
    kind = next(
        kind
        for kind, cases in ((FoldedHead, FOLDED), (LinearHead, LINEAR), (VectorHead, VECTORS))
        if (config, views) in cases
    )
    assert isinstance(head, kind)
    session = session_of(graph)
    # A whole batch with padding and an empty text, then single texts of several lengths, the empty one among them.
    for lengths in (LENGTHS, (TOKENS,), (1,), (0,), (0, 0), (TOKENS, TOKENS)):
        given = vectors(config, views, *lengths)
        token_BTGX = token_sums(model, *given)
        expected = head.answers(given[0].numpy(), token_BTGX.numpy())
        assert_same(expected, unfolded(model, *given))
        assert_same(run(session, given[0], token_BTGX), expected)


@pytest.mark.parametrize("score", [-16.0, -30.0])
def test_a_token_in_vocabulary_far_below_one_outside_keeps_its_whole_weight(
    score: float,
) -> None:
    model = model_with(ModelConfig(dim=8, attention="norm"), 1)
    head = scoring_head(model, CALIBRATION)
    # Values, score and energy: first a token without any, then a known one.
    token_BTGX = torch.tensor([[[[0.0] * LABELS + [0.0, 0.0]], [[1.0, -2.0, 3.0, score, 2.0]]]])
    padding_BT = torch.zeros(1, 2, dtype=torch.bool)
    said_C = torch.tensor([1.0, -2.0, 3.0]) / 2**0.5
    for answers in (
        head.answers(padding_BT.numpy(), token_BTGX.numpy()),
        run(session_of(head.graph()), padding_BT, token_BTGX),
    ):
        np.testing.assert_allclose(answers[1][0], said_C + torch.tensor(empty_text_logits(model)), rtol=1e-5)
        np.testing.assert_allclose(answers[3][0, 1], said_C, rtol=1e-5)


# All of them beside each other in one head, each as a view.
OTHERS = [name for name in MIXERS if name not in ("none", "lambda", "gmlp", "metric")]


@pytest.mark.parametrize("values", get_args(Values))
def test_every_other_mixer_is_exported_with_parity_and_adds_up(values: Values) -> None:
    views: list[HashedView] = []
    for name in OTHERS:
        config = ModelConfig(dim=8, mixing=name, attention="norm", values=values, gate=1.0)
        views += model_with(config, 1).hashed_views
    model = TrainedModel([], views, (1 / len(views),) * len(views))
    head = scoring_head(model, CALIBRATION)
    session = session_of(head.graph())
    for lengths in (LENGTHS, (TOKENS,), (1,), (0,), (5, 2), (140,)):
        given = vectors(views[0].classifier.config, len(views), *lengths)
        token_BTGX = token_sums(model, *given)
        expected = head.answers(given[0].numpy(), token_BTGX.numpy())
        assert_same(expected, unfolded(model, *given))
        found = run(session, given[0], token_BTGX)
        assert_same(found, expected)
        bias = np.array(empty_text_logits(model), np.float32)
        np.testing.assert_allclose(bias + found[3].sum(1), found[1], atol=1e-5)
        assert not found[3][given[0].numpy()].any()


@pytest.mark.parametrize(("config", "views"), EVERY, ids=NAMES)
def test_padding_adds_nothing_and_an_empty_text_gets_the_biases(config: ModelConfig, views: int) -> None:
    model, _, graph = exported(config, views)
    given = vectors(config, views, *LENGTHS)
    padding = given[0].numpy()
    probabilities, logits, attention, contributions = run(session_of(graph), given[0], token_sums(model, *given))
    bias = np.array(empty_text_logits(model), np.float32)
    assert not attention[padding].any()
    assert not contributions[padding].any()
    np.testing.assert_allclose(attention.sum(1), [1, 1, 1, 0], atol=1e-5)
    np.testing.assert_allclose(bias + contributions.sum(1), logits, atol=1e-5)
    np.testing.assert_allclose(logits[-1], bias, atol=1e-6)
    np.testing.assert_allclose(probabilities.sum(1), 1, atol=1e-5)


@pytest.mark.parametrize(("config", "views"), [FOLDED[0], FOLDED[3], LINEAR[0], VECTORS[1], VECTORS[3]], ids=str)
def test_a_graph_is_made_of_what_the_format_allows(config: ModelConfig, views: int) -> None:
    _, _, graph = exported(config, views)
    assert tuple(value.name for value in graph.graph.input) == INPUTS
    weights = () if (config, views) in VECTORS else ("weights",)
    assert tuple(value.name for value in graph.graph.output) == (*OUTPUTS, *weights)
    assert not graph.functions
    assert {node.domain for node in graph.graph.node} <= {""}
    assert b"site-packages" not in graph.SerializeToString()
    # Seeds are folded, the metric into them: nothing is saved that no node reads.
    read = {name for node in graph.graph.node for name in node.input}
    assert {weight.name for weight in graph.graph.initializer} <= read


@pytest.mark.parametrize(("attention", "nodes"), [("softmax", 11), ("metric", 11), ("norm", 24)])
def test_a_folded_head_is_as_few_nodes_whatever_the_seeds_and_views(attention: Attention, nodes: int) -> None:
    models = [(config, views) for config, views in FOLDED if config.attention == attention]
    assert len(models) == (16 if attention == "norm" else 8)
    for config, views in models:
        assert len(scoring_head(model_with(config, views), CALIBRATION).graph().graph.node) <= nodes


@pytest.mark.parametrize(("config", "views"), [FOLDED[0], VECTORS[0]], ids=["folded", "vectors"])
def test_saving_leaves_the_trained_classifiers_alone(config: ModelConfig, views: int) -> None:
    model = model_with(config, views)
    given = vectors(config, views, *LENGTHS)
    before = unfolded(model, *given)
    names = list(module_of(model.views[0]).state_dict())
    scoring_head(model, CALIBRATION).graph()
    assert list(module_of(model.views[0]).state_dict()) == names
    for ours, theirs in zip(unfolded(model, *given), before, strict=True):
        assert torch.equal(ours, theirs)


def test_a_head_is_in_the_mode_of_serving() -> None:
    config = replace(VECTORS[0][0], dropout=0.5, seed_dropout=0.5)
    head = scoring_head(model_with(config, 1), CALIBRATION)
    assert isinstance(head, VectorHead)
    assert not any(module.training for module in head.modules())


def test_the_logits_of_an_empty_text_are_the_biases_times_the_ensemble_weights() -> None:
    model = model_with(FOLDED[1][0], 2)
    first, second = (module_of(view).head.bias.tolist() for view in model.views)
    assert empty_text_logits(model) == pytest.approx([0.3 * a + 0.7 * b for a, b in zip(first, second, strict=True)])


def test_a_module_that_calls_what_the_export_does_not_know_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    head = scoring_head(model_with(VECTORS[1][0], 1), CALIBRATION)
    monkeypatch.setattr(lambda_layer, "lambda_mix", lambda q_BTK, *_: torch.cumsum(q_BTK, 1))
    with pytest.raises(ArtifactError, match=r"'cumsum' cannot be saved"):
        head.graph()
