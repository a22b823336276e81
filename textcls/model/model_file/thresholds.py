"""The thresholds of a saved model, as `textcls evaluate --store` writes them: its metadata, and nothing else."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from textcls._util.atomic_write import atomic_write
from textcls.errors import ConfigError
from textcls.model.artifact import ModelInfo, read_file
from textcls.model.model_file import onnx_file
from textcls.model.prediction import checked_threshold


def store_threshold(path: Path, threshold: float | None) -> None:
    """Write the score below which the model at `path` abstains into its file, which is replaced as a whole.

    Raises:
        ConfigError: the threshold is no probability.
        ArtifactError: there is no model, or it is damaged.
        SurroundingsError: the file cannot be replaced.
    """
    threshold = None if threshold is None else checked_threshold(threshold)
    _rewrite(path, lambda info: replace(info, threshold=threshold))


def store_thresholds(path: Path, thresholds: Sequence[float]) -> None:
    """Write the probabilities from which on the model at `path` assigns its labels into its file.

    Args:
        path: a model that may give several labels; the file is replaced as a whole.
        thresholds: of each label, in the order of the model.

    Raises:
        ConfigError: one is no probability, or there is not one a label.
        ArtifactError: there is no model, or it is damaged.
        SurroundingsError: the file cannot be replaced.
    """
    checked = tuple(map(checked_threshold, thresholds))

    def changed(info: ModelInfo) -> ModelInfo:
        if not info.several or len(checked) != len(info.labels):
            labels = f"{len(info.labels)} labels a text may have" if info.several else "one label a text"
            raise ConfigError(f"{path} has {labels}, and {len(checked)} thresholds were given.")
        # What is said of how they were chosen is true no longer.
        training = {name: value for name, value in info.training.items() if name != "threshold_rows"}
        return replace(info, thresholds=checked, training=training)

    _rewrite(path, changed)


def _rewrite(path: Path, change: Callable[[ModelInfo], ModelInfo]) -> None:
    """Change what the file at `path` says of itself."""
    data = read_file(path)
    info = ModelInfo.from_metadata(onnx_file.metadata(data, path), path)
    content = onnx_file.exchanged(data, change(info), path)
    with atomic_write(path) as file:
        file.write(content)
