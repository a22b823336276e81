"""What a classifier promises: no answer depends on padding or company, and attributions are real."""

from dataclasses import replace
from itertools import cycle, product
from typing import Any, get_args

import pytest
import torch
from torch import Tensor

from textcls_torch.models.classifier import ViewClassifier
from textcls_torch.models.mixing import MIXERS
from textcls_torch.models.ops import attention as ops
from textcls_training.config.settings import Attention, ModelConfig, Values
from textcls_training.export.heads.folded_head import FoldedHead
from textcls_training.export.tables import NO_SCORE
from textcls_training.models.calibration import Calibration

D, C, T = 6, 4, 7
KINDS: tuple[Attention, ...] = get_args(Attention)
LENGTHS = (7, 3, 1, 0)
Inputs = tuple[Tensor, Tensor, Tensor]

ALTERNATING: tuple[Values, ...] = ("token", "mixed", "mixed")
# Mixing meets attention in one place alone, so a few mixers meet every attention, and the others take turns.
CONFIGS = [
    ModelConfig(dim=D, mixing=mixing, attention=attention, values=values, seeds=seeds, gate=1.0)
    for mixing, attention, values, seeds in product(("none", "lambda", "gmlp"), KINDS, get_args(Values), (1, 3))
]
CONFIGS += [
    ModelConfig(dim=D, mixing=mixing, attention=attention, values=values, seeds=seeds, gate=1.0)
    for mixing, attention, values, seeds in zip(
        [name for name in MIXERS if name not in ("none", "lambda", "gmlp")],
        cycle(KINDS),
        cycle(ALTERNATING),
        cycle((1, 3)),
        strict=False,
    )
]
CONFIGS += [replace(config, metric=True) for config in CONFIGS if config.attention in ("norm", "softmax")]


def name(config: ModelConfig) -> str:
    scores = "metric scores-" if config.metric else ""
    return f"{config.mixing}-{config.attention}-{scores}{config.values}-{config.seeds}"


every_model = pytest.mark.parametrize("config", CONFIGS, ids=map(name, CONFIGS))


def build(config: ModelConfig) -> ViewClassifier:
    """A model in float64, every weight random: none at a start where it does nothing."""
    torch.manual_seed(0)
    model = ViewClassifier(config, C).double().eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter), alpha=0.3)
    return model


def inputs(*lengths: int, width: int = T) -> Inputs:
    """Token vectors, squared feature norms and mask of texts that do not change with their company or their padding."""
    mask_BT = torch.arange(width) < torch.tensor(lengths)[:, None]
    x_BTD = torch.zeros(len(lengths), width, D, dtype=torch.float64)
    squared_norm_BT1 = torch.zeros(len(lengths), width, 1, dtype=torch.float64)
    for b, n in enumerate(lengths):
        generator = torch.Generator().manual_seed(n)
        x_BTD[b, :n] = torch.randn(n, D, dtype=torch.float64, generator=generator)
        squared_norm_BT1[b, :n] = torch.rand(n, 1, dtype=torch.float64, generator=generator) + 0.1
    return x_BTD, squared_norm_BT1, mask_BT


@every_model
def test_padding_changes_no_answer(config: ModelConfig) -> None:
    model = build(config)
    plain, padded = model.explain(*inputs(*LENGTHS)), model.explain(*inputs(*LENGTHS, width=T + 20))
    torch.testing.assert_close(padded.logits_BC, plain.logits_BC)
    torch.testing.assert_close(padded.attention_BT[:, :T], plain.attention_BT)
    torch.testing.assert_close(padded.attribution_BTC[:, :T], plain.attribution_BTC)
    assert not padded.attention_BT[:, T:].any()
    assert not padded.attribution_BTC[:, T:].any()


@every_model
def test_a_batch_of_two_equals_two_of_one(config: ModelConfig) -> None:
    model = build(config)
    for pair in ((7, 3), (1, 7), (3, 0)):
        together = model.explain(*inputs(*pair))
        for b, n in enumerate(pair):
            alone = model.explain(*inputs(n, width=max(1, n)))
            torch.testing.assert_close(together.logits_BC[b], alone.logits_BC[0])
            torch.testing.assert_close(together.attention_BT[b, :n], alone.attention_BT[0, :n])
            torch.testing.assert_close(together.attribution_BTC[b, :n], alone.attribution_BTC[0, :n])


@every_model
def test_attributions_add_up_to_the_logits_and_attention_to_one(config: ModelConfig) -> None:
    model = build(config)
    logits_BC, attention_BT, attribution_BTC = model.explain(*inputs(*LENGTHS))
    bias_C = model.head.bias
    torch.testing.assert_close(bias_C + attribution_BTC.sum(1), logits_BC)
    assert (attention_BT >= 0).all()
    torch.testing.assert_close(attention_BT.sum(1), torch.tensor([1.0, 1.0, 1.0, 0.0], dtype=torch.float64))
    torch.testing.assert_close(logits_BC[-1], bias_C)


@every_model
def test_the_way_of_training_and_the_way_of_serving_give_the_same_logits(config: ModelConfig) -> None:
    model = build(config)
    torch.testing.assert_close(model(*inputs(*LENGTHS)), model.explain(*inputs(*LENGTHS)).logits_BC)


@every_model
def test_folding_the_seeds_changes_no_answer(config: ModelConfig) -> None:
    model = build(config)
    before = model.explain(*inputs(*LENGTHS))
    model.attention.fold()
    left = {"folded_SD", "scale"} if config.attention == "cosine" else {"folded_SD"}
    assert set(model.attention.state_dict()) == left
    for ours, theirs in zip(model.explain(*inputs(*LENGTHS)), before, strict=True):
        torch.testing.assert_close(ours, theirs)


@every_model
def test_with_attention_fixed_a_changed_value_changes_the_per_token_logit_of_its_own_token_alone(
    config: ModelConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = build(config)
    x_BTD, squared_norm_BT1, mask_BT = inputs(*LENGTHS)
    before = model.explain(x_BTD, squared_norm_BT1, mask_BT)
    probability_BTS, weight_BTS, value_BTD = model.attend(x_BTD, squared_norm_BT1, mask_BT)
    torch.testing.assert_close(value_BTD if config.values == "token" else x_BTD, x_BTD)
    if config.values == "token":
        # The mixing layer sees the change too, but may speak to the scores alone.
        monkeypatch.setattr(model.attention, "weights", lambda *_: (probability_BTS, weight_BTS))
        x_BTD = x_BTD.clone()
        x_BTD[0, 2] += 1
    else:
        value_BTD = value_BTD.clone()
        value_BTD[0, 2] += 1
        monkeypatch.setattr(model, "attend", lambda *_: (probability_BTS, weight_BTS, value_BTD))
    after = model.explain(x_BTD, squared_norm_BT1, mask_BT)
    difference_BTC = after.attribution_BTC - before.attribution_BTC
    assert not difference_BTC[1:].any()
    torch.testing.assert_close(after.logits_BC[0] - before.logits_BC[0], difference_BTC[0].sum(0))
    if config.attention != "norm":
        assert (difference_BTC[0].abs().amax(-1) > 1e-9).nonzero().flatten().tolist() == [2]
    elif config.seeds == 1:
        # The others weaken what the text gains by their fractions of the squared norm.
        fraction_T1 = ops.norm_fractions(probability_BTS, squared_norm_BT1)[0]
        expected_TC = -fraction_T1 / 2 * difference_BTC[0].sum(0)
        expected_TC[2] += 1.5 * difference_BTC[0].sum(0)
        torch.testing.assert_close(difference_BTC[0], expected_TC)


def test_by_default_tokens_are_not_mixed() -> None:
    assert ViewClassifier(ModelConfig(), C).mixing is None


@pytest.mark.parametrize("values", get_args(Values))
def test_mixing_changes_how_much_a_token_counts_in_its_context(values: Values) -> None:
    model = build(ModelConfig(dim=D, mixing="lambda", values=values, gate=1.0))
    assert model.mixing is not None
    before = model.explain(*inputs(7)).attention_BT
    with torch.no_grad():
        model.mixing.gate_X.zero_()
    assert (model.explain(*inputs(7)).attention_BT - before).abs().max() > 1e-3


@every_model
def test_gradients_are_finite_for_empty_texts_and_tokens_out_of_vocabulary(config: ModelConfig) -> None:
    model = build(config).train()
    x_BTD, squared_norm_BT1, mask_BT = inputs(3, 2, 0)
    x_BTD[1], squared_norm_BT1[1] = 0, 0  # a text without a single known feature
    x_BTD.requires_grad_()
    model(x_BTD, squared_norm_BT1, mask_BT).square().sum().backward()
    assert x_BTD.grad is not None
    assert x_BTD.grad[0, :3].any()
    assert x_BTD.grad.isfinite().all()
    assert all(p.grad.isfinite().all() for p in model.parameters() if p.grad is not None)


NORM = [config for config in CONFIGS if config.attention == "norm"]


@pytest.mark.parametrize("config", NORM, ids=map(name, NORM))
@pytest.mark.parametrize("one_pass", [False, True], ids=["scores", "one pass"])
def test_a_text_of_words_out_of_vocabulary_is_answered_by_the_bias(
    config: ModelConfig, one_pass: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = build(replace(config, dim=8))
    if one_pass and model.attention.metric_DD is not None:
        monkeypatch.setattr(model.attention, "fuses", lambda _: True)
    _, squared_norm_BT1, mask_BT = inputs(3, 1)
    nothing_BTD = torch.zeros(2, T, 8, dtype=torch.float64)
    given = nothing_BTD, torch.zeros_like(squared_norm_BT1), mask_BT
    answer = model.explain(*given)
    torch.testing.assert_close(answer.logits_BC, model.head.bias.expand(2, C))
    torch.testing.assert_close(model(*given), answer.logits_BC)
    assert not answer.attribution_BTC.any()
    torch.testing.assert_close(answer.attention_BT.sum(1), torch.ones(2, dtype=torch.float64))


@pytest.mark.parametrize("attention", ["norm", "softmax", "metric"])
def test_metric_scores_start_as_scalar_products(attention: Attention) -> None:
    answers = []
    for config in (ModelConfig(attention=attention, metric=True), ModelConfig(attention=attention)):
        torch.manual_seed(0)
        model = ViewClassifier(config if attention != "metric" else replace(config, attention="softmax"), C)
        generator = torch.Generator().manual_seed(1)
        answers.append(model(torch.randn(2, T, 32, generator=generator), torch.ones(2, T, 1), torch.ones(2, T) > 0))
    assert torch.equal(*answers)


@pytest.mark.parametrize("metric", [False, True], ids=["scalar products", "metric scores"])
def test_even_attention_begins_with_all_tokens_alike_and_a_head_that_reads_them(metric: bool) -> None:
    model = ViewClassifier(ModelConfig(dim=D, metric=metric), C, even_attention=True).double()
    x_BTD, squared_norm_BT1, mask_BT = inputs(*LENGTHS[:3])
    probability_BTS, _, _ = model.attend(x_BTD, squared_norm_BT1, mask_BT)
    even_BT = mask_BT / mask_BT.sum(1, keepdim=True)
    torch.testing.assert_close(probability_BTS.squeeze(2), even_BT.double())
    logits_BC = model(x_BTD, squared_norm_BT1, mask_BT)
    assert logits_BC.detach().std() > 0.01
    logits_BC.square().sum().backward()
    assert all(
        p.grad is not None and p.grad.any() for p in (model.attention.plain_SD, model.head.weight) if p is not None
    )


def test_metric_attention_is_the_softmax_of_metric_scores() -> None:
    metric, softmax = ModelConfig(dim=D, attention="metric"), ModelConfig(dim=D, attention="softmax", metric=True)
    for ours, theirs in zip(build(metric).explain(*inputs(7)), build(softmax).explain(*inputs(7)), strict=True):
        assert torch.equal(ours, theirs)


@pytest.mark.parametrize("config", [c for c in CONFIGS if c.metric_scores], ids=name)
def test_the_metric_of_metric_scores_is_learned(config: ModelConfig) -> None:
    model = build(config).train()
    model(*inputs(*LENGTHS)).square().sum().backward()
    metric_DD = model.attention.metric_DD
    assert metric_DD is not None
    assert metric_DD.grad is not None
    assert metric_DD.grad.any()


def test_there_is_a_metric_where_scores_need_one() -> None:
    configs = [ModelConfig(attention=attention, metric=metric) for metric in (False, True) for attention in KINDS]
    found = [(config.attention, bool(config.metric)) for config in configs if config.metric_scores]
    assert found == [("metric", False), ("norm", True), ("softmax", True), ("metric", True)]
    for config in configs:
        assert (ViewClassifier(config, C).attention.metric_DD is not None) == config.metric_scores


@pytest.mark.parametrize(
    ("change", "fuses"),
    [
        ({}, True),
        ({"attention": "metric", "metric": False}, True),
        ({"seeds": 16}, True),
        ({"metric": False}, False),
        ({"attention": "cosine"}, False),
        ({"attention": "kernel"}, False),
        ({"seeds": 17}, False),
        ({"dim": 7}, False),
        ({"dim": 129}, False),
    ],
    ids=str,
)
def test_seeds_pool_in_one_pass_where_scores_are_a_metrics_and_a_kernel_takes_them(
    change: dict[str, Any], fuses: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: object())
    attention = ViewClassifier(ModelConfig(**({"dim": 8, "metric": True} | change)), C).attention
    assert attention.fuses(torch.device("cuda")) is fuses
    assert not attention.fuses(torch.device("cpu"))
    attention.impl = "reference"
    assert not attention.fuses(torch.device("cuda"))
    attention.impl = "auto"
    attention.fold()
    assert not attention.fuses(torch.device("cuda"))


@pytest.mark.parametrize("config", [replace(c, dim=8) for c in CONFIGS if c.metric_scores], ids=name)
def test_pooling_in_one_pass_gives_the_same_logits_where_nothing_is_added_to_the_scores(
    config: ModelConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = build(config)
    x_BTD, squared_norm_BT1, mask_BT = inputs(*LENGTHS)
    x_BTD = torch.cat([x_BTD, x_BTD[..., :2].square()], -1)
    expected = model(x_BTD, squared_norm_BT1, mask_BT)
    calls: list[Tensor] = []
    one_pass = ops.metric_pool

    def counted(*given: Any) -> tuple[Tensor, Tensor]:
        calls.append(given[1])
        return one_pass(*given)

    # The one pass in plain PyTorch; tests/kernels runs the kernel.
    monkeypatch.setattr(model.attention, "fuses", lambda _: True)
    monkeypatch.setattr(ops, "metric_pool", counted)
    torch.testing.assert_close(model(x_BTD, squared_norm_BT1, mask_BT), expected)
    assert len(calls) == (config.mixing == "none" or config.values == "mixed")


def test_seed_dropout_drops_whole_seeds() -> None:
    model = build(ModelConfig(dim=D, seeds=4, seed_dropout=0.5)).train()
    pooled: list[Tensor] = []
    model.head.register_forward_pre_hook(lambda _, given: pooled.append(given[0].view(-1, 4, D)))
    model(*inputs(*[7] * 50))
    model.eval()(*inputs(7))
    whole = pooled[1]
    dropped_BS = (pooled[0] == 0).all(-1)
    assert 0.3 < dropped_BS.double().mean() < 0.7
    torch.testing.assert_close(pooled[0][~dropped_BS], (2 * whole).expand(50, 4, D)[~dropped_BS])


def test_dropout_drops_single_entries_of_the_pooled_vector_in_training_alone() -> None:
    model = build(ModelConfig(dim=D, dropout=0.5)).train()
    pooled: list[Tensor] = []
    model.head.register_forward_pre_hook(lambda _, given: pooled.append(given[0]))
    model(*inputs(*[7] * 50))
    assert 0.3 < (pooled[0] == 0).double().mean() < 0.7
    model.eval()(*inputs(*[7] * 50))
    assert not (pooled[1] == 0).any()


FOLDABLE = [
    ModelConfig(dim=dim, attention=attention, values=values, seeds=seeds)
    for attention, values, (dim, seeds) in product(KINDS, get_args(Values), ((3, 1), (6, 1), (8, 3)))
    if attention not in ("cosine", "kernel")
]
FOLDABLE += [replace(config, metric=True) for config in FOLDABLE if config.attention == "norm"]
every_foldable_model = pytest.mark.parametrize("config", FOLDABLE, ids=[f"{name(c)}-{c.dim}" for c in FOLDABLE])


@torch.no_grad()
@every_foldable_model
@pytest.mark.parametrize("folded_seeds", [False, True], ids=["seeds as trained", "seeds folded"])
def test_folded_rows_summed_up_give_the_same_answer_as_vectors(config: ModelConfig, folded_seeds: bool) -> None:
    model, V, S = build(config).float(), 40, config.seeds
    assert model.foldable
    if folded_seeds:
        model.attention.fold()
    generator = torch.Generator().manual_seed(1)
    table_VD = torch.randn(V, config.dim, generator=generator)
    weight_V = torch.rand(V, generator=generator)
    _, squared_norm_BT1, mask_BT = inputs(*LENGTHS)
    squared_norm_BT1 = squared_norm_BT1.float()
    use_BTV = torch.randint(0, 3, (*mask_BT.shape, V), generator=generator) * weight_V * mask_BT.unsqueeze(-1)
    folded_VSY = model.fold(table_VD)
    assert folded_VSY.shape == (V, S, C + 1)
    value_BTSC, score_BTS1 = torch.tensor_split(torch.einsum("btv,vsy->btsy", use_BTV, folded_VSY), [C], -1)
    score_BTS1 = score_BTS1.masked_fill(~mask_BT[..., None, None], NO_SCORE)
    squared_norm_BTS1 = squared_norm_BT1.masked_fill(~mask_BT.unsqueeze(-1), 1.0).unsqueeze(2).expand_as(score_BTS1)
    token_BTSX = torch.cat([value_BTSC, score_BTS1, squared_norm_BTS1], -1)
    _, *found = FoldedHead([model], [1.0], Calibration((1.0,), 1.0))(~mask_BT, token_BTSX, torch)
    for ours, theirs in zip(found, model.explain(use_BTV @ table_VD, squared_norm_BT1, mask_BT), strict=True):
        torch.testing.assert_close(ours, theirs, atol=1e-4, rtol=1e-4)


@every_model
def test_a_model_is_foldable_where_it_is_linear_up_to_the_attention_and_its_rows_get_at_most_twice_as_long(
    config: ModelConfig,
) -> None:
    labels = 5
    wide = replace(config, dim=config.seeds * (labels + 1) // 2)
    linear = config.mixing == "none" and config.linear_scores
    assert ViewClassifier(wide, labels).foldable is linear
    assert not ViewClassifier(wide, labels + 1).foldable
    assert not ViewClassifier(replace(wide, dim=wide.dim - 1), labels).foldable
