"""What the graph of a model file may contain: the operators that we write, and constants in the file itself.

ONNX allows more: constants in other files, with paths relative to the working directory, so that answers could reveal
their content; loops, which may never end; custom operators. A file from elsewhere must not contain these.
Source of the numbers: onnx.proto of ONNX.
"""

from collections.abc import Iterator
from typing import Final

from textcls.model.model_file.protobuf import fields

# None of them loops, uses randomness, reads files, or keeps state. Those of the hand-written text graph and heads,
# then those that PyTorch exports for mixing layers; then those that another version of it may export.
_STANDARD: Final = """
    Add And BitShift BitwiseAnd BitwiseXor Cast Concat CumSum Div Equal Expand Gather GatherND Identity If Less MatMul
    Max Mul NonZero Pad Range ReduceMax ReduceSum ReduceSumSquare Reshape ScatterElements ScatterND Shape Sigmoid Slice
    Softmax Split Sqrt Squeeze StringConcat StringNormalizer Sub Tile Transpose Unique Unsqueeze Where

    AveragePool Clip Conv Cos Elu Gelu Greater LSTM LayerNormalization Log Mod Not ReduceL2 ReduceMean Sin Tanh

    Abs BatchNormalization Constant ConstantOfShape Einsum Erf Exp Flatten Floor GatherElements Gemm GlobalAveragePool
    GreaterOrEqual GRU HardSwish IsNaN LessOrEqual LogSoftmax Min Neg Or Pow RMSNormalization Reciprocal ReduceL1
    ReduceMin ReduceProd Relu Sign Softplus Swish Trilu
"""
OPERATORS: Final = frozenset(_STANDARD.split())
OPERATORS_OF_MICROSOFT: Final = frozenset({"MurmurHash3", "Tokenizer"})
OPERATORS_OF_MACHINE_LEARNING: Final = frozenset({"LabelEncoder"})
_DOMAINS: Final = {
    "": OPERATORS,
    "ai.onnx": OPERATORS,
    "com.microsoft": OPERATORS_OF_MICROSOFT,
    "ai.onnx.ml": OPERATORS_OF_MACHINE_LEARNING,
}

_MODEL_GRAPH, _MODEL_FUNCTION = 7, 25
_GRAPH_NODE, _GRAPH_CONSTANT, _GRAPH_SPARSE = 1, 5, 15
_NODE_OPERATOR, _NODE_ATTRIBUTE, _NODE_DOMAIN = 4, 5, 7
_ATTRIBUTE_TENSORS, _ATTRIBUTE_GRAPHS, _ATTRIBUTE_SPARSE = (5, 10), (6, 11), (22, 23)
_SPARSE_TENSORS: Final = (1, 2)
_TENSOR_EXTERNAL, _TENSOR_LOCATION = 13, 14
# Nesting depth of graphs, as in `If`.
_DEEPEST: Final = 20


def foreign(data: bytes) -> str | None:
    """Return what a model file contains that we never write; None if there is nothing.

    Raises:
        ValueError: it is not an ONNX file.
    """
    for number, _, content in fields(memoryview(data)):
        if number == _MODEL_FUNCTION:
            return "has functions of its own"
        if number == _MODEL_GRAPH and (found := next(_of_graph(content, 0), None)):
            return found
    return None


def _of_graph(graph: memoryview, depth: int) -> Iterator[str]:
    """Yield what is foreign in a graph and in all graphs nested in it."""
    if depth > _DEEPEST:
        raise ValueError("graphs within graphs without an end")
    for number, _, content in fields(graph):
        if number == _GRAPH_NODE:
            yield from _of_node(content, depth)
        elif number == _GRAPH_CONSTANT:
            yield from _of_tensor(content)
        elif number == _GRAPH_SPARSE:
            yield from _of_sparse(content)


def _of_node(node: memoryview, depth: int) -> Iterator[str]:
    domain = operator = ""
    for number, _, content in fields(node):
        if number == _NODE_OPERATOR:
            operator = bytes(content).decode("utf-8", "replace")
        elif number == _NODE_DOMAIN:
            domain = bytes(content).decode("utf-8", "replace")
        elif number == _NODE_ATTRIBUTE:
            yield from _of_attribute(content, depth)
    if operator not in _DOMAINS.get(domain, ()):
        name = f"{domain}.{operator}" if domain else operator
        yield f"has the operator {name[:100]!r}"


def _of_attribute(attribute: memoryview, depth: int) -> Iterator[str]:
    for number, _, content in fields(attribute):
        if number in _ATTRIBUTE_TENSORS:
            yield from _of_tensor(content)
        elif number in _ATTRIBUTE_SPARSE:
            yield from _of_sparse(content)
        elif number in _ATTRIBUTE_GRAPHS:
            yield from _of_graph(content, depth + 1)


def _of_sparse(tensor: memoryview) -> Iterator[str]:
    for number, _, content in fields(tensor):
        if number in _SPARSE_TENSORS:
            yield from _of_tensor(content)


def _of_tensor(tensor: memoryview) -> Iterator[str]:
    for number, _, content in fields(tensor):
        if number == _TENSOR_EXTERNAL or (number == _TENSOR_LOCATION and any(content)):
            yield "keeps constants in other files"
