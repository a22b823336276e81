"""The fields of an ONNX file that are replaced: constants of its graph, and its metadata.

All other bytes stay unchanged. Source of the field numbers: onnx.proto of ONNX.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from textcls.errors import ArtifactError
from textcls.model.artifact import METADATA_KEY, ModelInfo
from textcls.model.model_file.protobuf import Field, bytes_field, fields, varint_field

_MODEL_GRAPH, _MODEL_METADATA = 7, 14
_GRAPH_CONSTANT: Final = 5
_KEY, _VALUE = 1, 2
_TENSOR_DIM, _TENSOR_TYPE, _TENSOR_NAME, _TENSOR_CONTENT = 1, 2, 8, 9
_TYPES: Final = {np.dtype(np.float32): 1, np.dtype(np.int64): 7, np.dtype(np.float16): 10}

Constants = Mapping[str, NDArray[Any]]


def metadata(data: bytes, path: Path) -> dict[str, str]:
    """Return the metadata of the ONNX file whose content is `data`; messages name it `path`.

    Raises:
        ArtifactError: it is not an ONNX file, or it is damaged.
    """
    found = {}
    for field in _checked(memoryview(data), path):
        if field.number == _MODEL_METADATA:
            text = {part.number: bytes(part.content).decode() for part in _checked(field.content, path)}
            found[text.get(_KEY, "")] = text.get(_VALUE, "")
    return found


def constants(data: bytes, names: Mapping[str, Any], path: Path) -> dict[str, NDArray[Any]]:
    """Return the constants of the graph in `names`, which maps each to its NumPy type.

    Raises:
        ArtifactError: one is missing or of another type, or the file is damaged.
    """
    found = {}
    for field in _checked(memoryview(data), path):
        if field.number != _MODEL_GRAPH:
            continue
        for part in _checked(field.content, path):
            if part.number == _GRAPH_CONSTANT and (name := _name(part, path)) in names:
                found[name] = _array(part, np.dtype(names[name]), path)
    if missing := sorted(set(names) - set(found)):
        raise ArtifactError(f"{path} is damaged: it has no constant {missing[0]!r}; train or copy the model again.")
    return found


def exchanged(data: bytes, info: ModelInfo, path: Path, constants: Constants | None = None) -> bytes:
    """Return the model file `data` with new textcls metadata, and new values of some constants.

    Args:
        data: the content of a model file, which has all fields that are replaced.
        info: the new description of the model.
        path: the path of the file, for messages.
        constants: the constants by name, in float16, float32 or int64; of any shape that fits the graph.

    Raises:
        ArtifactError: it is not an ONNX file, or it is damaged.
    """
    parts: list[bytes | memoryview] = []
    for field in _checked(memoryview(data), path):
        if field.number == _MODEL_GRAPH and constants:
            parts.append(bytes_field(_MODEL_GRAPH, _with_constants(field.content, constants, path)))
        elif field.number == _MODEL_METADATA and _key(field, path) == METADATA_KEY:
            pair = bytes_field(_KEY, METADATA_KEY.encode())
            pair += bytes_field(_VALUE, info.to_metadata()[METADATA_KEY].encode())
            parts.append(bytes_field(_MODEL_METADATA, pair))
        else:
            parts.append(field.whole)
    return b"".join(parts)


def _with_constants(graph: memoryview, constants: Constants, path: Path) -> bytes:
    parts: list[bytes | memoryview] = []
    for field in _checked(graph, path):
        if field.number == _GRAPH_CONSTANT and (name := _name(field, path)) in constants:
            parts.append(bytes_field(_GRAPH_CONSTANT, _tensor(name, constants[name])))
        else:
            parts.append(field.whole)
    return b"".join(parts)


def _tensor(name: str, array: NDArray[Any]) -> bytes:
    """Return a tensor in the form of ONNX."""
    shape = b"".join(varint_field(_TENSOR_DIM, size) for size in array.shape)
    little_endian = array.astype(array.dtype.newbyteorder("<"))
    kind = varint_field(_TENSOR_TYPE, _TYPES[array.dtype])
    return (
        shape + kind + bytes_field(_TENSOR_NAME, name.encode()) + bytes_field(_TENSOR_CONTENT, little_endian.tobytes())
    )


def _array(tensor: Field, dtype: np.dtype[Any], path: Path) -> NDArray[Any]:
    shape, kind, content = [], None, b""
    for part in _checked(tensor.content, path):
        if part.number == _TENSOR_DIM:
            shape.append(_number(part.content))
        elif part.number == _TENSOR_TYPE:
            kind = _number(part.content)
        elif part.number == _TENSOR_CONTENT:
            content = bytes(part.content)
    if kind != _TYPES[dtype] or int(np.prod(shape, dtype=object)) * dtype.itemsize != len(content):
        raise ArtifactError(f"{path} is damaged: a constant is not what it should be; train or copy the model again.")
    return np.frombuffer(content, dtype.newbyteorder("<")).astype(dtype).reshape(shape)


def _number(varint: memoryview) -> int:
    return sum((byte & 0x7F) << 7 * i for i, byte in enumerate(varint))


def _name(tensor: Field, path: Path) -> str:
    found = (part.content for part in _checked(tensor.content, path) if part.number == _TENSOR_NAME)
    return bytes(next(found, b"")).decode(errors="replace")


def _key(pair: Field, path: Path) -> str:
    found = (part.content for part in _checked(pair.content, path) if part.number == _KEY)
    return bytes(next(found, b"")).decode(errors="replace")


def _checked(message: memoryview, path: Path) -> list[Field]:
    try:
        return list(fields(message))
    except ValueError as error:
        raise ArtifactError(f"{path} is not an ONNX file, or it is damaged.") from error
