"""Answers for spreadsheets: no field that came from outside is a formula there."""

import csv
import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.model_metadata import metadata_of, with_metadata
from textcls.cli import main

FORMULAS = ["=1+1", "+1+1", "-1+cmd|' /C calc'!A1", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "-", "=", "--1", "+49 30 123"]
PLAIN = ["hello", "'=1", " =1", "a=1", "-0.5", "+3", "-1e-05", "12", "[=]"]


def predict(model: Path, data: Path, output: Path, *options: str) -> tuple[int, str]:
    found = CliRunner().invoke(main, ["predict", str(model), str(data), "-o", str(output), *options])
    return found.exit_code, found.output


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "new.csv"
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([("text", "=note"), *((text, text) for text in (*FORMULAS, *PLAIN))])
    return path


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file, delimiter="\t" if path.suffix == ".tsv" else ","))


@pytest.mark.parametrize("kind", ["csv", "tsv"])
def test_fields_that_spreadsheets_take_for_formulas_get_an_apostrophe(
    model_path: Path, data: Path, tmp_path: Path, kind: str
) -> None:
    output = tmp_path / f"answers.{kind}"
    assert predict(model_path, data, output, "--escape-formulas", "--explain")[0] == 0
    found = rows(output)
    expected = [*(f"'{text}" for text in FORMULAS), *PLAIN]
    assert [row["text"] for row in found] == [row["'=note"] for row in found] == expected
    assert all(0 < float(row["score"]) <= 1 for row in found)
    # A list begins with a bracket, and holds the tokens as they are.
    assert json.loads(found[0]["explanation"])[0][0] == "="


def test_without_the_option_nothing_is_changed(model_path: Path, data: Path, tmp_path: Path) -> None:
    assert predict(model_path, data, tmp_path / "answers.csv")[0] == 0
    assert [row["=note"] for row in rows(tmp_path / "answers.csv")] == [*FORMULAS, *PLAIN]


def test_a_label_that_is_a_formula_is_escaped_too(model_path: Path, tmp_path: Path) -> None:
    labels = [f"={label}" for label in metadata_of(model_path)["labels"]]
    model = tmp_path / "odd.onnx"
    model.write_bytes(with_metadata(model_path, {**metadata_of(model_path), "labels": labels}))
    (tmp_path / "new.csv").write_text("text\nmy card was charged twice\n")
    assert predict(model, tmp_path / "new.csv", tmp_path / "answers.csv", "--escape-formulas")[0] == 0
    assert rows(tmp_path / "answers.csv")[0]["predicted_label"] == "'=billing"


@pytest.mark.parametrize("kind", ["jsonl", "parquet"])
def test_formats_without_formulas_refuse_the_option(model_path: Path, data: Path, tmp_path: Path, kind: str) -> None:
    output = tmp_path / f"answers.{kind}"
    status, said = predict(model_path, data, output, "--escape-formulas")
    assert status == 2
    assert f"{kind} has no formulas, so leave it out" in said
    assert not output.exists()
