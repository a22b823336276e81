"""Files of answers, which are closed in the end."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.labelling.files import Open
from textcls.labelling.answers import AnswersFile


@pytest.fixture
def opened() -> Iterator[Open]:
    """Open a file of answers."""
    files: list[AnswersFile] = []

    def one(path: Path, *, several: bool) -> AnswersFile:
        files.append(AnswersFile(path, several=several))
        return files[-1]

    yield one
    for file in files:
        file.close()
