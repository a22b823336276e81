"""What every mixing layer must hold, and what each one says of itself."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from tests.training.helpers import started
from textcls_torch.models.classifier import MixingLayer
from textcls_torch.models.mixing import MIXERS
from textcls_torch.models.mixing.building_blocks import StaticVector
from textcls_torch.models.mixing.gmlp import FullGate, GatedMLP, Gating
from textcls_torch.models.mixing.lambda_layer import LambdaLayer
from textcls_torch.models.mixing.metric import MetricAttention
from textcls_torch.models.mixing.mixer import TokenMLP
from textcls_torch.models.mixing.sha import SingleHeadedAttention
from textcls_torch.models.mixing.softmax import DotProductAttention

HAS_BFLOAT16 = torch.ops.mkldnn._is_mkldnn_bf16_supported()
D, OUT, T = 6, 3, 9
LENGTHS = (9, 4, 1, 0)

Make = Callable[[int, int], nn.Module]
# All of the registry, and what a mixer has beyond its defaults.
MAKERS: dict[str, Make] = {name: make for name, make in MIXERS.items() if make} | {
    "lambda with positions": lambda dim, out: LambdaLayer(dim, out, reach=2),
    "gmlp with a short reach": lambda dim, out: GatedMLP(dim, out, reach=2),
    "metric with two heads": lambda dim, out: MetricAttention(dim, out, heads=2),
    "mixer of five tokens": lambda dim, out: TokenMLP(dim, out, tokens=5),
    "gmlp with a full matrix of five tokens": lambda dim, out: GatedMLP(dim, out, full=5),
}
every_mixer = pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)


def shaken(module: nn.Module) -> nn.Module:
    """The module in float64, moved away from its careful start, at which it does next to nothing."""
    generator = torch.Generator().manual_seed(1)
    module = started(module).double()
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.add_(torch.randn(parameter.shape, generator=generator, dtype=torch.float64), alpha=0.3)
    return module


def inputs() -> tuple[Tensor, Tensor]:
    mask_BT = torch.arange(T) < torch.tensor(LENGTHS)[:, None]
    x_BTD = torch.randn(len(LENGTHS), T, D, dtype=torch.float64, generator=torch.Generator().manual_seed(2))
    return x_BTD * mask_BT.unsqueeze(-1), mask_BT


def test_the_registry_offers_every_mixing_that_the_sources_name() -> None:
    named = ["none", "pool", "fourier", "mixer", "lambda", "gmlp", "amlp", "linear", "softmax", "metric", "sha"]
    assert list(dict.fromkeys(name.partition(":")[0] for name in MIXERS)) == named
    assert MIXERS["none"] is None


@every_mixer
def test_a_mixer_gives_one_vector_a_token(make: Make) -> None:
    x_BTD, mask_BT = inputs()
    assert shaken(make(D, OUT))(x_BTD, mask_BT).shape == (len(LENGTHS), T, OUT)


@every_mixer
def test_a_mixer_does_not_see_how_much_padding_there_is(make: Make) -> None:
    mixer = shaken(make(D, OUT))
    x_BTD, mask_BT = inputs()
    more_x = torch.cat([x_BTD, torch.zeros(len(LENGTHS), 20, D, dtype=torch.float64)], 1)
    more_mask = torch.cat([mask_BT, torch.zeros(len(LENGTHS), 20, dtype=torch.bool)], 1)
    torch.testing.assert_close(mixer(more_x, more_mask)[:, :T][mask_BT], mixer(x_BTD, mask_BT)[mask_BT])


@every_mixer
def test_a_mixer_does_not_see_the_other_texts_of_the_batch(make: Make) -> None:
    mixer = shaken(make(D, OUT))
    x_BTD, mask_BT = inputs()
    together = mixer(x_BTD, mask_BT)
    for b, n in enumerate(LENGTHS):
        if n:
            alone = mixer(x_BTD[b : b + 1, :n], mask_BT[b : b + 1, :n])
            torch.testing.assert_close(together[b : b + 1, :n], alone)


@every_mixer
def test_a_mixer_lets_a_token_see_its_neighbour(make: Make) -> None:
    mixer = shaken(make(D, OUT))
    x_BTD, mask_BT = inputs()
    other_BTD = x_BTD.clone()
    other_BTD[0, 3] += 1
    moved_T = (mixer(other_BTD, mask_BT) - mixer(x_BTD, mask_BT))[0].abs().amax(-1)
    assert moved_T[2] > 1e-6
    assert moved_T[4] > 1e-6


SEES_ORDER = [name for name in MIXERS if name.startswith(("gmlp", "amlp", "sha", "fourier", "mixer"))]
SEES_ORDER += ["lambda:position", "lambda:kernel+position"]
# What sums up all tokens alike cannot know where they stand; pooling sees which ones are neighbours.
BLIND = ("lambda", "lambda:kernel", "linear", "softmax", "metric", "metric:heads")


@pytest.mark.parametrize("name", BLIND)
def test_a_mixer_without_positions_is_blind_to_the_order_of_tokens(name: str) -> None:
    mixer = shaken(MAKERS[name](D, OUT))
    x_BTD, mask_BT = inputs()
    order = [8, 1, 3, 2, 0, 5, 4, 6, 7]
    torch.testing.assert_close(mixer(x_BTD[:1, order], mask_BT[:1]), mixer(x_BTD[:1], mask_BT[:1])[:, order])


def test_of_every_mixer_it_is_known_whether_it_sees_the_order() -> None:
    assert {*SEES_ORDER, *BLIND, "none", "pool"} == set(MIXERS)


@pytest.mark.parametrize("name", SEES_ORDER)
def test_a_mixer_with_positions_sees_the_order_of_tokens(name: str) -> None:
    mixer = shaken(MAKERS[name](D, OUT))
    x_BTD, mask_BT = inputs()
    swapped = [0, 1, 3, 2, 4, 5, 6, 7, 8]
    moved = mixer(x_BTD[:1, swapped], mask_BT[:1])[:, swapped] - mixer(x_BTD[:1], mask_BT[:1])
    assert moved.abs().amax() > 1e-6


def test_gmlp_sees_no_further_than_its_reach() -> None:
    mixer = shaken(GatedMLP(D, OUT, reach=2))
    x_BTD, mask_BT = inputs()
    other_BTD = x_BTD.clone()
    other_BTD[0, 0] += 1
    moved_T = (mixer(other_BTD, mask_BT) - mixer(x_BTD, mask_BT))[0].abs().amax(-1)
    assert moved_T[2] > 1e-6
    assert not moved_T[3:].any()


def test_what_lambda_returns_is_bounded_by_one() -> None:
    x_BTD, mask_BT = inputs()
    assert shaken(LambdaLayer(D, OUT))(x_BTD * 100, mask_BT).abs().max() <= 1


@pytest.mark.parametrize(("dim", "width"), [(1, 8), (6, 8), (8, 8), (20, 20), (64, 32), (1024, 32)])
def test_a_head_of_metric_attention_has_a_width_that_the_kernels_take(dim: int, width: int) -> None:
    mixer = MetricAttention(dim, OUT)
    assert mixer.widths == (1, width)
    assert mixer.metric_HL.shape == (1, width * (width + 1) // 2)


def test_metric_attention_starts_as_attention_by_scalar_products_of_its_values() -> None:
    x_BTD, mask_BT = inputs()
    mixer: Any = started(MetricAttention(D, OUT)).double()
    p_TK = mixer.project(x_BTD[0])
    probability_TT = torch.softmax(p_TK @ p_TK.T / 8**0.5, -1)
    torch.testing.assert_close(mixer(x_BTD, mask_BT)[0], mixer.leave(probability_TT @ p_TK))


def test_metric_attention_of_padding_is_zero() -> None:
    x_BTD, mask_BT = inputs()
    assert not shaken(MetricAttention(D, OUT))(x_BTD + 1, mask_BT)[~mask_BT].any()


@every_mixer
def test_a_closed_gate_switches_mixing_off(make: Make) -> None:
    x_BTD, mask_BT = inputs()
    assert not started(MixingLayer(D, OUT, make(D, OUT), gate=0.0)).double()(x_BTD, mask_BT).any()


@every_mixer
def test_no_gradient_goes_through_mixing_into_the_token_vectors(make: Make) -> None:
    x_BTD, mask_BT = inputs()
    layer = shaken(MixingLayer(D, OUT, make(D, OUT), gate=1.0))
    assert isinstance(layer, MixingLayer)
    layer(x_BTD.requires_grad_(), mask_BT).sum().backward()
    assert x_BTD.grad is None
    assert all(p.grad is not None and p.grad.isfinite().all() for p in layer.parameters())


@every_mixer
def test_products_in_bfloat16_are_near_those_in_float32_and_there_while_a_layer_learns_alone(make: Make) -> None:
    x_BTD, mask_BT = inputs()
    layer = shaken(MixingLayer(D, OUT, make(D, OUT), gate=1.0)).float()
    assert isinstance(layer, MixingLayer)
    exact = layer(x_BTD.float(), mask_BT)[mask_BT]
    layer.in_bfloat16 = True
    if any(isinstance(module, nn.LSTM) for module in layer.modules()) and not HAS_BFLOAT16:
        pytest.skip("this processor has no LSTM in bfloat16")
    near = layer.train()(x_BTD.float(), mask_BT)[mask_BT]
    assert near.dtype == torch.float32
    torch.testing.assert_close(near, exact, rtol=0.05, atol=0.1)
    near.sum().backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in layer.parameters())
    assert torch.equal(layer.eval()(x_BTD.float(), mask_BT)[mask_BT], exact)


def test_softmax_mixing_equals_pytorchs_own_attention_of_one_head() -> None:
    x_BTD, mask_BT = inputs()
    mixer: Any = started(DotProductAttention(D, D)).double()
    theirs = nn.MultiheadAttention(D, 1, bias=False, batch_first=True, dtype=torch.float64)
    with torch.no_grad():
        theirs.in_proj_weight.copy_(mixer.project.weight)
        theirs.out_proj.weight.copy_(mixer.leave.weight)
    expected, _ = theirs(x_BTD[:3], x_BTD[:3], x_BTD[:3], key_padding_mask=~mask_BT[:3])
    torch.testing.assert_close(mixer(x_BTD[:3], mask_BT[:3])[mask_BT[:3]], expected[mask_BT[:3]])


@pytest.mark.parametrize("gating", ["split", "multiplicative", "additive", "linear"])
@pytest.mark.parametrize("attention", [0, 4], ids=["gmlp", "amlp"])
def test_gated_mlps_equal_the_pseudo_code_of_the_paper(gating: Gating, attention: int) -> None:
    mixer = GatedMLP(D, OUT, full=T, gating=gating, attention=attention).double()
    shaken(mixer)
    x_TD = inputs()[0][0]  # a text without padding
    z = functional.gelu(mixer.enter(x_TD))
    u, v = z.chunk(2, -1) if gating == "split" else (z, z)
    assert isinstance(mixer.gate, FullGate)
    v = mixer.gate.weight_NN @ mixer.norm(v) + mixer.gate.bias_N[:, None]
    if mixer.attention is not None:
        query, key, value = mixer.attention.project(x_TD).chunk(3, -1)
        v = v + mixer.attention.leave(torch.softmax(query @ key.T * 4**-0.5, -1) @ value)
    gated = {"split": u * v, "multiplicative": u * v, "additive": u + v, "linear": v}[gating]
    torch.testing.assert_close(mixer(x_TD[None], torch.ones(1, T) > 0)[0], mixer.leave(gated))


@pytest.mark.parametrize("name", ["gmlp", "gmlp:full", "gmlp:multiplicative", "gmlp:additive", "gmlp:linear"])
def test_every_gmlp_starts_as_a_layer_that_hardly_mixes(name: str) -> None:
    torch.manual_seed(0)
    mixer = started(MAKERS[name](D, OUT)).double()
    x_BTD, mask_BT = inputs()
    other_BTD = x_BTD.clone()
    other_BTD[0, 3] += torch.arange(D)
    moved_T = (mixer(other_BTD, mask_BT) - mixer(x_BTD, mask_BT))[0].abs().amax(-1)
    assert moved_T[[0, 1, 2, 4, 5, 6, 7, 8]].max() < 0.02 * moved_T[3]


def test_the_tiny_attention_of_amlp_is_64_wide() -> None:
    mixer = MAKERS["amlp"](32, OUT)
    assert isinstance(mixer, GatedMLP)
    assert mixer.attention is not None
    assert mixer.attention.leave.in_features == 64


def test_sha_equals_its_equations_by_pytorchs_own_modules() -> None:
    mixer = SingleHeadedAttention(D, D).double()
    shaken(mixer)
    x_TD = inputs()[0][0]
    h = x_TD + mixer.lstm(x_TD[None])[0][0]
    memory, h = mixer.memory_norm(h), mixer.middle_norm(h)
    query = mixer.query_norm(mixer.query(h)) * mixer.query_D.sigmoid()
    s = mixer.value.start_1D[0].sigmoid()
    v = (mixer.value.forget_DD @ s).sigmoid() * (mixer.value.candidate_DD @ s).tanh()
    given = (part[None] for part in (query, memory * mixer.key_D.sigmoid(), memory * v))
    h = h + functional.scaled_dot_product_attention(*given)[0]
    u_T4D = functional.gelu(mixer.boom(mixer.boom_norm(h)))
    expected = mixer.skip_norm(h) + sum(u_T4D[:, i * D : (i + 1) * D] for i in range(4))
    torch.testing.assert_close(mixer(x_TD[None], torch.ones(1, T) > 0)[0], expected)


def test_a_folded_static_vector_is_the_same_and_nothing_else_is_left() -> None:
    vector = StaticVector(D)
    shaken(vector)
    before = vector()
    vector.fold()
    assert torch.equal(vector(), before)
    assert list(vector.state_dict()) == ["folded_D"]


def test_no_mixer_has_a_batch_norm() -> None:
    for make in MAKERS.values():
        assert not any("BatchNorm" in type(module).__name__ for module in make(D, OUT).modules())


@pytest.mark.parametrize("name", [name for name in MIXERS if name != "none"])
def test_a_mixer_says_what_it_costs_and_where_it_comes_from(name: str) -> None:
    doc = type(MAKERS[name](D, OUT)).__doc__ or ""
    assert "O(" in doc
    assert "arXiv" in doc or "MetaFormer" in doc
