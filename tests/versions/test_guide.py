"""The guide to publishing: what it shows is what the commands say, and its script runs."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.command_line import read_rows, succeed, write_rows
from tests.versions.conftest import Model

ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "docs" / "publishing.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", GUIDE, re.MULTILINE | re.DOTALL)


def without_numbers(said: str) -> list[str]:
    """The lines of an output, in which sizes, times and figures of the model are none, nor the widths of columns."""
    said = re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d", "TIME", said)
    return [re.sub(r" +", " ", re.sub(r"\d+\.\d+", "#", line)).strip() for line in said.splitlines() if line.strip()]


def test_the_commands_say_what_the_guide_shows(
    model: Model, sample_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    model("tickets.onnx")
    model("new.onnx")
    shutil.copy(sample_path.with_name("support_tickets_test.csv"), "heldout.csv")
    played = 0
    for block in blocks("console"):
        for call, shown in re.findall(r"^\$ textcls (.*)\n((?:(?!\$ ).*\n)*)", block, re.MULTILINE):
            words = re.findall(r'"[^"]*"|\S+', call)
            if words[0] in ("publish", "versions"):
                said = succeed(*(word.strip('"') for word in words))
                assert without_numbers(said) == without_numbers(shown)
                played += 1
    assert played == 5


def test_the_script_of_a_night_promotes_the_first_and_compares_the_next(sample_path: Path, tmp_path: Path) -> None:
    (script,) = blocks("sh")
    (tmp_path / "night.sh").write_text(script)
    rows = [(row["text"], row["label"]) for row in read_rows(sample_path.with_name("support_tickets_test.csv"))]
    write_rows(tmp_path / "heldout.csv", [("text", "label"), *rows[:60]])
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    found = []
    for rows_of_the_night in (100, 120):
        write_rows(tmp_path / "tickets.csv", [("text", "label"), *rows[:rows_of_the_night]])
        run = ["sh", "night.sh"]
        done = subprocess.run(run, cwd=tmp_path, env={**os.environ, "PATH": path}, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        said = json.loads(succeed("versions", tmp_path / "registry", "--json"))
        found.append((said["promoted"], len(said["versions"])))
    assert found == [(1, 1), (1, 2)]
