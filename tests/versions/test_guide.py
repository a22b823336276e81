"""The guide to publishing: what it shows is what the commands say, its script runs, and its queries are queries."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.command_line import read_rows, succeed, write_rows
from tests.versions.conftest import Model
from textcls.server.monitoring import metrics

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
    assert played == 6


def test_the_script_of_a_night_promotes_the_first_and_makes_the_next_the_shadow(
    sample_path: Path, tmp_path: Path
) -> None:
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
        found.append((said["promoted"], said["shadow"], len(said["versions"])))
    assert found == [(1, None, 1), (1, 2, 2)]


def test_every_metric_of_the_guide_is_one() -> None:
    families = [each for each in vars(metrics).values() if isinstance(each, metrics.Family)]
    known = {"textcls_model_info"}
    for family in families:
        ends = ("", "_bucket", "_sum", "_count") if family.bounds else ("",) if family.gauge else ("_total",)
        known |= {family.name + end for end in ends}
    named = set(re.findall(r"\btextcls_[a-z_]+", GUIDE))
    assert len(named) > 6
    assert named <= known
    for name, labels in re.findall(r"`(textcls_[a-z_]+)\{([a-z_, ]+)\}`", GUIDE):
        (family,) = (each for each in families if name.removesuffix("_total") == each.name)
        assert labels.split(", ") == list(family.labels)


def test_its_queries_are_understood_by_prometheus(tmp_path: Path) -> None:
    if shutil.which("promtool") is None:
        pytest.skip("promtool is not installed")
    (queries,) = blocks("promql")
    rules = [{"record": f"query:{i}", "expr": query} for i, query in enumerate(queries.strip().split("\n\n"))]
    assert len(rules) == 3
    path = tmp_path / "rules.yaml"
    path.write_text(yaml.safe_dump({"groups": [{"name": "guide", "rules": rules}]}))
    done = subprocess.run(["promtool", "check", "rules", str(path)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "SUCCESS: 3 rules found" in done.stdout
