"""The guide's lines for a terminal are run as they stand, and its example for Node is the one that is shipped."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
GUIDE = (ROOT / "docs" / "web.md").read_text(encoding="utf-8")
LINES = [
    command.replace("\\\n", " ")
    for block in re.findall(r"^```console\n(.*?)^```", GUIDE, re.MULTILINE | re.DOTALL)
    for command in re.findall(r"^\$ (curl .*?)(?=^\$ |^\[|\Z)", block, re.MULTILINE | re.DOTALL)
]


def test_the_guide_has_a_line_for_every_format() -> None:
    assert len(LINES) >= 8
    for path in ("/predict", "/models/", ":predict", ":explain", "/infer", "/vllm/"):
        assert any(path in line for line in LINES)


@pytest.mark.parametrize("line", LINES, ids=range(len(LINES)))
def test_a_line_of_the_guide_is_answered(line: str, address: str) -> None:
    if shutil.which("curl") is None:
        pytest.skip("curl is not installed")
    environment = {name: value for name, value in os.environ.items() if "proxy" not in name.lower()}
    command = line.replace("localhost:8000", address).replace("curl -s", "curl -sf")
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, line
    assert json.loads(done.stdout)


def test_the_answers_of_the_guide_are_those_of_the_readme() -> None:
    (shown,) = re.findall(r'^\[\[\{"label".*\]\]$', GUIDE, re.MULTILINE)
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    for answer in json.loads(shown)[0]:
        assert f"{answer['label']} {answer['score']:.1%}" in readme


def test_the_example_of_the_guide_is_the_one_that_is_shipped() -> None:
    (code,) = re.findall(r"^```js\n(.*?)^```", GUIDE, re.MULTILINE | re.DOTALL)
    shipped = (ROOT / "examples" / "classify.mjs").read_text(encoding="utf-8")
    assert shipped.endswith(code)
