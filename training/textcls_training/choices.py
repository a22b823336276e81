"""What can be chosen by name. No PyTorch here: a command refuses a wrong name before it is imported."""

from typing import Final, Literal, get_args

Attention = Literal["norm", "softmax", "cosine", "kernel", "metric"]
ClassWeight = Literal["none", "balanced"]
Device = Literal["auto", "cpu", "cuda"]
EmbeddingKind = Literal["rows", "bits"]
Size = Literal["tiny", "small", "default", "full"]
Values = Literal["token", "mixed"]

ATTENTIONS: Final = get_args(Attention)
CLASS_WEIGHTS: Final = get_args(ClassWeight)
DEVICES: Final = get_args(Device)
EMBEDDINGS: Final = get_args(EmbeddingKind)
SIZES: Final[tuple[Size, ...]] = get_args(Size)
VALUES: Final = get_args(Values)
# Behind a colon stands a variant; `textcls_training.mixing.MIXERS` has a layer for each.
MIXINGS: Final = (
    "none",
    "pool",
    "fourier",
    "mixer",
    "lambda",
    "lambda:kernel",
    "lambda:position",
    "lambda:kernel+position",
    "gmlp",
    "gmlp:full",
    "gmlp:multiplicative",
    "gmlp:additive",
    "gmlp:linear",
    "amlp",
    "linear",
    "softmax",
    "metric",
    "metric:heads",
    "sha",
)
