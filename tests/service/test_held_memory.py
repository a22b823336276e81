"""The memory limits of the manifests are what the service needs, and it lives through the worst under them."""

import gc
import logging
import os
import select
import signal
import threading
import time
from pathlib import Path
from typing import Any

import orjson
import pytest
import yaml

from tests.chance import THOROUGH
from tests.service import sockets
from tests.service.clients import BODY, JSON
from tests.service.processes import until
from tests.service.server import service, serving
from textcls import Classifier
from textcls.server.http.exchange import Exchange
from textcls.server.http.response import Ready
from textcls.server.settings import Settings
from textcls.server.system import memory

ROOT = Path(__file__).parent.parent.parent
DEPLOY = ROOT / "deploy"
# The largest file that training writes without being told otherwise, of few labels.
DEFAULT_MODEL = 3_000_000
# Large requests whose answers are waited for, a worker: what all hold, they hold before the first is answered.
ANSWERED = 3
UNITS = {"Mi": 1 << 20, "m": 1 << 20}


def limit_of(container: dict[str, Any]) -> int:
    said = container["resources"]["limits"]["memory"] if "resources" in container else container["mem_limit"]
    (unit,) = [unit for unit in UNITS if said.endswith(unit)]
    return int(said.removesuffix(unit)) * UNITS[unit]


def kubernetes(name: str) -> tuple[int, int]:
    (spec,) = [
        document["spec"].get("predictor") or document["spec"]["template"]["spec"]
        for document in yaml.safe_load_all((DEPLOY / "kubernetes" / name).read_text())
        if document["kind"] in ("Deployment", "InferenceService")
    ]
    (container,) = spec["containers"]
    variables = {each["name"]: each.get("value") for each in container.get("env", ())}
    return int(variables.get("TEXTCLS_SERVE_WORKERS", 1)), limit_of(container)


def compose() -> tuple[int, int]:
    container = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]["textcls"]
    return int(container["environment"]["TEXTCLS_SERVE_WORKERS"]), limit_of(container)


MANIFESTS = {
    "Kubernetes": kubernetes("textcls.yaml"),
    "KServe": kubernetes("kserve.yaml"),
    "compose": compose(),
}


@pytest.mark.parametrize("manifest", MANIFESTS)
def test_the_memory_limit_of_a_manifest_is_what_a_default_model_needs_and_little_more(manifest: str) -> None:
    workers, limit = MANIFESTS[manifest]
    needed = memory.needed(Settings(workers=workers), DEFAULT_MODEL)
    assert needed <= limit < 1.1 * needed


@pytest.mark.parametrize(("limit", "warned"), [("402653184\n", True), ("536870912\n", False), ("max\n", False)])
def test_a_container_with_too_little_memory_is_warned_of_at_the_start(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture, limit: str, warned: bool
) -> None:
    (tmp_path / "memory.max").write_text(limit)
    monkeypatch.setattr("textcls._util.memory._LIMITS", (tmp_path / "none", tmp_path / "memory.max"))
    with caplog.at_level(logging.WARNING):
        memory.check_limit(Settings(), DEFAULT_MODEL)
    assert ("up to 429 MB of memory may be needed, and this container has 403" in caplog.text) is warned


def test_what_is_needed_grows_with_workers_with_what_requests_may_hold_and_with_models() -> None:
    least = memory.needed(Settings(), 0)
    assert memory.needed(Settings(max_held_bytes=228_000_000), 0) == least + 100_000_000
    assert memory.needed(Settings(workers=2), 0) > 2 * least - 65_000_000
    assert memory.needed(Settings(), 10_000_000) > least + 300_000_000


@pytest.mark.parametrize("path", ["/v1/classify", "/predict", "/nowhere"])
def test_nothing_of_an_answered_request_waits_for_the_collector_of_garbage(classifier: Classifier, path: str) -> None:
    explained = orjson.dumps({"inputs": "my card was charged twice", "explain": True})
    with serving(service(classifier)) as client:
        gc.collect()
        gc.disable()
        try:
            for body in (explained, BODY, b"{", b'{"inputs": 1}') * 5:
                client.post(path, content=body, headers=JSON)
            until(lambda: not [one for one in gc.get_objects() if isinstance(one, Exchange | Ready)])
        finally:
            gc.enable()


def send(url: str, request: bytes, statuses: list[int], release: threading.Event, leave: threading.Event) -> None:
    """Send a request; an explained answer is left unread until all may go on, any other is read unless all leave."""
    try:
        with sockets.connect(url, receive=4096) as connection:
            connection.sendall(request)
            if b'"explain":true' in request:
                release.wait(60)
                return
            while not leave.is_set():
                if select.select([connection], (), (), 0.1)[0]:
                    statuses.append(sockets.answer(connection)[0])
                    return
    except (ConnectionError, TimeoutError):
        statuses.append(0)


# The limit of both is worked out alike.
@pytest.mark.parametrize("manifest", ["Kubernetes", "compose"] if THOROUGH else ["compose"])
def test_no_worker_is_killed_while_requests_hold_all_they_may_and_models_are_exchanged(
    benchmark_module: Any, many_labels_path: Path, manifest: str
) -> None:
    workers, limit = MANIFESTS[manifest]
    long = " ".join(["some words of a text"] * 1400)
    large_body = orjson.dumps({"inputs": [f"{long} {i}" for i in range(64)]})
    large = sockets.request(large_body)
    explained = sockets.request(orjson.dumps({"inputs": "!" * 4000, "explain": True}))
    with benchmark_module("attacking.limits").limited(limit >> 20) as group:
        if group.group is None:
            pytest.skip("no control group can be made here")
        with benchmark_module("running").serving(
            many_labels_path,
            "--workers",
            str(workers),
            "--receive-seconds",
            "60",
            "--request-seconds",
            "60",
            prefix=group.prefix,
        ) as server:
            before = server.workers()
            release, leave, statuses = threading.Event(), threading.Event(), list[int]()
            sent = [large, explained] * (20 * workers)
            threads = [threading.Thread(target=send, args=(server.url, one, statuses, release, leave)) for one in sent]
            for thread in threads:
                thread.start()
            for _ in range(3):
                time.sleep(0.5)
                os.kill(server.process.pid, signal.SIGUSR1)
            release.set()
            until(lambda: len(statuses) >= ANSWERED * workers)
            leave.set()
            for thread in threads:
                thread.join(60)
            assert group.kills() == 0
            assert server.process.poll() is None
            assert server.workers() == before
            # Who was not answered was told to come back, and then is.
            assert set(statuses) <= {200, 429, 504}
            until(lambda: sockets.ask(server.url, large_body)[0] == 200)
