"""The guide for those who call a service: its lines for a terminal and its code, run against one."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.service.server import listening, service_of
from textcls import Classifier
from textcls.server.admission.auth import Keys
from textcls.server.models import registry

GUIDE = (Path(__file__).parents[2] / "docs" / "calling.md").read_text(encoding="utf-8")
KEY = "the-key-of-somebody-who-calls"


@pytest.fixture(scope="module")
def address(classifier: Classifier) -> Iterator[str]:
    models = [registry.serve(classifier, "tickets", "3")]
    with listening(service_of(models, keys=Keys([KEY]))) as found:
        yield found


def environment(address: str, key: str = KEY) -> dict[str, str]:
    found = {name: value for name, value in os.environ.items() if "proxy" not in name.lower()}
    return found | {"ADDRESS": address, "KEY": key}


@pytest.mark.parametrize("code", re.findall(r"^```python\n(.*?)^```", GUIDE, re.MULTILINE | re.DOTALL))
def test_the_code_runs(code: str, address: str) -> None:
    pytest.importorskip("requests")
    run = [sys.executable, "-c", code]
    done = subprocess.run(run, capture_output=True, text=True, env=environment(address), check=False)
    assert done.returncode == 0, done.stderr
    assert "charged" in done.stdout


def test_without_the_key_the_code_ends_with_the_status_that_the_guide_tells(address: str) -> None:
    pytest.importorskip("requests")
    (code, *_) = re.findall(r"^```python\n(.*?)^```", GUIDE, re.MULTILINE | re.DOTALL)
    run = [sys.executable, "-c", code]
    done = subprocess.run(run, capture_output=True, text=True, env=environment(address, ""), check=False)
    assert "401 Client Error" in done.stderr


LINES = re.findall(r"^\$ (curl .*)$", GUIDE, re.MULTILINE)


@pytest.mark.parametrize("line", [line for line in LINES if "/v1/classify" in line or "/v1/models " in line])
def test_a_line_for_a_terminal_is_answered(line: str, address: str, two_columns: Classifier, tmp_path: Path) -> None:
    (tmp_path / "key.txt").write_text(f"{KEY}\n")
    if shutil.which("curl") is None:
        pytest.skip("curl is not installed")
    with listening(service_of([registry.serve(two_columns, "mails")])) as other:
        asked = other if "subject" in line else address
        key = "" if "authorization" in line else f" -H 'authorization: Bearer {KEY}'"
        command = f"{line}{key}".replace("localhost:8000", asked)
        run = {"cwd": tmp_path, "env": environment(asked), "capture_output": True}
        done = subprocess.run(["sh", "-c", command], **run, check=False)  # type: ignore[call-overload]
    answer = json.loads(done.stdout)
    if "top_k" in line:
        assert [len(result["labels"]) for result in answer["results"]] == [2]
    assert answer.get("results") or answer.get("models")


def test_every_call_of_administration_is_a_route(address: str) -> None:
    answer = httpx.get(f"{address}/openapi.json", headers={"authorization": f"Bearer {KEY}"}, trust_env=False)
    paths = answer.json()["paths"]
    named = {path.replace("{name}", "NAME"): methods for path, methods in paths.items()}
    known = {(method.upper(), path) for path, methods in named.items() for method in methods} | {("GET", "/metrics")}
    told = re.findall(r"^\| (`(?:GET|POST|DELETE) [^|]*) \|", GUIDE, re.MULTILINE)
    calls = {(method, path) for cell in told for method, path in re.findall(r"`(\w+) (/[^`]*)`", cell)}
    assert len(calls) == 4
    assert calls <= known
    told_lines = [line for line in LINES if "administrator" in line]
    assert len(told_lines) == 2
    for line in told_lines:
        (path,) = re.findall(r"localhost:8000(/\S*)", line)
        method = "POST" if "-X POST" in line else "GET"
        assert (method, path.replace("/tickets/", "/NAME/")) in known


def test_the_code_for_node_is_answered_and_waits_for_a_busy_service(address: str) -> None:
    if shutil.which("node") is None:
        pytest.skip("node is not installed")
    (code,) = re.findall(r"^```js\n(.*?)^```", GUIDE, re.MULTILINE | re.DOTALL)
    ask = """
    const real = fetch;
    let busy = true;
    globalThis.fetch = async (...asked) => {
      if (!busy) return real(...asked);
      busy = false;
      return new Response('{"error": {"message": "Later."}}', { status: 429, headers: { "retry-after": "0.01" } });
    };
    const { ADDRESS: address, KEY: key } = process.env;
    console.log((await classify(["my card was charged twice"], { address, key }))[0].label);
    await classify(["x"], { address, key: "wrong" }).catch((error) => console.log(error.message));
    """
    run = ["node", "--input-type=module", "-e", code + ask]
    done = subprocess.run(run, capture_output=True, text=True, env=environment(address), check=False)
    assert done.stderr == ""
    label, refusal = done.stdout.splitlines()
    assert label == "billing"
    assert "key" in refusal
