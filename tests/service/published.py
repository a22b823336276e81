"""A registry for tests of the service: versions of the small model, and what is promoted."""

from pathlib import Path

from tests.command_line import succeed
from tests.service.reloading import LABELS, change_metadata

# Each label answered as another one.
SHIFTED = [*LABELS[1:], LABELS[0]]


def publish(model_path: Path, registry: Path, *options: str, **changes: object) -> None:
    """Publish the small model with other metadata as the next version of tickets."""
    path = change_metadata(model_path, registry.with_suffix(".onnx"), **changes)
    succeed("publish", path, registry, "--name", "tickets", *options)


def versions(registry: Path, *options: str) -> None:
    """Change what is promoted."""
    succeed("versions", registry, *options)
