"""`textcls teach`: examples from a file or the command line, taken back, and refused in a sentence."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

import textcls.cli.teach as command
from tests.command_line import fail, run, succeed, write_rows
from textcls import Classifier
from textcls.model.model_file.thresholds import store_threshold

DRAGON, ROOF = "the dragon burnt our castle", "a dragon sat on the roof"


@pytest.fixture
def model(prototypes_path: Path, tmp_path: Path) -> Path:
    """A copy of the small model of prototypes, which may be written to."""
    return Path(shutil.copy(prototypes_path, tmp_path / "tickets.onnx"))


def test_a_label_is_taught_by_a_file_and_taken_back(model: Path, tmp_path: Path) -> None:
    before = model.read_bytes()
    examples = write_rows(tmp_path / "dragons.csv", [("text",), (DRAGON,), (ROOF,)])
    said = succeed("teach", model, "--label", "dragons", "--examples", examples)
    assert "dragons: new, 2 examples." in said
    assert "knows 8 labels" in said
    assert "textcls evaluate" in said
    assert Classifier.load(model).predict(DRAGON).label == "dragons"
    assert "dragons: no longer there." in succeed("teach", model, "--take-back", "dragons")
    assert model.read_bytes() == before


def test_rows_say_their_labels_where_none_is_named(model: Path, tmp_path: Path) -> None:
    rows = [("text", "label"), (DRAGON, "dragons"), ("my coin is for billing", "billing"), (ROOF, "dragons")]
    said = json.loads(succeed("teach", model, "--examples", write_rows(tmp_path / "new.csv", rows), "--json"))
    assert [(one["label"], one["new"], one["examples"]) for one in said["taught"]] == [
        ("dragons", True, 2),
        ("billing", False, 1),
    ]
    assert said["labels"][-1] == "dragons"


def test_an_example_may_stand_on_the_command_line_and_the_model_elsewhere(model: Path, tmp_path: Path) -> None:
    before, other = model.read_bytes(), tmp_path / "other.onnx"
    succeed("teach", model, "--label", "dragons", "--example", DRAGON, "--output", other)
    assert model.read_bytes() == before
    assert Classifier.load(other).labels[-1] == "dragons"


def test_inspect_and_explain_tell_of_what_was_taught(model: Path) -> None:
    succeed("teach", model, "--label", "dragons", "--example", DRAGON, "--example", ROOF)
    told = succeed("inspect", model)
    assert "dragons (2 examples)" in told
    assert "not calibrated" in told
    why = succeed("explain", model, "a dragon on the roof")
    assert f"Nearest to dragons: example 2, {ROOF} (" in why


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ([], "Nothing to teach"),
        (["--example", "x"], "--example needs --label"),
        (["--take-back", "x", "--label", "y"], "--take-back forgets"),
        (["--take-back", "billing"], "comes from training and was never taught"),
        (["--label", "x", "--examples", "missing.csv"], "missing.csv"),
        (["--label", "x", "--example", " "], "contains no word or symbol"),
    ],
)
def test_what_makes_no_sense_is_refused_and_the_model_stays(model: Path, options: list[str], said: str) -> None:
    before = model.read_bytes()
    result_code = {
        "missing.csv": 3,
        "comes from training and was never taught": 3,
        "contains no word or symbol": 3,
    }.get(said, 2)
    assert said in fail(result_code, "teach", model, *options)
    assert model.read_bytes() == before


def test_a_model_of_linear_labels_is_refused_with_the_way_to_one_that_can_be_taught(model_path: Path) -> None:
    assert "--head prototypes" in fail(2, "teach", model_path, "--label", "x", "--example", "y")


def test_examples_that_say_nothing_are_rows_that_cannot_be_used(model: Path, tmp_path: Path) -> None:
    rows = write_rows(tmp_path / "rows.csv", [["text"], ["zebras eat grass"], [" "], ["a zebra in a zoo"]])
    before = model.read_bytes()
    asked = ("teach", model, "--label", " animals ", "--examples", rows)
    assert "line 3: the example ' ' contains no word or symbol; remove it" in fail(3, *asked)
    assert model.read_bytes() == before
    result = run(*asked, "--on-error", "skip")
    assert result.exit_code == 0
    assert "Skipped 1 row" in result.stderr
    assert Classifier.load(model).predict("zebras eat grass").label == "animals"


def test_a_label_of_spaces_is_none(model: Path) -> None:
    assert "The label '' is empty" in fail(3, "teach", model, "--label", "  ", "--example", "zebras")


def test_what_others_have_taught_meanwhile_is_not_lost(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    taught: Any = vars(command)["teach"]

    def and_another(*given: Any) -> Any:
        monkeypatch.setattr(command, "teach", taught)
        succeed("teach", model, "--label", "animals", "--example", "zebra crossing")
        return taught(*given)

    monkeypatch.setattr(command, "teach", and_another)
    said = fail(4, "teach", model, "--label", "plants", "--example", "an oak")
    assert "was replaced since it was read, and its content would be lost: give the command again" in said
    assert {"animals", "plants"} & {*Classifier.load(model).labels} == {"animals"}


def test_a_version_of_a_registry_is_not_taught_and_an_old_threshold_is_told(model: Path, tmp_path: Path) -> None:
    store_threshold(model, 0.5)
    result = run("teach", model, "--label", "animals", "--example", "zebra crossing")
    assert "Note: The model abstains below 50.0%, which was chosen before it was taught" in result.stderr
    succeed("publish", model, tmp_path / "registry")
    version = tmp_path / "registry" / "1" / "model.onnx"
    card = version.with_name("README.md").read_text(encoding="utf-8")
    assert "Taught after its training, and not calibrated: returns (5 examples), animals (1 example)." in card
    said = fail(4, "teach", version, "--label", "plants", "--example", "an oak")
    assert "is a version of a registry, which never changes" in said
