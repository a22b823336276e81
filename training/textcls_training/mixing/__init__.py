"""The mixing layers: the one place where tokens of a text see each other.

A mixer is made with (dim, out) and maps normalised token vectors `x_BTD`, zero at padding, and `mask_BT`, padding last,
to `[B, T, out]`. It must not depend on how much padding stands behind the last real token, nor on the other texts
of the batch; what it returns at padding is ignored. To add one: write a module beside these and enter it in `MIXERS`;
training, export and every test of mixers then know it.
"""

from collections.abc import Callable
from typing import Final

from torch import nn

from textcls_training.mixing.gmlp import GatedMLP
from textcls_training.mixing.lambda_layer import LambdaLayer
from textcls_training.mixing.metric import MetricAttention

# `none` has no layer at all: a token's vector goes to the attention as it is.
MIXERS: Final[dict[str, Callable[[int, int], nn.Module] | None]] = {
    "none": None,
    "lambda": LambdaLayer,
    "gmlp": GatedMLP,
    "metric": MetricAttention,
}
