"""All commands: help, wrong calls, models and tables that cannot be used."""

import os
import re
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

import textcls
from tests.command_line import fail, read_rows, run, succeed, write_rows
from tests.model_metadata import metadata_of, with_metadata
from textcls.cli import COMMANDS, main
from textcls.cli.settings import key_of

# What stands behind a command in its example, where that is not a file of tickets.
FIRST_WORD = {
    "demo": "",
    "vectors": "import",
    "clusters": "topics",
    "compare": "old.",
    "fetch": "s3:",
    "versions": "registry",
}


@pytest.mark.parametrize(
    "words",
    [
        "predict m.onnx t.csv -o", "report m.onnx t.csv -o", "train t.csv -o", "train t.csv --state", "tune t.csv -o",
        "web m.onnx -o", "teach m.onnx --label a --example b -o", "check t.csv --write", "explain m.onnx a --html",
    ],
)  # fmt: skip
def test_an_output_without_a_name_is_not_the_folder_where_one_is(
    words: str, model_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_rows(tmp_path / "t.csv", [("text", "label"), ("a b", "x"), ("c d", "y")])
    result = run(*words.replace("m.onnx", str(model_path)).split(), "")
    assert result.exit_code == 2
    assert "The name is empty; is a variable of the shell not set?" in result.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["t.csv"]


@pytest.mark.parametrize("words", ["train t.csv -o", "tune t.csv -o"])
def test_a_folder_is_no_output_of_what_writes_a_file_and_others_named_after_it(
    words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_rows(tmp_path / "t.csv", [("text", "label"), ("a b", "x"), ("c d", "y")])
    assert fail(6, *words.split(), ".") == "Error: . is a folder; name a file in it as the output.\n"


@pytest.mark.parametrize(
    ("words", "missing"),
    [
        ("train", "argument 'DATA...'"),
        ("explain m.onnx", "argument 'TEXT'"),
        ("web m.onnx", "option '-o' / '--output'"),
    ],
)
def test_what_is_missing_is_named(words: str, missing: str, model_path: Path) -> None:
    words = words.replace("m.onnx", str(model_path))
    result = run(*words.split())
    assert result.exit_code == 2
    assert f"Missing {missing}" in result.stderr


@pytest.mark.parametrize("call", ["--help", "train --help", ""])
def test_help_and_completion_do_not_wait_for_pytorch(tmp_path: Path, call: str) -> None:
    code = """
import sys
from textcls.cli import main
try:
    main(prog_name="textcls")
finally:
    slow = {"torch", "numba", "scipy", "sklearn", "onnx", "matplotlib"} | ({"numpy"} if len(sys.argv) < 3 else set())
    print(sorted(slow & {name.partition(".")[0] for name in sys.modules}), file=sys.stderr)
"""
    completing = {"_TEXTCLS_COMPLETE": "bash_complete", "COMP_WORDS": "textcls ", "COMP_CWORD": "1"}
    environment = os.environ | ({} if call else completing)
    done = subprocess.run(
        [sys.executable, "-c", code, *call.split()], cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0
    assert "train" in done.stdout
    assert done.stderr.splitlines()[-1] == "[]"


def test_where_no_row_can_be_used_what_would_mend_them_is_told(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_bytes("text,label\ncaf\u00e9,a\nth\u00e9,b\n".encode("cp1252"))
    assert "byte 0xe9 is not UTF-8. Add --encoding cp1252 if 'caf\u00e9' is meant" in fail(3, "check", path)


def test_json_of_a_pipe_may_have_keys_that_come_late_where_the_answers_go_to_a_file(
    model_path: Path, tmp_path: Path
) -> None:
    rows = '{"text": "a"}\n{"text": "b", "note": "x"}\n'
    done = CliRunner().invoke(main, ["predict", str(model_path), "-", "-o", str(tmp_path / "out.csv")], input=rows)
    assert done.exit_code == 0, done.stderr
    assert [row["note"] for row in read_rows(tmp_path / "out.csv")] == ["", "x"]


@pytest.mark.parametrize("call", ["check -", "evaluate {model} -"])
def test_standard_input_without_rows_is_reported_by_its_name(model_path: Path, call: str) -> None:
    arguments = call.format(model=model_path).split()
    result = CliRunner().invoke(main, arguments, input="text,label\n")
    assert (result.exit_code, result.stderr) == (3, "Error: standard input has no rows.\n")
    result = CliRunner().invoke(main, [*arguments, "--on-error", "skip"], input="text,label\na,\n")
    reason = "standard input, line 2: the label in column 'label' is empty"
    assert (result.exit_code, result.stderr) == (3, f"Error: standard input has no rows that can be used: {reason}.\n")


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_every_command_has_an_example_to_run(command: str) -> None:
    output = succeed(command, "--help")
    assert f"Example: textcls {command} {FIRST_WORD.get(command, 'tickets.')}".rstrip() in output
    assert succeed(command, "-h") == output


@pytest.mark.parametrize("command", ["train", "serve", "predict", "explain"])
def test_help_begins_with_at_most_fifteen_options_and_help_all_shows_each_once_in_a_group(command: str) -> None:
    def options(shown: str) -> list[str]:
        return re.findall(r"^  (?:-[a-z], )?(--[a-z-]+)", shown, re.MULTILINE)

    first, everything = succeed(command, "--help"), succeed(command, "--help-all")
    loaded = main.get_command(click.Context(main), command)
    assert loaded is not None
    known = {f"--{key_of(each)}" for each in loaded.params if isinstance(each, click.Option)} | {"--help"}
    others = ["--help-all", "--config", "--help"]
    assert options(everything.partition("\nOther:\n")[2]) == options(first.partition("\nOther:\n")[2]) == others
    assert sorted(options(everything)) == sorted(known)
    assert len(options(first)) - len(others) <= 15


def test_help_shows_the_way_to_a_first_model_and_every_command_with_a_sentence() -> None:
    output = succeed("--help")
    shown = [output.index(f"  textcls {command} tickets") for command in ("check", "train", "evaluate", "serve")]
    assert shown == sorted(shown)
    for command in COMMANDS:
        assert re.search(rf"^  {command} +[A-Z][^.]*\.$", output, re.MULTILINE)


def test_version_is_that_of_the_package() -> None:
    assert succeed("--version") == f"textcls, version {textcls.__version__}\n"


def test_a_command_that_does_not_exist_is_a_wrong_call() -> None:
    result = run("classify")
    assert result.exit_code == 2
    assert "No such command 'classify'" in result.stderr
    assert "No such command 'predct'. Did you mean 'predict'?" in run("predct").stderr


@pytest.mark.parametrize(
    "call",
    ["evaluate {model} new.csv", "predict {model} new.csv -o out.csv", "explain {model} hi", "inspect {model}"],
)
@pytest.mark.parametrize("content", [None, b"no model"], ids=["missing", "damaged"])
def test_a_model_that_cannot_be_used_is_named_and_nothing_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str, content: bytes | None
) -> None:
    monkeypatch.chdir(tmp_path)
    if content is not None:
        Path("model.onnx").write_bytes(content)
    Path("new.csv").write_text("text,label\na,x\n")
    assert "model.onnx" in fail(4, *call.format(model="model.onnx").split())
    assert {path.name for path in tmp_path.iterdir()} <= {"model.onnx", "new.csv"}


@pytest.mark.parametrize(
    "call", ["train {data} -o out.onnx", "evaluate {model} {data}", "predict {model} {data} -o out.csv"]
)
@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "There is no file data.csv."),
        ("", "data.csv is empty"),
        ("first,second\na,x\n", "data.csv has no column 'text'; it has 'first', 'second'."),
        ("text,label\na,x,z\n", "data.csv, line 2: 3 fields where the header has 2"),
        ('text,label\n"a,x\n', "data.csv, line 2: a quote in this row is never closed; check the quotes"),
        ('text,label\n"a"b,x\n', "data.csv, line 2: ',' expected after '\"'; check the quotes"),
        (b"text,label\na,x\nb\xe9,y\n", "data.csv, line 3: byte 0xe9 is not UTF-8; add --encoding cp1252 if 'b\u00e9'"),
        (b"\x1f\x8b\x08cut", "data.csv is cut off"),
    ],
    ids=["missing", "empty", "column", "ragged", "open quote", "inner quote", "bytes", "gzip"],
)
def test_a_table_that_cannot_be_used_is_named_and_nothing_is_written(
    model_path: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    call: str,
    content: str | bytes | None,
    words: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    if content is not None:
        Path("data.csv").write_bytes(content if isinstance(content, bytes) else content.encode())
    assert words in fail(3, *call.format(model=model_path, data="data.csv").split())
    assert {path.name for path in tmp_path.iterdir()} <= {"data.csv"}


def test_names_in_errors_do_not_steer_the_terminal(tmp_path: Path) -> None:
    said = fail(3, "train", str(tmp_path / "tick\x1b[2Jets.csv"))
    assert "tick" in said
    assert "\x1b" not in said


@pytest.mark.parametrize(
    ("kind", "command"),
    [
        ("one", "evaluate {model} {data}"),
        ("one", "explain {model} text"),
        ("one", "explain {model} text --counterfactual"),
        ("one", "inspect {model}"),
        ("one", "inspect {model} --evidence {data}"),
        ("one", "check {data}"),
        ("one", "compare {model} {model} {data}"),
        ("several", "evaluate {model} {data} --label-separator |"),
        ("several", "inspect {model}"),
        ("several", "compare {model} {model} {data} --label-separator |"),
    ],
)
def test_a_label_with_a_line_break_makes_no_line_of_its_own(
    model_path: Path, several_labels_path: Path, tmp_path: Path, kind: str, command: str
) -> None:
    original = several_labels_path if kind == "several" else model_path
    metadata = metadata_of(original)
    forged = metadata["labels"][0] = f"{metadata['labels'][0]}\nHeld out: 100 rows, all right"
    (tmp_path / "m.onnx").write_bytes(with_metadata(original, metadata))
    rows = [("my card was charged twice", forged), ("where is my parcel", metadata["labels"][1])] * 20
    data = write_rows(tmp_path / "data.csv", [("text", "label"), *rows])
    found = succeed(*command.format(model=tmp_path / "m.onnx", data=data).split())
    assert "Held out: 100 rows" in found
    assert not re.search("^ *Held out: 100", found, re.MULTILINE)
