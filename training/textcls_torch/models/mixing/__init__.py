"""The mixing layers: the one place where tokens of a text see each other.

A mixer is created with (dim, out) and maps normalised token vectors `x_BTD`, zero at padding, and `mask_BT`, padding
last, to `[B, T, out]`. It must not depend on how much padding follows the last real token, nor on the other texts of
the batch; what it returns at padding is ignored. To add one: a module beside these, a line in `MIXERS`, and what
ARCHITECTURE.md says.

Each one has a layer norm before it, a gate after it, and the residual (`textcls_torch.models.classifier`).
Batch norm is nowhere.
"""

from collections.abc import Callable
from functools import partial
from typing import Final

from torch import nn

from textcls_torch.models.mixing.fourier import FourierMixing
from textcls_torch.models.mixing.gmlp import GatedMLP
from textcls_torch.models.mixing.lambda_layer import LambdaLayer
from textcls_torch.models.mixing.linear import LinearAttention
from textcls_torch.models.mixing.metric import MetricAttention
from textcls_torch.models.mixing.mixer import TokenMLP
from textcls_torch.models.mixing.pool import AveragePool
from textcls_torch.models.mixing.sha import SingleHeadedAttention
from textcls_torch.models.mixing.softmax import DotProductAttention

# A variant follows a colon. `none` has no layer: a token's vector goes to the attention as it is.
MIXERS: Final[dict[str, Callable[[int, int], nn.Module] | None]] = {
    "none": None,
    "pool": AveragePool,
    "fourier": FourierMixing,
    "mixer": TokenMLP,
    "lambda": LambdaLayer,
    "lambda:kernel": partial(LambdaLayer, kernel=True),
    "lambda:position": partial(LambdaLayer, reach=7),
    "lambda:kernel+position": partial(LambdaLayer, kernel=True, reach=7),
    "gmlp": GatedMLP,
    "gmlp:full": partial(GatedMLP, full=128),
    "gmlp:multiplicative": partial(GatedMLP, gating="multiplicative"),
    "gmlp:additive": partial(GatedMLP, gating="additive"),
    "gmlp:linear": partial(GatedMLP, gating="linear"),
    "amlp": partial(GatedMLP, attention=64),
    "linear": LinearAttention,
    "softmax": DotProductAttention,
    "metric": MetricAttention,
    "metric:heads": partial(MetricAttention, heads=4),
    "sha": SingleHeadedAttention,
}
