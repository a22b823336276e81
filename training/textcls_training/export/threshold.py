"""What is changed in a saved model without training it again: its metadata, and nothing else of the file."""

from dataclasses import replace
from pathlib import Path

import onnx
from google.protobuf.message import DecodeError

from textcls._util.atomic_write import atomic_write
from textcls.artifact import METADATA_KEY, ModelInfo, read_file
from textcls.errors import ArtifactError
from textcls.prediction import checked_threshold


def store_threshold(path: Path, threshold: float | None) -> None:
    """Write the score below which the model at `path` abstains into its file, which is replaced as a whole.

    Raises:
        ConfigError: the threshold is no probability.
        ArtifactError: there is no model, or it is damaged.
        SurroundingsError: the file cannot be replaced.
    """
    threshold = None if threshold is None else checked_threshold(threshold)
    try:
        model = onnx.load_model_from_string(read_file(path))
    except DecodeError as error:
        raise ArtifactError(f"{path} is no ONNX file, or it is damaged.") from error
    found = {prop.key: prop for prop in model.metadata_props}
    info = ModelInfo.from_metadata({key: prop.value for key, prop in found.items()}, path)
    found[METADATA_KEY].value = replace(info, threshold=threshold).to_metadata()[METADATA_KEY]
    with atomic_write(path) as file:
        file.write(model.SerializeToString(deterministic=True))
