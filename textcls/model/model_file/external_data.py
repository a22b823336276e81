"""Constants that a model file keeps in other files, which ONNX allows and we never write.

A path of such a file is read wherever the process stands, and what it holds could be answered: a file that comes from
elsewhere must not ask for it. Source of the numbers: onnx.proto of ONNX.
"""

from collections.abc import Iterator
from typing import Final

from textcls.model.model_file.protobuf import Field, fields

_MODEL_GRAPH, _MODEL_FUNCTION, _FUNCTION_NODE = 7, 25, 7
_GRAPH_NODE, _GRAPH_CONSTANT, _GRAPH_SPARSE = 1, 5, 15
_NODE_ATTRIBUTE: Final = 5
_ATTRIBUTE_TENSORS, _ATTRIBUTE_GRAPHS, _ATTRIBUTE_SPARSE = (5, 10), (6, 11), (22, 23)
_SPARSE_TENSORS: Final = (1, 2)
_TENSOR_EXTERNAL, _TENSOR_LOCATION = 13, 14
# Graphs within graphs, as those of `If`.
_DEEPEST: Final = 20


def asks_for_other_files(data: bytes) -> bool:
    """Whether any constant of a model file, in whatever graph, lies in another file.

    Raises:
        ValueError: that is no ONNX file.
    """
    return any(
        field.number == _TENSOR_EXTERNAL or (field.number == _TENSOR_LOCATION and any(field.content))
        for tensor in _tensors_of_model(memoryview(data))
        for field in fields(tensor.content)
    )


def _tensors_of_model(model: memoryview) -> Iterator[Field]:
    for part in fields(model):
        if part.number == _MODEL_GRAPH:
            yield from _tensors_of_graph(part.content, 0)
        elif part.number == _MODEL_FUNCTION:
            for node in _of(part.content, (_FUNCTION_NODE,)):
                yield from _tensors_of_node(node.content, 0)


def _tensors_of_graph(graph: memoryview, depth: int) -> Iterator[Field]:
    if depth > _DEEPEST:
        raise ValueError("graphs within graphs without an end")
    for part in fields(graph):
        if part.number == _GRAPH_CONSTANT:
            yield part
        elif part.number == _GRAPH_SPARSE:
            yield from _of(part.content, _SPARSE_TENSORS)
        elif part.number == _GRAPH_NODE:
            yield from _tensors_of_node(part.content, depth)


def _tensors_of_node(node: memoryview, depth: int) -> Iterator[Field]:
    for attribute in _of(node, (_NODE_ATTRIBUTE,)):
        yield from _of(attribute.content, _ATTRIBUTE_TENSORS)
        for sparse in _of(attribute.content, _ATTRIBUTE_SPARSE):
            yield from _of(sparse.content, _SPARSE_TENSORS)
        for graph in _of(attribute.content, _ATTRIBUTE_GRAPHS):
            yield from _tensors_of_graph(graph.content, depth + 1)


def _of(message: memoryview, numbers: tuple[int, ...]) -> Iterator[Field]:
    return (field for field in fields(message) if field.number in numbers)
