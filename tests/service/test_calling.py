"""The guide for those who call a service: its lines for a terminal and its code, run against one."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.service.server import listening
from textcls import Classifier
from textcls.server.admission.auth import Keys
from textcls.server.models import registry
from textcls.server.service import Service
from textcls.server.settings import Settings

GUIDE = (Path(__file__).parents[2] / "docs" / "calling.md").read_text(encoding="utf-8")
KEY = "the-key-of-somebody-who-calls"


@pytest.fixture(scope="module")
def address(classifier: Classifier) -> Iterator[str]:
    models = registry.generation(1, [registry.serve(classifier, "tickets", "3")])
    with listening(Service(models, Settings(), keys=Keys([KEY]))) as found:
        yield found


def environment(address: str, key: str = KEY) -> dict[str, str]:
    found = {name: value for name, value in os.environ.items() if "proxy" not in name.lower()}
    return found | {"ADDRESS": address, "KEY": key}


@pytest.mark.parametrize("code", re.findall(r"^```python\n(.*?)^```", GUIDE, re.MULTILINE | re.DOTALL))
def test_the_code_runs(code: str, address: str) -> None:
    run = [sys.executable, "-c", code]
    done = subprocess.run(run, capture_output=True, text=True, env=environment(address), check=False)
    assert done.returncode == 0, done.stderr
    assert "charged" in done.stdout


def test_without_the_key_the_code_ends_with_the_status_that_the_guide_tells(address: str) -> None:
    (code, *_) = re.findall(r"^```python\n(.*?)^```", GUIDE, re.MULTILINE | re.DOTALL)
    run = [sys.executable, "-c", code]
    done = subprocess.run(run, capture_output=True, text=True, env=environment(address, ""), check=False)
    assert "HTTP Error 401" in done.stderr


def test_the_line_for_a_terminal_is_answered(address: str) -> None:
    if shutil.which("curl") is None:
        pytest.skip("curl is not installed")
    (line,) = re.findall(r"^\$ (curl .*)$", GUIDE, re.MULTILINE)
    command = f"{line} -H 'authorization: Bearer {KEY}'".replace("localhost:8000", address)
    done = subprocess.run(["sh", "-c", command], capture_output=True, env=environment(address), check=False)
    (result,) = json.loads(done.stdout)["results"]
    assert len(result["labels"]) == 2
