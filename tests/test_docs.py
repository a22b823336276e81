"""The code of README and guides runs, their commands exist, and what is said of errors is what the table says."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import click
import pytest

from textcls import errors
from textcls.cli import COMMANDS, LazyGroup, main, settings
from textcls.server.inference.schemas import Result

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


# What engineers are shown the way through.
PARTS = ("textcls", "training", "kernels", "tests", "benchmarks", "scripts", "deploy", "docs", "examples")
DOCUMENTS = {"README.md": README} | {
    path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8") for path in sorted((ROOT / "docs").glob("*.md"))
}


def blocks(language: str, text: str = README) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


def commands(text: str = README) -> list[list[str]]:
    lines = "\n".join(blocks("console", text)).replace("\\\n", " ").splitlines()
    return [shlex.split(line[2:], comments=True) for line in lines if line.startswith("$ ")]


def all_calls() -> list[list[str]]:
    """Every call of the program in any document, behind a pipe or not."""
    calls = [words for text in DOCUMENTS.values() for words in commands(text) if "textcls" in words]
    return [words[words.index("textcls") :] for words in calls]


# Packages that guides show the way into and that nothing here needs; where they are missing, their code does not run.
NOT_OURS = ("pyspark", "dask", "datasets", "pandas")
# Its code asks a service: tests/service/test_calling.py has one.
CALLING = "docs/calling.md"
_END = "--- end of a block ---"
# The blocks of a document one after another in a process of its own, which need not import what all of them do.
_EACH = f"""
import json, os, sys
import textcls.evaluation, textcls_training.pipeline.training, textcls_training.fit.compiled.trainer
for folder, codes in json.load(sys.stdin).items():
    if child := os.fork():
        print(folder, os.waitpid(child, 0)[1], flush=True)
        continue
    os.chdir(folder)
    sys.stdout = open("said.txt", "w")
    for code in codes:
        exec(compile(code, "a block", "exec"), {{"__name__": "__main__"}})
        print({_END!r})
    sys.stdout.flush()
    os._exit(0)
"""


def test_the_python_code_runs(model_path: Path, prototypes_path: Path, tmp_path: Path) -> None:
    folders = os.pathsep.join(str(ROOT / folder) for folder in (".", "training", "kernels"))
    # The second is of executors of Spark, which would be those that the path finds.
    environment = {**os.environ, "PYTHONPATH": folders, "PYSPARK_PYTHON": sys.executable}
    documents = {name: _runnable(text) for name, text in DOCUMENTS.items() if name != CALLING}
    for name in documents:
        (tmp_path / name).mkdir(parents=True)
        shutil.copy(model_path, tmp_path / name / "tickets.onnx")
        shutil.copy(prototypes_path, tmp_path / name / "topics.onnx")
    done = subprocess.run(
        [sys.executable, "-c", _EACH], input=json.dumps(documents), cwd=tmp_path, env=environment, capture_output=True,
        text=True, check=False,
    )  # fmt: skip
    assert done.stdout.splitlines() == [f"{name} 0" for name in documents], done.stderr
    for name, codes in documents.items():
        *said, _ = (tmp_path / name / "said.txt").read_text("utf-8").split(_END)
        assert len(said) == len(codes), name
        assert all("charged" in one for one in said), name


def _runnable(text: str) -> list[str]:
    """The blocks of Python whose packages are here."""
    return [
        code
        for code in blocks("python", text)
        if not any(re.search(rf"(from|import) {one}\b", code) and find_spec(one) is None for one in NOT_OURS)
    ]


def test_the_script_that_retrains_exchanges_the_model_and_keeps_a_better_one(tmp_path: Path, model_path: Path) -> None:
    (script,) = blocks("sh", DOCUMENTS["docs/recipes.md"])
    (tmp_path / "retrain.sh").write_text(script)
    rows = (ROOT / "textcls" / "demo" / "support_tickets_test.csv").read_text("utf-8").splitlines()
    (tmp_path / "heldout.csv").write_text("\n".join(rows[:60]), "utf-8")
    (tmp_path / "tickets.csv").write_text("text,label\na,billing\nb,sales\n" + "c,sales\n" * 9, "utf-8")
    shutil.copy(model_path, tmp_path / "tickets.onnx")
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    run = {"cwd": tmp_path, "env": {**os.environ, "PATH": path}, "capture_output": True, "text": True}
    done = subprocess.run(["sh", "retrain.sh"], **run, check=False)  # type: ignore[call-overload]
    assert done.returncode == 1, done.stderr
    assert "kept: " in done.stderr
    assert (tmp_path / "tickets.onnx").read_bytes() == model_path.read_bytes()
    # Trained on the very rows that judge it, the new one is better.
    shutil.copy(tmp_path / "heldout.csv", tmp_path / "tickets.csv")
    done = subprocess.run(["sh", "retrain.sh"], **run, check=False)  # type: ignore[call-overload]
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("exchanged: ")
    assert (tmp_path / "before.onnx").read_bytes() == model_path.read_bytes()
    assert (tmp_path / "tickets.onnx").read_bytes() != model_path.read_bytes()


def test_the_json_is_json_with_the_fields_of_an_answer() -> None:
    (answer,) = blocks("json", DOCUMENTS["docs/serving.md"])
    (result,) = json.loads(answer)["results"]
    # Of one label a text nothing is assigned; support rows, columns and nodes are of models that have such;
    # the rest is asked for by an object.
    asked = {"evidence", "unit", "units", "parts", "counterfactual"}
    assert set(result) == set(Result.model_fields) - {"assigned", "support", "columns", "node"} - asked
    Result.model_validate(result)


@pytest.mark.parametrize("words", all_calls(), ids=" ".join)
def test_a_command_line_is_understood(words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    if "--config" in words:
        Path(words[words.index("--config") + 1]).touch()
    group = main
    assert isinstance(group, LazyGroup)
    context = group.make_context("textcls", list(words[1:]))
    command = group.get_command(context, words[1])
    assert command is not None
    command.make_context(words[1], words[2:], parent=context)


def test_every_command_is_shown() -> None:
    assert {words[1] for words in commands(DOCUMENTS["docs/commands.md"])} == set(COMMANDS)


def test_the_settings_that_are_shown_are_understood(tmp_path: Path) -> None:
    (settings_file,) = blocks("toml", DOCUMENTS["docs/training.md"])
    (tmp_path / "textcls.toml").write_text(settings_file)
    group = main
    assert isinstance(group, LazyGroup)
    for name in ("train", "predict"):
        command = group.get_command(click.Context(group), name)
        assert command is not None
        assert settings.defaults(tmp_path / "textcls.toml", click.Context(command), list(COMMANDS))


def test_every_variable_that_is_told_exists() -> None:
    group = main
    assert isinstance(group, LazyGroup)
    found = [group.get_command(click.Context(group), name) for name in COMMANDS]
    known = {option.envvar for command in found if command for option in command.params}
    told = set(re.findall(r"(?<!_)TEXTCLS_[A-Z_]*[A-Z]", DOCUMENTS["docs/training.md"]))
    assert len(told) >= 4
    assert told <= known


def test_every_option_that_a_guide_tells_of_exists() -> None:
    group = main
    assert isinstance(group, LazyGroup)
    found = [group.get_command(click.Context(group), name) for name in COMMANDS]
    known = {word for command in found if command for option in command.params for word in option.opts}
    for name in ("docs/training.md", "docs/abstaining.md"):
        assert set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", DOCUMENTS[name])) - {"--help"} <= known, name


def test_every_make_target_exists() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = [words[1] for words in commands(DOCUMENTS["docs/install.md"]) if words[0] == "make"]
    assert targets
    assert all(re.search(rf"^{target}:", makefile, re.MULTILINE) for target in targets)


def test_the_exit_codes_are_those_of_the_table() -> None:
    kinds = (errors.ConfigError, errors.InputError, errors.ArtifactError, errors.MissingExtraError)
    codes = [errors.exit_code(kind("")) for kind in kinds[:3]] + [
        errors.exit_code(errors.MissingExtraError("a", "b", "c", "d"))
    ]
    text = DOCUMENTS["docs/commands.md"].split("## Exit codes")[1]
    assert [int(code) for code in re.findall(r"^\| (\d+) ", text, re.MULTILINE)] == [
        0,
        1,  # of drift --fail-above, as of any check that a script asks for
        *codes,
        errors.exit_code(errors.SurroundingsError("")),
        130,
        141,
    ]


@pytest.mark.parametrize("name", DOCUMENTS)
def test_every_local_link_leads_somewhere(name: str) -> None:
    links = re.findall(r"\]\((?!http)([^)#]+)", DOCUMENTS[name])
    assert [link for link in links if not ((ROOT / name).parent / link).exists()] == []


@pytest.mark.parametrize("name", ["ARCHITECTURE.md", "CONTRIBUTING.md"])
def test_every_file_that_is_named_to_engineers_exists(name: str) -> None:
    files = [path.relative_to(ROOT).as_posix() for part in PARTS for path in (ROOT / part).rglob("*")]
    files += [path.name for path in ROOT.iterdir()]
    named = re.findall(r"`([\w./-]+(?:/|\.(?:py|md|txt|csv)))`", (ROOT / name).read_text(encoding="utf-8"))
    assert len(named) > 5
    missing = [each for each in named if not any(f"/{path}/".endswith(f"/{each.strip('/')}/") for path in files)]
    assert missing == []


@pytest.mark.parametrize("name", [name for name in DOCUMENTS if name.startswith("docs/")])
def test_a_guide_is_read_in_ten_minutes(name: str) -> None:
    assert len(DOCUMENTS[name].split()) <= 1500, "split it, or leave something out"


def test_the_readme_has_at_most_900_words() -> None:
    assert len([word for word in README.split() if re.search(r"\w", word)]) <= 900


def test_the_readme_leads_to_every_guide() -> None:
    assert [name for name in DOCUMENTS if name != "README.md" and f"]({name})" not in README] == []


def test_the_tables_of_tokens_have_the_heads_of_the_program() -> None:
    heads = {"token", "attention", "evidence", "difference", "billing", "returns", "cancellation"}
    heads |= {"low", "high", "95%"}
    for name, text in DOCUMENTS.items():
        shown = [line.split() for block in blocks("console", text) for line in block.splitlines()]
        tables = [words for words in shown if words[:2] == ["token", "attention"]]
        assert bool(tables) == (name in ("README.md", "docs/explanations.md", "docs/reasons.md")), name
        assert all(set(words) <= heads for words in tables)


@pytest.mark.parametrize("name", DOCUMENTS)
def test_the_numbers_of_every_table_of_tokens_add_up(name: str) -> None:
    """Of evidence, differences and logits alike: what a document shows has to be what the program would print."""
    for block in blocks("console", DOCUMENTS[name]):
        for table in re.findall(r"^token +attention.*?^= logit[^\n]*", block, re.MULTILINE | re.DOTALL):
            if " 95% " in table:
                # Intervals do not add up; the same numbers stand in the table without.
                continue
            *parts, total = ([float(x) for x in re.findall(r"[+-]\d+\.\d{3}", line)] for line in table.splitlines()[1:])
            assert len(total) == 3
            for column, whole in enumerate(total):
                assert sum(part[column] for part in parts) == pytest.approx(whole, abs=0.005)
