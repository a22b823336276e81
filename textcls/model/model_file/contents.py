"""What the graph of a model file may hold: the operators that we write, and constants that lie in the file itself.

ONNX allows more: constants in other files, whose paths are read wherever the process stands, so that what they hold
could be answered; loops, which need not end; operators of others. A file that comes from elsewhere may not have them.
Source of the numbers: onnx.proto of ONNX.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

from textcls.model.model_file.protobuf import Field, fields

# None of them loops, draws, reads, or keeps anything. First those of the text graph and of the heads that are written
# by hand; then what PyTorch makes of mixing layers; then what another version of it may make of them.
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
# Graphs within graphs, as those of `If`.
_DEEPEST: Final = 20


class _Contents(NamedTuple):
    """What a graph holds, with all graphs within it: a node or a tensor each."""

    node: memoryview | None = None
    tensor: memoryview | None = None


def foreign(data: bytes) -> str | None:
    """Return what a model file has that we never write, None if there is nothing.

    Raises:
        ValueError: that is no ONNX file.
    """
    for part in fields(memoryview(data)):
        if part.number == _MODEL_FUNCTION:
            return "has functions of its own"
        if part.number != _MODEL_GRAPH:
            continue
        for found in _contents(part.content, 0):
            if found.tensor is not None and _lies_elsewhere(found.tensor):
                return "keeps constants in other files"
            if found.node is not None and (stranger := _strange_operator(found.node)) is not None:
                return f"has the operator {stranger}"
    return None


def _strange_operator(node: memoryview) -> str | None:
    domain = operator = ""
    for field in fields(node):
        if field.number == _NODE_OPERATOR:
            operator = bytes(field.content).decode("utf-8", "replace")
        elif field.number == _NODE_DOMAIN:
            domain = bytes(field.content).decode("utf-8", "replace")
    if operator in _DOMAINS.get(domain, ()):
        return None
    return repr(f"{domain}.{operator}"[:100] if domain else operator[:100])


def _lies_elsewhere(tensor: memoryview) -> bool:
    return any(
        field.number == _TENSOR_EXTERNAL or (field.number == _TENSOR_LOCATION and any(field.content))
        for field in fields(tensor)
    )


def _contents(graph: memoryview, depth: int) -> Iterator[_Contents]:
    if depth > _DEEPEST:
        raise ValueError("graphs within graphs without an end")
    for part in fields(graph):
        if part.number == _GRAPH_CONSTANT:
            yield _Contents(tensor=part.content)
        elif part.number == _GRAPH_SPARSE:
            yield from (_Contents(tensor=one.content) for one in _of(part.content, _SPARSE_TENSORS))
        elif part.number == _GRAPH_NODE:
            yield _Contents(node=part.content)
            yield from _contents_of_node(part.content, depth)


def _contents_of_node(node: memoryview, depth: int) -> Iterator[_Contents]:
    for attribute in _of(node, (_NODE_ATTRIBUTE,)):
        yield from (_Contents(tensor=one.content) for one in _of(attribute.content, _ATTRIBUTE_TENSORS))
        for sparse in _of(attribute.content, _ATTRIBUTE_SPARSE):
            yield from (_Contents(tensor=one.content) for one in _of(sparse.content, _SPARSE_TENSORS))
        for graph in _of(attribute.content, _ATTRIBUTE_GRAPHS):
            yield from _contents(graph.content, depth + 1)


def _of(message: memoryview, numbers: tuple[int, ...]) -> Iterator[Field]:
    return (field for field in fields(message) if field.number in numbers)
