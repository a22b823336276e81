"""`textcls train-many`: a model for each group or file, as training each alone gives it."""

import csv
from pathlib import Path
from tempfile import TemporaryDirectory

import openpyxl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.command_line import fail, run, succeed, write_rows
from textcls.errors import InputError
from textcls.server.models.registry import resolve
from textcls_training.pipeline.many import file_name, jobs_of_files

QUICK = ("--epochs", "1", "--size", "small", "--quiet")


@pytest.fixture(scope="module")
def groups(sample_path: Path) -> dict[str, list[list[str]]]:
    """Some rows of the sample, in two groups."""
    with sample_path.open(encoding="utf-8", newline="") as file:
        rows = [[row["text"], row["label"]] for row in csv.DictReader(file)]
    return {"north/east": rows[:160:2], "south": rows[1:160:2]}


@pytest.fixture(scope="module")
def alone(groups: dict[str, list[list[str]]], tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The model of each group, trained by a command of its own."""
    folder, found = tmp_path_factory.mktemp("alone"), {}
    for number, (name, rows) in enumerate(groups.items()):
        data = write_rows(folder / f"{number}.csv", [["text", "label"], *rows])
        succeed("train", data, "-o", folder / "model.onnx", *QUICK)
        found[name] = (folder / "model.onnx").read_bytes()
    return found


def test_each_group_has_the_model_of_its_rows_alone_and_one_that_fails_stops_no_other(
    groups: dict[str, list[list[str]]], alone: dict[str, bytes], tmp_path: Path
) -> None:
    north, south = ([[name, *row] for row in rows] for name, rows in groups.items())
    together = [row for pair in zip(north, south, strict=True) for row in pair]
    rows = [["region", "text", "label"], *together, ["west", "alone here", "billing"]]
    data, output = write_rows(tmp_path / "all.csv", rows), tmp_path / "models"
    result = run("train-many", data, "--by", "region", "-o", output, "--workers", "2", *QUICK)
    assert result.exit_code == 3
    assert result.stderr == f"Error: 1 of 3 models could not be trained; the others are in {output}.\n"
    shown = [line.split() for line in result.stdout.splitlines()]
    assert [words[0] for words in shown] == ["group", "north/east", "south", "west"]
    assert "only the label 'billing'" in result.stdout
    assert {path.name for path in output.iterdir()} == {"north%2Feast.onnx", "south.onnx"}
    for name, model in alone.items():
        assert (output / file_name(name)).read_bytes() == model
    # What a group had before stays, and that is said.
    (output / "west.onnx").write_bytes(b"of an earlier run")
    result = run("train-many", write_rows(data, rows), "--by", "region", "-o", output, *QUICK[:-1])
    assert f"Note: {output} also holds 1 model that this run has not made: west.onnx.\n" in result.stderr
    assert (output / "west.onnx").read_bytes() == b"of an earlier run"


def test_each_file_of_a_pattern_has_a_model_of_its_name(
    groups: dict[str, list[list[str]]], alone: dict[str, bytes], tmp_path: Path
) -> None:
    for name, rows in zip(("a.csv", "b.data.csv"), groups.values(), strict=True):
        write_rows(tmp_path / name, [["text", "label"], *rows])
    said = succeed("train-many", tmp_path / "*.csv", "-o", tmp_path / "models", *QUICK)
    assert said.splitlines()[-1] == f"2 models -> {tmp_path / 'models'}"
    assert (tmp_path / "models" / "a.onnx").read_bytes() == alone["north/east"]
    assert (tmp_path / "models" / "b.data.onnx").read_bytes() == alone["south"]


def test_a_row_without_a_group_is_told_before_any_training(tmp_path: Path) -> None:
    data = write_rows(tmp_path / "all.csv", [["text", "label", "region"], ["a", "x", "north"], ["b", "y", ""]])
    said = fail(3, "train-many", data, "--by", "region", "-o", tmp_path / "models", *QUICK)
    assert "line 3: column 'region', by which models are told apart, has no value" in said
    assert not (tmp_path / "models").exists()


def test_a_group_that_is_a_formula_without_a_result_is_no_group_without_a_name(tmp_path: Path) -> None:
    book = openpyxl.Workbook()
    for row in (["text", "label", "region"], ["a", "x", "north"], ["b", "y", "=A1"]):
        book.worksheets[0].append(row)
    book.save(tmp_path / "all.xlsx")
    said = fail(3, "train-many", tmp_path / "all.xlsx", "--by", "region", "-o", tmp_path / "models", *QUICK)
    assert "row 3: column 'region' holds a formula" in said


def test_a_column_that_is_not_there_is_told(tmp_path: Path) -> None:
    data = write_rows(tmp_path / "all.csv", [["text", "label"], ["a", "x"], ["b", "y"]])
    assert "'region'" in fail(3, "train-many", data, "--by", "region", "-o", tmp_path / "models", *QUICK)


def test_standard_input_has_no_name_for_a_model(tmp_path: Path) -> None:
    assert "add --by" in fail(2, "train-many", "-", "-o", tmp_path / "models", *QUICK)


def test_two_files_of_one_name_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"would both be called x\.onnx"):
        jobs_of_files([tmp_path / "a" / "x.csv", tmp_path / "b" / "x.csv"], tmp_path)


@given(st.lists(st.text(min_size=1, max_size=20), unique=True, min_size=2, max_size=5))
def test_groups_have_names_of_their_own_that_stay_in_their_folder(names: list[str]) -> None:
    files = [file_name(name) for name in names]
    assert len(set(files)) == len(names)
    assert all("/" not in name and "\0" not in name and not name.startswith(".") for name in files)
    with TemporaryDirectory() as folder:
        for name in files:
            (Path(folder) / name).touch()
        assert {f"{source.name}.onnx" for source in resolve([folder])} == set(files)


def test_models_of_files_of_any_name_are_served(tmp_path: Path) -> None:
    names = ["tickets (1)", "R&D", "\u0939\u093f\u0928\u094d\u0926\u0940", "v1@2 x", "a%"]
    for job in jobs_of_files([tmp_path / f"{name}.csv" for name in names], tmp_path):
        job.output.touch()
    called = {"tickets %281%29", "R%26D", names[2], "v1%402 x", "a%25"}
    assert {source.name for source in resolve([str(tmp_path)])} == called


def test_names_that_are_too_long_for_a_file_are_cut_and_stay_apart() -> None:
    names = [file_name("\u00e9\n" * 200 + end) for end in ("", "x", "y")]
    assert len({*names, file_name("\u00e9\n" * 199)}) == 4
    assert all(len(name.encode()) <= 255 and name.startswith("\u00e9%0A") for name in names)


def test_rows_of_no_group_are_skipped_if_asked_for(groups: dict[str, list[list[str]]], tmp_path: Path) -> None:
    rows = [["", "whose is it", "billing"], *(["north", *row] for row in next(iter(groups.values())))]
    data = write_rows(tmp_path / "all.csv", [["region", "text", "label"], *rows])
    asked = ("train-many", data, "--by", "region", "-o", tmp_path / "models", *QUICK)
    said = fail(3, *asked)
    assert "line 2: column 'region', by which models are told apart, has no value; fill it in" in said
    result = run(*asked, "--on-error", "skip")
    assert result.exit_code == 0
    assert "Skipped 1 row that cannot be used: " in result.stderr
    assert [path.name for path in (tmp_path / "models").iterdir()] == ["north.onnx"]
    none = write_rows(tmp_path / "none.csv", [["region", "text", "label"], ["", "a", "x"], ["", "b", "y"]])
    said = fail(3, "train-many", none, "--by", "region", "-o", tmp_path / "models", "--on-error", "skip", *QUICK)
    assert "No row has a value in column 'region'" in said


def test_a_file_is_no_place_for_models(tmp_path: Path) -> None:
    data = write_rows(tmp_path / "all.csv", [["text", "label", "region"], ["a", "x", "north"], ["b", "y", "north"]])
    said = fail(6, "train-many", data, "--by", "region", "-o", data, *QUICK)
    assert f"{data} is a file; name a folder for the models." in said
