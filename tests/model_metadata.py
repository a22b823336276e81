"""The metadata of model files, read and exchanged."""

import json
from pathlib import Path
from typing import Any

import onnx

from textcls.model.artifact import HELD_OUT, METADATA_KEY

Metadata = dict[str, Any]


def metadata_of(path: Path) -> Metadata:
    found = {prop.key: prop.value for prop in onnx.load(path).metadata_props}
    metadata: Metadata = json.loads(found[METADATA_KEY])
    return metadata


def with_metadata(path: Path, metadata: object) -> bytes:
    """The model at `path` with other metadata, as bytes of a file."""
    model = onnx.load(path)
    (prop,) = model.metadata_props
    prop.value = json.dumps(metadata)
    return bytes(model.SerializeToString())


def with_held_out(model_path: Path, held_out: object, path: Path) -> Path:
    """Write to `path` the model at `model_path` with this summary of its held-out rows."""
    metadata = metadata_of(model_path)
    metadata["training"] = {**metadata["training"], HELD_OUT: held_out}
    path.write_bytes(with_metadata(model_path, metadata))
    return path
