"""Probes and metrics on a port of their own answer whatever happens to the other port, and do not lie."""

import os
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from http.client import HTTPConnection
from pathlib import Path

import pytest

from tests.service.processes import PATIENCE, command, free_port, until, workers
from textcls.server.models.store import GenerationStore
from textcls.server.monitoring import metrics
from textcls.server.monitoring.metrics import Counts
from textcls.server.processes import probes as module
from textcls.server.processes.probes import probes
from textcls.server.settings import Settings

KEY = "key-of-a-client-that-may"


def connect(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)


def ask(port: int, path: str, method: str = "GET") -> tuple[int, str]:
    with closing(HTTPConnection("127.0.0.1", port, timeout=PATIENCE)) as connection:
        connection.request(method, path)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()


@contextmanager
def probed(*arguments: str | Path) -> Iterator[tuple[subprocess.Popen[str], int, int]]:
    """A running `textcls serve`, its port and that of the probes."""
    probe_port = free_port()
    with command(*arguments, "--probe-port", str(probe_port), env={"TEXTCLS_API_KEYS": KEY}) as running:
        yield running.process, running.address[1], probe_port


@pytest.fixture
def store(tmp_path: Path, model_path: Path) -> GenerationStore:
    made = GenerationStore(tmp_path, [f"tickets={model_path}"], Settings())
    made.publish()
    return made


@pytest.fixture
def counts(store: GenerationStore) -> Iterator[Counts]:
    """Those of a worker that is ready, however long the test takes."""
    found = Counts(store.folder)
    found.set(metrics.GENERATION, 1)
    found.set(metrics.HEARTBEAT, time.monotonic() + 600)
    yield found
    found.close()


@pytest.fixture
def port(store: GenerationStore) -> Iterator[int]:
    found = free_port()
    with probes(store, Settings(probe_port=found)):
        yield found


@pytest.mark.parametrize("count", ["1", "2"])
def test_probes_need_no_key_tell_the_same_metrics_and_say_when_the_service_drains(model_path: Path, count: str) -> None:
    with probed(f"tickets@7={model_path}", "--workers", count, "--drain-seconds", "4") as (process, port, probe_port):
        assert until(lambda: ask(probe_port, "/readyz")[0] == 200)
        assert ask(probe_port, "/livez") == (200, '{"status":"live"}')
        assert ask(port, "/metrics")[0] == 401
        text = ask(probe_port, "/metrics")[1]
        assert f"textcls_workers {count}.0\n" in text
        assert 'textcls_requests_total{route="/metrics",status="401"} 1.0\n' in text
        assert 'textcls_model_info{model="tickets",sha256="' in text
        assert 'version="7"} 1.0\n' in text
        process.terminate()
        assert until(lambda: ask(probe_port, "/readyz")[0] == 503)
        assert ask(probe_port, "/livez")[0] == 200
        assert process.wait(PATIENCE) == 0


def test_a_worker_whose_event_loop_stands_still_is_not_ready_and_then_not_live(
    monkeypatch: pytest.MonkeyPatch, port: int, counts: Counts
) -> None:
    assert [ask(port, path)[0] for path in ("/livez", "/readyz")] == [200, 200]
    counts.set(metrics.HEARTBEAT, time.monotonic() - module.READY_SECONDS - 1)
    assert [ask(port, path)[0] for path in ("/livez", "/readyz")] == [200, 503]
    assert "ready within the last 5 seconds" in ask(port, "/readyz")[1]
    # The first sign of life is that of the start.
    monkeypatch.setattr(module, "LIVE_SECONDS", 0.01)
    time.sleep(0.05)
    status, said = ask(port, "/livez")
    assert status == 503
    assert "No worker has responded for" in said
    counts.set(metrics.HEARTBEAT, time.monotonic() + 60)
    assert ask(port, "/livez")[0] == 200


def test_a_worker_that_is_stopped_takes_readiness_with_it_and_brings_it_back(model_path: Path) -> None:
    with probed(model_path, "--workers", "2") as (process, _, probe_port):
        assert until(lambda: ask(probe_port, "/readyz")[0] == 200)
        pids = workers(process)
        # Both are killed, and until others are ready nobody is.
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        assert until(lambda: ask(probe_port, "/readyz")[0] == 503)
        assert ask(probe_port, "/livez")[0] == 200
        assert ask(probe_port, "/metrics")[0] == 200
        assert until(lambda: ask(probe_port, "/readyz")[0] == 200)


def test_without_a_worker_the_service_is_live_and_not_ready(port: int) -> None:
    assert [ask(port, path)[0] for path in ("/livez", "/readyz", "/metrics")] == [200, 503, 200]


def test_nothing_else_is_answered(port: int, counts: Counts) -> None:
    assert ask(port, "/v1/models")[0] == 404
    assert ask(port, "/livez", "POST")[0] == 405
    assert ask(port, "/livez", "HEAD") == (200, "")
    assert ask(port, "/livez?verbose")[0] == 200
    with connect(port) as connection:
        connection.sendall(b"GET /livez HTTP/1.1\r\nx: " + b"x" * 5000)
        assert connection.recv(1000).startswith(b"HTTP/1.1 431 ")


def test_connections_that_say_nothing_do_not_keep_probes_out_and_are_hung_up_on(port: int, counts: Counts) -> None:
    with ExitStack() as stack:
        idle = [stack.enter_context(connect(port)) for _ in range(200)]
        assert ask(port, "/readyz")[0] == 200
        for connection in idle:
            with suppress(ConnectionResetError):
                assert connection.recv(1) == b""
    assert ask(port, "/readyz")[0] == 200


def test_a_service_that_is_busy_with_all_its_connections_answers_probes(model_path: Path) -> None:
    with probed(model_path, "--max-connections", "10") as (_, port, probe_port), ExitStack() as stack:
        until(lambda: ask(probe_port, "/readyz")[0] == 200)
        for _ in range(50):
            stack.enter_context(connect(port))
        assert [ask(probe_port, path)[0] for path in ("/livez", "/readyz", "/metrics")] == [200, 200, 200]


def test_probes_end_with_the_service(store: GenerationStore) -> None:
    before = set(threading.enumerate())
    port = free_port()
    with probes(store, Settings(probe_port=port)), connect(port):
        assert ask(port, "/livez")[0] == 200
    # Threads of others may have ended meanwhile.
    assert set(threading.enumerate()) <= before
    with pytest.raises(ConnectionRefusedError, match="Connection refused"):
        ask(port, "/livez")
