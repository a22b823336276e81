"""The README's code runs, its commands exist, and what it says of errors is what the table says."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from textcls import errors
from textcls.cli import COMMANDS, LazyGroup, main

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", README, re.MULTILINE | re.DOTALL)


def commands() -> list[list[str]]:
    lines = "\n".join(blocks("console")).replace("\\\n", " ").splitlines()
    return [shlex.split(line[2:], comments=True) for line in lines if line.startswith("$ ")]


def test_the_python_code_runs(model_path: Path, tmp_path: Path) -> None:
    shutil.copy(model_path, tmp_path / "tickets.onnx")
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    for code in blocks("python"):
        done = subprocess.run(
            [sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        assert "charged" in done.stdout


def test_the_json_is_json_with_the_fields_of_an_answer() -> None:
    (answer,) = blocks("json")
    (result,) = json.loads(answer)["results"]
    assert {"label", "score", "labels", "decision", "truncated", "tokens", "bias"} == set(result)


@pytest.mark.parametrize("words", [w for w in commands() if w[0] == "textcls"], ids=" ".join)
def test_a_command_line_is_understood(words: list[str]) -> None:
    group = main
    assert isinstance(group, LazyGroup)
    context = group.make_context("textcls", list(words[1:]))
    command = group.get_command(context, words[1])
    assert command is not None
    command.make_context(words[1], words[2:], parent=context)


def test_every_command_is_shown() -> None:
    assert {words[1] for words in commands() if words[0] == "textcls"} >= set(COMMANDS)


def test_every_make_target_exists() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = [words[1] for words in commands() if words[0] == "make"]
    assert targets
    assert all(re.search(rf"^{target}:", makefile, re.MULTILINE) for target in targets)


def test_the_exit_codes_are_those_of_the_table() -> None:
    kinds = (errors.ConfigError, errors.InputError, errors.ArtifactError, errors.MissingExtraError)
    codes = [errors.exit_code(kind("")) for kind in kinds[:3]] + [
        errors.exit_code(errors.MissingExtraError("a", "b", "c"))
    ]
    text = README.split("## Exit codes")[1].split("##")[0]
    assert [int(code) for code in re.findall(r"\b(\d+) ", text)] == [
        0,
        *codes,
        errors.exit_code(errors.SurroundingsError("")),
        130,
        141,
    ]


def test_every_local_link_leads_somewhere() -> None:
    links = re.findall(r"\]\((?!http)([^)#]+)", README)
    assert links
    assert [link for link in links if not (ROOT / link).exists()] == []
