"""What can be a label is told when its row is read, and not when the model is written."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import textcls
from textcls import InputError
from textcls.cli import main
from textcls.model.labels import LABEL_CHARACTERS, MOST_LABELS, labels_problem
from textcls_training.config.settings import TrainConfig
from textcls_training.data.labelled_texts import LabelledTexts
from textcls_training.pipeline.training import train as train_on

ROWS = [(f"{word} please {i}", label) for i in range(12) for word, label in (("refund", "a"), ("parcel", "b"))]
TEXTS, LABELS = (list(values) for values in zip(*ROWS, strict=True))
SMALL: dict[str, Any] = {"epochs": 1, "dim": 2, "ngrams": (), "device": "cpu"}
OPTIONS = ["--epochs", "1", "--dim", "2", "--ngrams", "3", "--device", "cpu"]
Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write rows as JSON lines, the sixth of which has another label and text."""

    def rows(label: object = "a", text: str = "odd") -> Path:
        path = tmp_path / "rows.jsonl"
        found = [{"text": text, "label": label} if i == 5 else {"text": t, "label": n} for i, (t, n) in enumerate(ROWS)]
        path.write_text("".join(json.dumps(row) + "\n" for row in found))
        return path

    return rows


def run(*arguments: str | Path) -> tuple[int, str]:
    found = CliRunner().invoke(main, list(map(str, arguments)))
    return found.exit_code, found.output


ODD = [("\ud83d", "holds \\ud83d, half a character that has no UTF-8 form"), ("x" * 1001, "has 1,001 characters")]


@pytest.mark.parametrize(("label", "said"), ODD, ids=["surrogate", "long"])
@pytest.mark.parametrize("command", ["train", "check", "evaluate"])
def test_a_label_that_no_model_can_hold_is_refused_when_its_row_is_read(
    write: Write, tmp_path: Path, model_path: Path, label: str, said: str, command: str
) -> None:
    data, output = write(label), tmp_path / "m.onnx"
    by_command: dict[str, list[str | Path]] = {
        "train": ["train", data, "-o", output, *OPTIONS],
        "check": ["check", data, "--on-error", "fail"],
        "evaluate": ["evaluate", model_path, data],
    }
    arguments = by_command[command]
    status, told = run(*arguments)
    assert status == 3
    assert f"{data}, line 6: the label in column 'label' {said}" in told
    assert told.endswith("; correct it or remove the row, or leave it out with --on-error skip.\n")
    assert not output.exists()


def test_rows_with_such_labels_can_be_skipped(write: Write, tmp_path: Path) -> None:
    output = tmp_path / "m.onnx"
    status, told = run("train", write("\ud83d"), "-o", output, "--on-error", "skip", *OPTIONS)
    assert status == 0, told
    assert "Skipped 1 row that cannot be used" in told
    assert textcls.Classifier.load(output).labels == ("a", "b")


def test_a_text_may_hold_half_a_character_and_is_trained_on_and_answered(write: Write, tmp_path: Path) -> None:
    data, output = write("a", "odd \ud83d text"), tmp_path / "m.onnx"
    assert run("check", data)[0] == 0
    status, told = run("train", data, "-o", output, *OPTIONS)
    assert status == 0, told
    assert textcls.Classifier.load(output).predict("odd \ud83d text").label in ("a", "b")


@pytest.mark.parametrize("label", ["", *(label for label, _ in ODD)])
def test_in_python_such_labels_are_refused_before_the_work(tmp_path: Path, label: str) -> None:
    labels = [*LABELS[:7], label, *LABELS[8:]]
    with pytest.raises(InputError, match=r"^Labels: number 7 (is empty|holds|has 1,001 characters)"):
        textcls.train(TEXTS, labels, tmp_path / "m.onnx", **SMALL)
    with pytest.raises(InputError, match=r"^The label of training row 7 "):
        train_on(LabelledTexts(texts=TEXTS, labels=labels), tmp_path / "m.onnx", TrainConfig(device="cpu"))


def test_a_column_whose_name_no_model_can_hold_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text('{"text": "a", "\\udcff": "b"}\n' * 4)
    status, told = run("train", path, "-o", tmp_path / "m.onnx", "--label-column", "\udcff")
    assert status == 3
    assert "its name has no UTF-8 form" in told


def test_labels_are_bounded_in_number_and_length() -> None:
    assert labels_problem([str(i) for i in range(MOST_LABELS)]) is None
    assert (
        labels_problem([str(i) for i in range(MOST_LABELS + 1)]) == "there are 100,001 labels; the maximum is 100,000"
    )
    long = [f"{i:0{LABEL_CHARACTERS}}" for i in range(10_001)]
    assert labels_problem(long[:100]) is None
    assert labels_problem(long) == "the labels have more than 10,000,000 characters together"
