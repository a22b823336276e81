"""Files that are read."""

from pathlib import Path

import pytest

from tests.data.tables import Write


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write(name: str, content: bytes | str) -> Path:
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write
