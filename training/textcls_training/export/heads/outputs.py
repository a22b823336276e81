"""The inputs and outputs of every scoring head, the model around them, and the initial bias.

Shapes as in `export.heads`.
"""

from collections.abc import Sequence
from typing import Any, Final, Protocol

import numpy as np
import onnx
from onnx import TensorProto, helper

from textcls_training.data.arrays import Bools, Float32
from textcls_training.data.corpus import Corpus
from textcls_training.export.builder import GraphBuilder, make_model
from textcls_training.models.ensemble import Classifier

# Their names in a saved graph.
INPUTS: Final = ("padding", "token")
OUTPUTS: Final = ("probabilities", "logits", "attention", "contributions")

# Probabilities and logits [B, C], attention [B, T], attributions [B, T, C]: the output `contributions`. Arrays, or
# tensors if tensors were given.
HeadOutputs = tuple[Any, Any, Any, Any]


class Tables(Protocol):
    """What a text graph reads."""

    def read(self, corpus: Corpus) -> tuple[Bools, Float32]:
        """Return padding [B, T] and token sums [B, T, G, X] as the text graph of a saved model does."""


class ReadsTables:
    """A head whose inputs are what a text graph makes of texts."""

    def inputs(self, tables: Tables, corpus: Corpus) -> tuple[Bools, Float32]:
        """Return padding and token sums of texts."""
        return tables.read(corpus)


def ensemble_bias(classifiers: Sequence[Classifier], ensemble_weights: Sequence[float]) -> Float32:
    """Return the sum of the biases of all views [C], each times its ensemble weight."""
    weighted = [np.float32(weight) * one.bias_C for one, weight in zip(classifiers, ensemble_weights, strict=True)]
    bias_C: Float32 = np.sum(weighted, axis=0, dtype=np.float32)
    return bias_C


def head_model(g: GraphBuilder, labels: int, *more: onnx.ValueInfoProto) -> onnx.ModelProto:
    """Return the model of a head whose nodes are in `g`.

    Args:
        g: contains all `INPUTS` and `OUTPUTS` by name.
        labels: the number of labels.
        more: additional outputs.
    """
    inputs = [
        helper.make_tensor_value_info("padding", TensorProto.BOOL, ["batch", "tokens"]),
        helper.make_tensor_value_info("token", TensorProto.FLOAT, None),
    ]
    shapes: tuple[Sequence[str | int], ...] = (
        ("batch", labels),
        ("batch", labels),
        ("batch", "tokens"),
        ("batch", "tokens", labels),
    )
    outputs = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
        for name, shape in zip(OUTPUTS, shapes, strict=True)
    ]
    return make_model(helper.make_graph(g.nodes, "head", inputs, [*outputs, *more], g.constants))
