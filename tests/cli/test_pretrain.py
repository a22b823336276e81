"""`textcls pretrain`: what is written, what is printed, what is refused; and that a training can use it."""

import json
from pathlib import Path

import pytest

from tests.command_line import fail, succeed
from textcls import Classifier
from textcls_training.vectors.file import load


@pytest.mark.parametrize(
    "options", [(), ("--objective", "masked", "--mixing", "gmlp", "--epochs", "2", "--device", "cpu")]
)
def test_the_same_texts_give_the_same_file_which_training_reads(
    options: tuple[str, ...], sample_path: Path, tmp_path: Path
) -> None:
    call: list[str | Path] = ["pretrain", sample_path, "--dim", "16", *options, "--quiet", "--output"]
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


def test_masked_words_tell_of_perplexity_speed_gate_and_guesses(sample_path: Path, tmp_path: Path) -> None:
    call = ("pretrain", sample_path, "--objective", "masked", "--mixing", "gmlp", "--dim", "16", "--epochs", "1")
    output = ("--device", "cpu", "--quiet", "--output", tmp_path / "d.vectors")
    lines = succeed(*call, *output).splitlines()
    assert "tokens in" in lines[0]
    assert lines[0].endswith("a second.")
    assert "masked words, perplexity" in lines[1]
    assert lines[2].startswith("The gate of the mixing layer ended at 0.1")
    assert lines[3].split() == ["text,", "one", "word", "masked", "guesses"]
    told = json.loads(succeed(*call, *output, "--json"))
    assert told["objective"] == "masked"
    assert told["tokens_per_second"] > 0
    held_out = told["held_out"]
    assert held_out["perplexity"] > 1
    assert 0 <= held_out["accuracy"] <= 1
    guess = held_out["guesses"][0]
    assert f"[{guess['tokens'][guess['masked']]}]" in lines[4]
    assert len(guess["guesses"]) == 5


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        (("--mixing", "gmlp"), 2, "mixing is an option of the objective masked, not of cooccurrence"),
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
