"""What every mixing layer must hold, and what each one says of itself."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from textcls_training.mixing import MIXERS
from textcls_training.mixing.gmlp import GatedMLP, ToeplitzGate
from textcls_training.mixing.lambda_layer import LambdaLayer
from textcls_training.mixing.metric import MetricAttention
from textcls_training.model import MixingLayer

D, OUT, T = 6, 3, 9
LENGTHS = (9, 4, 1, 0)

Make = Callable[[int, int], nn.Module]
# All of the registry, and what a mixer has beyond its defaults.
MAKERS: dict[str, Make] = {name: make for name, make in MIXERS.items() if make} | {
    "lambda with positions": lambda dim, out: LambdaLayer(dim, out, reach=2),
    "gmlp with a short reach": lambda dim, out: GatedMLP(dim, out, reach=2),
    "metric with two heads": lambda dim, out: MetricAttention(dim, out, heads=2),
}
every_mixer = pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)


def shaken(module: nn.Module) -> nn.Module:
    """The module in float64, moved away from its careful start, at which it does next to nothing."""
    generator = torch.Generator().manual_seed(1)
    module = module.double()
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.add_(torch.randn(parameter.shape, generator=generator, dtype=torch.float64), alpha=0.3)
    return module


def inputs() -> tuple[Tensor, Tensor]:
    mask_BT = torch.arange(T) < torch.tensor(LENGTHS)[:, None]
    x_BTD = torch.randn(len(LENGTHS), T, D, dtype=torch.float64, generator=torch.Generator().manual_seed(2))
    return x_BTD * mask_BT.unsqueeze(-1), mask_BT


def test_the_registry_offers_no_mixing_lambda_gmlp_and_metric() -> None:
    assert {"none", "lambda", "gmlp", "metric"} <= set(MIXERS)
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


@pytest.mark.parametrize("make", [MAKERS["lambda with positions"], MAKERS["gmlp"]], ids=["lambda", "gmlp"])
def test_a_mixer_with_positions_sees_the_order_of_tokens(make: Make) -> None:
    mixer = shaken(make(D, OUT))
    x_BTD, mask_BT = inputs()
    swapped = [0, 1, 3, 2, 4, 5, 6, 7, 8]
    moved = mixer(x_BTD[:1, swapped], mask_BT[:1])[:, swapped] - mixer(x_BTD[:1], mask_BT[:1])
    assert moved[0, 0].abs().amax() > 1e-6


def test_gmlp_sees_no_further_than_its_reach() -> None:
    mixer = shaken(GatedMLP(D, OUT, reach=2))
    x_BTD, mask_BT = inputs()
    other_BTD = x_BTD.clone()
    other_BTD[0, 0] += 1
    moved_T = (mixer(other_BTD, mask_BT) - mixer(x_BTD, mask_BT))[0].abs().amax(-1)
    assert moved_T[2] > 1e-6
    assert not moved_T[3:].any()


def test_gmlp_starts_as_a_layer_that_hardly_mixes() -> None:
    mixer = GatedMLP(D, OUT)
    assert isinstance(mixer.gate, ToeplitzGate)
    assert mixer.gate.filter_W.abs().max() < 0.01
    assert mixer.gate.bias.item() == 1


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
    mixer = MetricAttention(D, OUT).double()
    p_TK = mixer.project(x_BTD[0])
    share_TT = torch.softmax(p_TK @ p_TK.T / 8**0.5, -1)
    torch.testing.assert_close(mixer(x_BTD, mask_BT)[0], mixer.leave(share_TT @ p_TK))


def test_metric_attention_of_padding_is_zero() -> None:
    x_BTD, mask_BT = inputs()
    assert not shaken(MetricAttention(D, OUT))(x_BTD + 1, mask_BT)[~mask_BT].any()


@every_mixer
def test_a_closed_gate_switches_mixing_off(make: Make) -> None:
    x_BTD, mask_BT = inputs()
    assert not MixingLayer(D, OUT, make(D, OUT), gate=0.0).double()(x_BTD, mask_BT).any()


@every_mixer
def test_no_gradient_goes_through_mixing_into_the_token_vectors(make: Make) -> None:
    x_BTD, mask_BT = inputs()
    layer = shaken(MixingLayer(D, OUT, make(D, OUT), gate=1.0))
    assert isinstance(layer, MixingLayer)
    layer(x_BTD.requires_grad_(), mask_BT).sum().backward()
    assert x_BTD.grad is None
    assert all(p.grad is not None and p.grad.isfinite().all() for p in layer.parameters())
