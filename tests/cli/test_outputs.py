"""What commands write: never over what they read, nor over each other, nor a model over a table."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from tests.command_line import fail, run, write_rows
from textcls.cli import COMMANDS, main
from textcls.cli.outputs import NamedPath, Output

ROWS = [("text", "label"), ("my card was charged", "billing"), ("where is my parcel", "shipping")]
# Paths that are folders, or that are both read and written.
OTHERS = {"state", "storage", "folder", "plots_folder", "from_state", "others_path"}


@pytest.fixture
def folder(tmp_path: Path, model_path: Path, prototypes_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder, with models, tables, weights, names, words and settings."""
    monkeypatch.chdir(tmp_path)
    for name in ("rows.csv", "held-out.csv"):
        write_rows(tmp_path / name, ROWS)
    (tmp_path / "weights.w").write_text('{"billing": 2}')
    (tmp_path / "names.n").write_text('{"billing": "money"}')
    (tmp_path / "words.txt").write_text("he, she\n")
    (tmp_path / "settings.toml").write_text("[train]\nepochs = 3\n")
    shutil.copy(model_path, tmp_path / "m.onnx")
    shutil.copy(prototypes_path, tmp_path / "p.onnx")
    return tmp_path


@pytest.mark.parametrize(
    "words",
    [
        "check rows.csv --labels --suspects rows.csv", "check rows.csv --valid held-out.csv --write held-out.csv",
        "check *.csv --write rows.csv", "teach p.onnx --label x --examples rows.csv -o rows.csv",
        "train rows.csv --config settings.toml -o settings.toml",
        "train rows.csv --valid names.n -o names.n",
        "clusters m.onnx rows.csv --names names.n --assign a.csv -o names.n", "lexicon m.onnx rows.csv -o rows.csv",
        "inspect m.onnx --evidence rows.csv --exchange words.txt --html words.txt", "report m.onnx rows.csv -o m.onnx",
        "explain m.onnx a --html m.onnx", "suggest m.onnx rows.csv -o rows.csv", "curve rows.csv --plot rows.csv",
        "annotate rows.csv --model m --labels a,b --labelled held-out.csv -o held-out.csv",
    ],
)  # fmt: skip
def test_no_command_writes_over_what_it_reads(words: str, folder: Path) -> None:
    before = {path: path.read_bytes() for path in folder.iterdir()}
    assert "is also the input; choose another name." in fail(3, *words.split())
    assert {path: path.read_bytes() for path in folder.iterdir()} == before


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("train rows.csv -o held-out.csv", "held-out.csv is the name of a table, and none is written there"),
        ("train rows.csv -o weights.json.gz", "weights.json.gz is the name of a table"),
        ("teach p.onnx --label x --example a -o held-out.csv", "held-out.csv is the name of a table"),
        ("clusters m.onnx rows.csv -o held-out.csv", "held-out.csv is the name of a table"),
        ("explain m.onnx a --html held-out.csv", "held-out.csv is the name of a table"),
        ("explain m.onnx a --html a.svg --plot a.svg", "--html and --plot need files of their own"),
        ("clusters m.onnx rows.csv --assign a.page -o ./a.page", "--output and --assign need files of their own"),
        ("check . --labels --suspects new.csv", "new.csv is in a folder that is read"),
    ],
)
def test_nothing_is_written_over_a_table_or_twice_to_one_place(words: str, said: str, folder: Path) -> None:
    before = sorted(folder.iterdir())
    assert said in fail(2, *words.split())
    assert sorted(folder.iterdir()) == before


def test_a_command_of_a_group_does_not_write_over_the_settings_of_its_group(folder: Path) -> None:
    before = (folder / "settings.toml").read_bytes()
    refused = run("vectors", "--config", "settings.toml", "import", "words.txt", "-o", "settings.toml")
    assert refused.exit_code == 3
    assert "is also the input; choose another name." in refused.stderr
    assert (folder / "settings.toml").read_bytes() == before


def test_the_answers_of_predict_do_not_replace_the_settings(folder: Path) -> None:
    before = (folder / "settings.toml").read_bytes()
    refused = run("predict", "m.onnx", "rows.csv", "--config", "settings.toml", "-o", "settings.toml")
    assert refused.exit_code == 3
    assert "is also the input; choose another name." in refused.stderr
    assert (folder / "settings.toml").read_bytes() == before


def test_a_model_does_not_replace_the_weights_of_its_labels(folder: Path) -> None:
    weights = folder / "weights"
    weights.write_text('{"a": 2}')
    assert "is also the input; choose another name." in fail(
        3, "train", "rows.csv", "--class-weight", weights, "-o", weights
    )
    assert weights.read_text() == '{"a": 2}'


def test_what_is_replaced_by_design_still_is_and_what_no_folder_reads_may_lie_in_it(folder: Path) -> None:
    (folder / "rows").mkdir()
    shutil.copy("rows.csv", folder / "rows" / "rows.csv")
    assert run("check", "rows", "--labels", "--suspects", "rows/new.csv").exit_code == 2
    assert "no rows" not in run("report", "m.onnx", "rows", "-o", "rows/report.html").stderr
    assert run("teach", "p.onnx", "--label", "x", "--example", "my card was charged", "-o", "p.onnx").exit_code == 0
    assert run("suggest", "rows.csv", "-n", "1", "-o", "held-out.csv").exit_code == 0


def commands(group: click.Group, context: click.Context) -> Iterator[click.Command]:
    """All commands, and those below them."""
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        yield command
        if isinstance(command, click.Group):
            yield from commands(command, context)


def test_every_option_that_names_a_file_to_write_is_an_output() -> None:
    with click.Context(main) as context:
        found = [*commands(main, context)]
    assert len(found) > len(COMMANDS)
    for command in found:
        for one in command.params:
            if isinstance(one, click.Option) and isinstance(one.type, NamedPath) and one.name not in OTHERS:
                writes = one.name in ("output", "html", "plot_path") or "rite " in (one.help or "")
                many = command.name in ("predict", "web", "train-many")  # These write folders, or to URLs.
                assert isinstance(one.type, Output) == (writes and not many), (command.name, one.name)
