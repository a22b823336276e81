"""Models to publish, and a registry to publish them to."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.service.reloading import change_metadata

Model = Callable[..., Path]


@pytest.fixture
def model(model_path: Path, tmp_path: Path) -> Model:
    """Write the small model under a name, with an example that tells it from others, and other metadata."""
    return lambda name, **changes: change_metadata(model_path, tmp_path / name, **{"example": name, **changes})


@pytest.fixture
def registry(tmp_path: Path) -> Path:
    """Where there is no registry yet."""
    return tmp_path / "registry"
