"""The metadata of model files, read and exchanged."""

import json
from pathlib import Path
from typing import Any

import onnx

from textcls.artifact import METADATA_KEY

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
