"""Store thresholds in a saved model, as for `textcls evaluate --store`: only its metadata change."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

from textcls.errors import ConfigError
from textcls.model.artifact import HELD_OUT, ModelInfo, read_file
from textcls.model.model_file import onnx_file, rewriting
from textcls.model.prediction import checked_threshold


def store_threshold(path: Path, threshold: float | None, digest: str | None = None) -> None:
    """Write the score below which the model at `path` abstains into its file, which is replaced as a whole.

    Args:
        path: the file.
        threshold: the score; None to answer always.
        digest: the SHA-256 of the file that it was chosen for; None for any file.

    Raises:
        ConfigError: the threshold is not a probability.
        ArtifactError: there is no model, it is damaged or has changed, or is a version of a registry.
        SurroundingsError: the file cannot be replaced.
    """
    threshold = None if threshold is None else checked_threshold(threshold)
    _rewrite(path, lambda info: replace(info, threshold=threshold), digest)


def store_thresholds(path: Path, thresholds: Sequence[float], digest: str | None = None) -> None:
    """Write the probabilities from which the model at `path` assigns its labels into its file.

    Args:
        path: a model that may give several labels; the file is replaced as a whole.
        thresholds: the thresholds of each label, in the order of the model.
        digest: as for `store_threshold`.

    Raises:
        ConfigError: one is not a probability, or there is not one per label.
        ArtifactError: as for `store_threshold`.
        SurroundingsError: the file cannot be replaced.
    """
    checked = tuple(map(checked_threshold, thresholds))

    def changed(info: ModelInfo) -> ModelInfo:
        if not info.several or len(checked) != len(info.labels):
            labels = f"{len(info.labels)} labels a text may have" if info.several else "one label a text"
            raise ConfigError(f"{path} has {labels}, and {len(checked)} thresholds were given.")
        # The record of how they were chosen no longer applies.
        training = {name: value for name, value in info.training.items() if name != "threshold_rows"}
        # Nor do the labels assigned to held-out rows; their scores and lengths stay the same.
        if isinstance(found := training.get(HELD_OUT), dict) and checked != info.thresholds:
            sets = {"sets": [], "counts": [found.get("rows")]}
            training[HELD_OUT] = found | {"labels": None, "accuracy": None, "sets": sets}
        return replace(info, thresholds=checked, training=training)

    _rewrite(path, changed, digest)


def _rewrite(path: Path, change: Callable[[ModelInfo], ModelInfo], digest: str | None) -> None:
    """Change the metadata of the file at `path`."""
    rewriting.check_not_published(path)
    data = read_file(path) if digest is None else rewriting.content(path, digest)
    info = ModelInfo.from_metadata(onnx_file.metadata(data, path), path)
    rewriting.rewrite(path, onnx_file.exchanged(data, change(info), path), sha256(data).hexdigest())
