"""`textcls pretrain`: what is written, what is printed, what is refused; and that a training can use it."""

import json
from pathlib import Path

import pytest

from tests.command_line import fail, succeed
from textcls import Classifier
from textcls_training.vectors.file import load


def test_the_same_texts_give_the_same_file_which_training_reads(sample_path: Path, tmp_path: Path) -> None:
    call: list[str | Path] = ["pretrain", sample_path, "--dim", "16", "--quiet", "--output"]
    lines = succeed(*call, tmp_path / "one.vectors").splitlines()
    assert lines[-1].endswith(f"Next: textcls train LABELLED --vectors {tmp_path / 'one.vectors'}")
    told = json.loads(succeed(*call, tmp_path / "two.vectors", "--json"))
    assert (tmp_path / "one.vectors").read_bytes() == (tmp_path / "two.vectors").read_bytes()
    found = load(tmp_path / "one.vectors")
    assert (len(found.words), found.dim) == (told["words"], told["dim"])
    assert found.about["source"] == f"{told['texts']:,} texts without labels"
    few = ("--dim", "8", "--epochs", "2", "--ngrams", "none", "--device", "cpu", "--quiet")
    succeed("train", sample_path, "--vectors", tmp_path / "one.vectors", *few, "--output", tmp_path / "m.onnx")
    assert Classifier.load(tmp_path / "m.onnx").predict("my card was charged twice").label


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        (("--clusters", "5"), 2, "clusters is an option of the objective mutual-information, not of cooccurrence"),
        (("--text-column", "body"), 3, "has no column 'body'"),
    ],
)
def test_what_makes_no_sense_is_refused_and_nothing_is_written(
    options: tuple[str, ...], code: int, said: str, sample_path: Path, tmp_path: Path
) -> None:
    assert said in fail(code, "pretrain", sample_path, *options, "--output", tmp_path / "d.vectors")
    assert not [*tmp_path.iterdir()]


def test_the_texts_are_not_overwritten(sample_path: Path) -> None:
    before = sample_path.read_bytes()
    fail(3, "pretrain", sample_path, "--output", sample_path)
    assert sample_path.read_bytes() == before
