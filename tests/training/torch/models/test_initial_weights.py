"""Where weights begin: every one is in the table, and the draws come in one order."""

import math

import pytest
import torch
from torch import nn

from tests.training.helpers import started
from textcls_torch.models.classifier import ViewClassifier
from textcls_torch.models.initial_weights import init_weights
from textcls_torch.models.layers import LSTM, Linear
from textcls_torch.models.mixing import MIXERS
from textcls_training.config.settings import ModelConfig

CONFIGS = [ModelConfig(dim=8, mixing=mixing, metric=True) for mixing in MIXERS]
CONFIGS += [ModelConfig(dim=8, attention="cosine", seeds=3), ModelConfig(dim=8, mixing="gmlp", values="mixed")]


def classifier(config: ModelConfig) -> ViewClassifier:
    torch.manual_seed(0)
    return ViewClassifier(config, 5)


@pytest.mark.parametrize("config", CONFIGS, ids=str)
def test_every_weight_of_every_model_begins_as_the_table_says(config: ModelConfig) -> None:
    model = classifier(config)
    expected = {name: weight.clone() for name, weight in model.named_parameters()}
    with torch.no_grad():
        for weight in model.parameters():
            weight.fill_(math.nan)
    torch.manual_seed(0)
    init_weights(model)
    for name, weight in model.named_parameters():
        assert weight.isfinite().all(), name
        assert torch.equal(weight, expected[name]), name


def test_modules_draw_nothing_when_they_are_made() -> None:
    torch.manual_seed(0)
    expected = torch.rand(1)
    torch.manual_seed(0)
    for module in (Linear(3, 4), LSTM(3, 4), *(make(8, 8) for make in MIXERS.values() if make)):
        assert isinstance(module, nn.Module)
    assert torch.rand(1) == expected


def test_the_head_begins_with_pytorchs_weights_and_no_bias() -> None:
    head = classifier(ModelConfig(dim=64)).head
    assert not head.bias.any()
    assert 0.9 / 8 < head.weight.abs().max() <= 1 / 8


def test_draws_come_from_the_mixing_layer_to_the_attention_to_the_head() -> None:
    model = classifier(ModelConfig(dim=4, mixing="lambda:position"))
    torch.manual_seed(0)
    project = nn.Linear(4, 17, bias=False)
    position_KW = torch.randn(8, 15) * 8**-0.5
    seed_SD, forget_DD, candidate_DD = torch.randn(1, 4), torch.randn(4, 4) / 2, torch.randn(4, 4) / 2
    head = nn.Linear(4, 5)
    expected = (project.weight, position_KW, seed_SD, forget_DD, candidate_DD, head.weight)
    named = dict(model.named_parameters())
    names = ("mixing.mixer.project.weight", "mixing.mixer.position_KW", "attention.seed_SD", "attention.forget_DD")
    for name, weight in zip((*names, "attention.candidate_DD", "head.weight"), expected, strict=True):
        assert torch.equal(named[name], weight), name


@pytest.mark.parametrize(
    ("mixing", "bias", "middle"),
    [("gmlp", 1, 0), ("gmlp:multiplicative", 1, 0), ("gmlp:additive", 0, 0), ("gmlp:linear", 0, 1)],
)
def test_a_gmlp_begins_as_a_plain_layer(mixing: str, bias: int, middle: int) -> None:
    make = MIXERS[mixing]
    assert make is not None
    weights = {name: weight.detach() for name, weight in started(make(8, 8)).named_parameters()}
    assert weights["gate.bias"] == bias
    filter_W = weights["gate.filter_W"]
    assert filter_W[15] == pytest.approx(middle, abs=0.01)
    assert filter_W[:15].abs().max() < 0.01
    assert filter_W[16:].abs().max() < 0.01


def test_a_metric_begins_as_scalar_products_and_a_gate_where_it_is_told() -> None:
    model = classifier(ModelConfig(dim=9, mixing="metric", metric=True, gate=0.25))
    assert model.attention.metric_DD is not None
    assert torch.equal(model.attention.metric_DD, 3 * torch.eye(9))
    assert model.mixing is not None
    assert model.mixing.gate_X.tolist() == [0.25]
