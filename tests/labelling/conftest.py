"""Files of answers, which are closed in the end."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.labelling.files import Open
from textcls.labelling.answers import AnnotationsFile


@pytest.fixture
def opened() -> Iterator[Open]:
    """Open a file of answers."""
    files: list[AnnotationsFile] = []

    def one(path: Path, *, several: bool) -> AnnotationsFile:
        files.append(AnnotationsFile(path, several=several))
        return files[-1]

    yield one
    for file in files:
        file.close()
