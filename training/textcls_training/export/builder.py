"""Build the graph of a saved model: nodes and constants, in order. Their names are part of the file."""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import onnx
from onnx import helper, numpy_helper

from textcls_training.models.opset import OPSET

IR_VERSION: Final = 10
# Domain and version of the operator that maps strings to numbers.
STRINGS_DOMAIN: Final = "ai.onnx.ml"
STRINGS_VERSION: Final = 4


class GraphBuilder:
    """Collect nodes and constants in order; every method returns the name of its result.

    Args:
        prefix: the prefix of all names, so that several builders can share a file.
    """

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []

    def node(self, operator: str, *inputs: str, name: str | None = None, domain: str = "", **attributes: Any) -> str:
        """Add an operator with one output."""
        output = name or f"{self.prefix}_{operator.lower()}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, inputs, [output], domain=domain, **attributes))
        return output

    def split(self, x: str, sizes: Sequence[int], axis: int) -> list[str]:
        """Cut along an axis into parts of these sizes."""
        parts = [f"{self.prefix}_part_{len(self.nodes)}_{i}" for i in range(len(sizes))]
        self.nodes.append(helper.make_node("Split", [x, self.integers(*sizes)], parts, axis=axis))
        return parts

    def constant(self, value: Any, dtype: Any, name: str | None = None) -> str:
        """Add a number or an array."""
        name = f"{self.prefix}_{name or f'constant_{len(self.constants)}'}"
        self.constants.append(numpy_helper.from_array(np.array(value, dtype), name))
        return name

    def exchangeable(self, value: Any, dtype: Any, name: str) -> str:
        """Add an array that other code replaces in a finished file, by exactly this name."""
        self.constants.append(numpy_helper.from_array(np.array(value, dtype), name))
        return name

    def integers(self, *values: int) -> str:
        """Add a list of 64-bit integers, such as axes and shapes."""
        return self.constant(values, np.int64)


def make_model(graph: onnx.GraphProto) -> onnx.ModelProto:
    """Return a model with the operator sets of saved models."""
    opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid("com.microsoft", 1)]
    if any(node.domain == STRINGS_DOMAIN for node in graph.node):
        opsets.append(helper.make_opsetid(STRINGS_DOMAIN, STRINGS_VERSION))
    return helper.make_model(graph, opset_imports=opsets, ir_version=IR_VERSION)
