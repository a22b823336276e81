"""`textcls train --unlabelled`: what is read and refused, and what is printed of it."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.command_line import fail, read_rows, run, succeed, write_rows
from textcls import Classifier

FEW = ("--dim", "8", "--epochs", "2", "--ngrams", "none", "--device", "cpu", "--label-names", "none")


@pytest.fixture
def files(tmp_path: Path, sample_path: Path) -> tuple[Path, Path]:
    """Labelled rows, and unlabelled ones with right answers and a copy of a labelled row."""
    rows = [tuple(row.values()) for row in read_rows(sample_path)[:180]]
    names = sorted({label for _, label in rows})
    labelled = write_rows(tmp_path / "labelled.csv", [("text", "label"), *rows[:70]])
    answers = [(text, *("0.94" if name == label else "0.01" for name in names)) for text, label in rows[69:]]
    return labelled, write_rows(tmp_path / "more.csv", [("text", *(f"p_{name}" for name in names)), *answers])


def test_answers_from_elsewhere_are_learned_and_told(files: tuple[Path, Path], tmp_path: Path) -> None:
    labelled, more = files
    call = ("train", labelled, "--unlabelled", more, "--probabilities", "p_*", *FEW)
    lines = succeed(*call, "--output", tmp_path / "m.onnx", "--quiet").splitlines()
    assert lines[0] == "Trained on 70 rows, 7 labels, 2 epochs."
    assert (
        lines[1]
        == "Unlabelled: 111 texts, 1 left out as duplicates of labelled ones; 110 labelled by given probabilities."
    )
    assert lines[2].split() == ["on", "held-out", "rows", "accuracy", "95%", "interval", "cross-entropy"]
    assert [line.partition("  ")[0] for line in lines[3:5]] == ["labels alone", "student"]
    assert "nlabelled texts" in lines[5]
    told = json.loads(succeed(*call, "--output", tmp_path / "m.onnx", "--quiet", "--json"))["distillation"]
    assert (told["given"], told["copies"], told["used"], told["rows"]) == (111, 1, 110, 70)
    assert told["conclusion"] == lines[5]
    assert [score["name"] for score in told["scores"]] == ["labels alone", "student"]
    used = Classifier.load(tmp_path / "m.onnx").info.training.get("distillation", {"weight": 0})
    assert used["weight"] == told["weight"]


def test_labelled_rows_that_were_answered_as_well_judge_who_has_answered(
    files: tuple[Path, Path], tmp_path: Path
) -> None:
    labelled, more = files
    rows = read_rows(labelled)
    names = sorted({row["label"] for row in rows})
    answers = [(row["text"], *(str(float(name == row["label"])) for name in names)) for row in rows]
    answered = write_rows(tmp_path / "answered.csv", [("text", *(f"p_{name}" for name in names)), *answers])
    call = ("train", labelled, "--unlabelled", more, "--unlabelled", answered, "--probabilities", "p_*", *FEW)
    lines = succeed(*call, "--output", tmp_path / "m.onnx", "--quiet").splitlines()
    assert "181 texts, 71 left out as duplicates of labelled ones; 110 labelled" in lines[1]
    assert [line.partition("  ")[0] for line in lines[3:6]] == ["teacher", "labels alone", "student"]
    assert lines[3].split()[1] == "100.00%"


def test_inspect_says_who_has_taught_a_model(files: tuple[Path, Path], tmp_path: Path) -> None:
    labelled, more = files
    answers = ("--unlabelled", more, "--probabilities", "p_*", "--unlabelled-weight", "0.5")
    succeed("train", labelled, *answers, *FEW, "--output", tmp_path / "m.onnx", "--quiet")
    words = " ".join(succeed("inspect", tmp_path / "m.onnx").split())
    assert "taught by given probabilities, who answered 110 unlabelled texts, each of weight 0.5 held out" in words
    succeed("train", labelled, *FEW, "--output", tmp_path / "m.onnx", "--quiet")
    assert "taught by" not in succeed("inspect", tmp_path / "m.onnx")


def test_without_unlabelled_texts_nothing_is_told_of_them(files: tuple[Path, Path], tmp_path: Path) -> None:
    out = succeed("train", files[0], *FEW, "--output", tmp_path / "m.onnx", "--quiet", "--json")
    assert json.loads(out)["distillation"] is None
    assert "distillation" not in Classifier.load(tmp_path / "m.onnx").info.training


def test_what_is_told_reaches_the_training(files: tuple[Path, Path], train_call: dict[str, Any]) -> None:
    labelled, more = files
    options = ("--unlabelled-rows", "50", "--unlabelled-weight", "0.5", "--teacher", "some/model")
    fail(3, "train", labelled, "--unlabelled", more, *options, "--quiet")
    assert train_call["config"].teacher == "some/model"
    assert train_call["config"].unlabelled_weight == 0.5
    found = train_call["unlabelled"]
    assert (len(found.texts), found.given, found.copies, found.probability_UC) == (50, 111, 1, None)


def test_copies_of_validation_rows_are_left_out(files: tuple[Path, Path], train_call: dict[str, Any]) -> None:
    labelled, more = files
    fail(3, "train", labelled, "--unlabelled", more, "--unlabelled", labelled, "--valid", labelled, "--quiet")
    assert (train_call["unlabelled"].given, train_call["unlabelled"].copies) == (181, 71)


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        ("--teacher x", 2, "--teacher needs --unlabelled, the file of the texts it applies to."),
        ("--probabilities p_*", 2, "--probabilities needs --unlabelled, the file of the texts it applies to."),
        ("--unlabelled more.csv --teacher x --probabilities p_*", 2, "both label the unlabelled texts; use only one"),
        ("--unlabelled more.csv --probabilities p_", 2, "must hold one * for the label, as p_* does, not 'p_'."),
        ("--unlabelled more.csv --probabilities q_*", 3, "more.csv has no column 'q_account' for the label 'account'"),
        ("--unlabelled no.csv", 3, "no.csv"),
        ("--unlabelled empty.csv", 3, "empty.csv has no rows."),
        ("--unlabelled odd.csv", 3, "odd.csv has no column 'text'; it has 'words'."),
        ("--unlabelled labelled.csv", 3, "There are no unlabelled texts, only duplicates of labelled ones"),
    ],
)
def test_what_cannot_be_is_refused_in_a_sentence(
    options: str, code: int, said: str, files: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(files[0].parent)
    Path("empty.csv").write_text("text\n")
    Path("odd.csv").write_text("words\na\n")
    assert said in fail(code, "train", "labelled.csv", *options.split(), "--quiet")
    assert not [*Path().glob("*.onnx")]


def test_the_model_is_never_written_over_unlabelled_texts(files: tuple[Path, Path]) -> None:
    labelled, more = files
    before = more.read_bytes()
    fail(3, "train", labelled, "--unlabelled", more, "--output", more)
    assert more.read_bytes() == before


def test_rows_that_cannot_be_used_are_skipped_on_request(files: tuple[Path, Path], train_call: dict[str, Any]) -> None:
    labelled, more = files
    with more.open("a") as file:
        file.write("odd,1,1,1,1,1,1,1\n")
    call = ("train", labelled, "--unlabelled", more, "--probabilities", "p_*")
    assert "the probabilities in 'p_account' to 'p_technical' add up to 7 and not to 1" in fail(3, *call)
    result = run(*call, "--on-error", "skip", "--quiet")
    assert "Skipped 1 row that cannot be used" in result.stderr
    assert train_call["unlabelled"].given == 111
