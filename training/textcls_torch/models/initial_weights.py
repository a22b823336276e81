"""The initial value of every weight of a classifier. (Embeddings initialise their own rows.)

    every linear layer          weight, bias            uniform within 1 / sqrt(input width): PyTorch's own
    every LSTM                  all weights             uniform within 1 / sqrt(its width): PyTorch's own
    every layer norm            weight, bias            1, 0: PyTorch's own
    the linear head             head.bias               0
                                head.weight             0 if a classifier begins at zero
    seed attention              seed_SD                 normal(1)
                                plain_SD                0
                                forget_DD, candidate_DD normal(1 / sqrt(D))
                                metric_DD               sqrt(D) times the identity: scores begin as scalar products
                                scale                   5
    around a mixing layer       gate_X                  `ModelConfig.gate`
    lambda layer                position_KW             normal(1 / sqrt(K))
    gMLP                        filter_W                normal(0.001); 1 more in the middle with linear gating
                                gate.bias               1; 0 with additive and linear gating
                                weight_NN, bias_N       normal(0.001), 1
    metric tensor attention     metric_HL               the identity, packed
    SHA                         query_D, key_D          0
                                start_1D                0

normal(s) has standard deviation s. Modules draw nothing when they are created: `init_weights` draws for all of them,
one after the other from PyTorch's generator, children before the weights of the module itself, in the order in which
they were registered. The order is part of the promise that the same seed gives the same bytes.
"""

import math
from collections.abc import Callable, Mapping
from typing import Any, Final

import torch
from torch import Tensor, nn

from textcls_kernels import pack_metric

# (the module, one of its weights) -> the initial value of the weight
Start = Callable[[Any, Tensor], Tensor]


def constant(value: float) -> Start:
    """Return a start with one number."""
    return lambda _, weight: torch.full(weight.shape, value)


def normal(std: float) -> Start:
    """Return a start with normal draws."""
    return lambda _, weight: torch.randn(weight.shape) * std


def normal_by_width(dimension: int) -> Start:
    """Return a start with normal draws of standard deviation 1 / sqrt(the size of a dimension)."""
    return lambda _, weight: torch.randn(weight.shape) * weight.shape[dimension] ** -0.5


def _scaled_identity(_: Any, metric_DD: Tensor) -> Tensor:
    return math.sqrt(len(metric_DD)) * torch.eye(len(metric_DD))


def _packed_identity(attention: Any, metric_HL: Tensor) -> Tensor:
    return pack_metric(torch.eye(attention.widths[1]).repeat(len(metric_HL), 1, 1))


def _gate(layer: Any, gate_X: Tensor) -> Tensor:
    return torch.full(gate_X.shape, layer.start)


def _toeplitz_filter(gate: Any, filter_W: Tensor) -> Tensor:
    start_W = torch.randn(filter_W.shape) * 1e-3
    if gate.identity:
        start_W[len(start_W) // 2] += 1
    return start_W


def _full_filter(gate: Any, weight_NN: Tensor) -> Tensor:
    # Draw as for the Toeplitz filter that a full matrix replaces: otherwise all draws that follow would change.
    torch.randn(gate.toeplitz_width)
    return torch.randn(weight_NN.shape) * 1e-3


# By the name of a weight, or by its name in its module's parent.
STARTS: Final[Mapping[str, Start]] = {
    "head.bias": constant(0.0),
    "seed_SD": lambda _, weight: torch.randn(weight.shape),
    "plain_SD": constant(0.0),
    "forget_DD": normal_by_width(0),
    "candidate_DD": normal_by_width(0),
    "metric_DD": _scaled_identity,
    "scale": constant(5.0),
    "gate_X": _gate,
    "position_KW": normal_by_width(0),
    "filter_W": _toeplitz_filter,
    "gate.bias": lambda gate, _: torch.tensor(gate.start),
    "weight_NN": _full_filter,
    "bias_N": constant(1.0),
    "metric_HL": _packed_identity,
    "query_D": constant(0.0),
    "key_D": constant(0.0),
    "start_1D": constant(0.0),
}


@torch.no_grad()
def init_weights(module: nn.Module, name: str = "") -> None:
    """Initialise every weight of `module` as the table says.

    Args:
        module: a classifier, or a part of one.
        name: the name of the module in its parent.
    """
    for child_name, child in module.named_children():
        init_weights(child, child_name)
    if isinstance(module, nn.Linear):
        nn.Linear.reset_parameters(module)
    elif isinstance(module, nn.LSTM):
        nn.LSTM.reset_parameters(module)
    elif isinstance(module, nn.LayerNorm):
        module.reset_parameters()
    for weight_name, weight in module.named_parameters(recurse=False):
        start = STARTS.get(f"{name}.{weight_name}") or STARTS.get(weight_name)
        if start is not None:
            weight.copy_(start(module, weight))
