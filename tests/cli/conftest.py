"""What tests of several commands share."""

from pathlib import Path
from typing import Any

import pytest

import textcls_training.pipeline.training
from tests.command_line import write_rows
from textcls import InputError
from textcls_training.config.settings import TrainConfig
from textcls_training.data.labelled_texts import LabelledTexts

# Awkward for tables and terminals.
TEXTS = (
    "My card was charged TWICE!!",
    "",
    "where is my parcel, ordered \u201c3 weeks\u201d ago \U0001f621",
    "two\nlines, one comma",
    "\u6ce8\u6587\u306e\u30ad\u30e3\u30f3\u30bb\u30eb",
    "the lamp keeps flickering " * 30,
    "No puedo iniciar sesi\u00f3n",
)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """A table whose columns stand in an odd order, with rows of all lengths."""
    rows = [(f"id{i}", text, f"note {i}, 'quoted'") for i, text in enumerate(TEXTS)]
    return write_rows(tmp_path / "new.csv", [("id", "text", "note"), *rows])


@pytest.fixture
def train_call(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What training was called with, which then ends with the exit code 3 in the place of training."""
    found: dict[str, Any] = {}

    def train(
        source: LabelledTexts, output: Path, config: TrainConfig, *, valid: LabelledTexts | None, **others: object
    ) -> None:
        found.update(source=source, output=output, config=config, valid=valid, **others)
        raise InputError("stopped.")

    monkeypatch.setattr(textcls_training.pipeline.training, "train", train)
    return found
