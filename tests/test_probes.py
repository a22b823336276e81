"""Probes and metrics on a port of their own answer whatever happens to the other port, and do not lie."""

import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest

from textcls.server import metrics
from textcls.server import probes as module
from textcls.server.metrics import Counts
from textcls.server.probes import probes
from textcls.server.reload import Shelf
from textcls.server.settings import Settings

MAIN = "from textcls.cli import main; main(prog_name='textcls')"
KEY = "key-of-a-client-that-may"


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as found:
        port: int = found.getsockname()[1]
    return port


def until(true: Callable[[], Any], seconds: float = 20) -> Any:
    """Wait until something holds; return it."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if found := true():
            return found
        time.sleep(0.02)
    pytest.fail("it did not come to hold")


def ask(port: int, path: str, method: str = "GET") -> tuple[int, str]:
    with closing(HTTPConnection("127.0.0.1", port, timeout=20)) as connection:
        connection.request(method, path)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()


@contextmanager
def command(*arguments: str | Path) -> Iterator[tuple[subprocess.Popen[str], int, int]]:
    """A running `textcls serve`, its port and that of the probes."""
    probe_port = free_port()
    line = [sys.executable, "-u", "-c", MAIN, "serve", *map(str, arguments), "--port", "0"]
    line += ["--probe-port", str(probe_port)]
    environment = {**os.environ, "TEXTCLS_API_KEYS": KEY}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(line, text=True, env=environment, **pipes) as process:  # type: ignore[call-overload]
        try:
            found = re.search(r"on http://127\.0\.0\.1:(\d+)\n", process.stdout.readline())
            assert found, process.stderr.read()
            yield process, int(found[1]), probe_port
        finally:
            process.kill()


def workers(process: subprocess.Popen[str]) -> list[int]:
    """The processes that answer."""
    found = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    kind = [Path(f"/proc/{pid}/cmdline").read_bytes() for pid in found]
    return [int(pid) for pid, line in zip(found, kind, strict=True) if b"spawn_main" in line] or [process.pid]


@pytest.fixture
def shelf(tmp_path: Path, model_path: Path) -> Shelf:
    made = Shelf(tmp_path, [f"tickets={model_path}"], Settings())
    made.publish()
    return made


@pytest.fixture
def counts(shelf: Shelf) -> Iterator[Counts]:
    """Those of a worker that is ready."""
    found = Counts(shelf.folder)
    found.set(metrics.GENERATION, 1)
    found.set(metrics.PULSE, time.monotonic())
    yield found
    found.close()


@pytest.fixture
def port(shelf: Shelf) -> Iterator[int]:
    found = free_port()
    with probes(shelf, Settings(probe_port=found)):
        yield found


@pytest.mark.parametrize("count", ["1", "2"])
def test_probes_need_no_key_tell_the_same_metrics_and_say_when_the_service_drains(model_path: Path, count: str) -> None:
    with command(f"tickets@7={model_path}", "--workers", count, "--drain-seconds", "1") as (process, port, probe_port):
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
        assert process.wait(20) == 0


def test_a_worker_whose_event_loop_stands_still_is_not_ready_and_then_not_live(
    monkeypatch: pytest.MonkeyPatch, port: int, counts: Counts
) -> None:
    assert [ask(port, path)[0] for path in ("/livez", "/readyz")] == [200, 200]
    counts.set(metrics.PULSE, time.monotonic() - module.READY_SECONDS - 1)
    assert [ask(port, path)[0] for path in ("/livez", "/readyz")] == [200, 503]
    assert "ready within the last 5 seconds" in ask(port, "/readyz")[1]
    # The first sign of life is that of the start.
    monkeypatch.setattr(module, "LIVE_SECONDS", 0.01)
    time.sleep(0.05)
    status, said = ask(port, "/livez")
    assert status == 503
    assert "No worker has got round to anything for" in said
    counts.set(metrics.PULSE, time.monotonic() + 60)
    assert ask(port, "/livez")[0] == 200


def test_a_worker_that_is_stopped_takes_readiness_with_it_and_brings_it_back(model_path: Path) -> None:
    with command(model_path, "--workers", "2") as (process, _, probe_port):
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
    with socket.create_connection(("127.0.0.1", port), timeout=20) as connection:
        connection.sendall(b"GET /livez HTTP/1.1\r\nx: " + b"x" * 5000)
        assert connection.recv(1000).startswith(b"HTTP/1.1 431 ")


def test_connections_that_say_nothing_do_not_keep_probes_out_and_are_hung_up_on(port: int, counts: Counts) -> None:
    with ExitStack() as stack:
        idle = [stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=20)) for _ in range(200)]
        assert ask(port, "/readyz")[0] == 200
        for connection in idle:
            with suppress(ConnectionResetError):
                assert connection.recv(1) == b""
    assert ask(port, "/readyz")[0] == 200


def test_a_service_that_is_busy_with_all_its_connections_answers_probes(model_path: Path) -> None:
    with command(model_path, "--max-connections", "10") as (_, port, probe_port), ExitStack() as stack:
        until(lambda: ask(probe_port, "/readyz")[0] == 200)
        for _ in range(50):
            stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=20))
        assert [ask(probe_port, path)[0] for path in ("/livez", "/readyz", "/metrics")] == [200, 200, 200]


def test_probes_end_with_the_service(shelf: Shelf) -> None:
    before = threading.active_count()
    port = free_port()
    with probes(shelf, Settings(probe_port=port)), socket.create_connection(("127.0.0.1", port), timeout=20):
        assert ask(port, "/livez")[0] == 200
    assert threading.active_count() == before
    with pytest.raises(ConnectionRefusedError):
        ask(port, "/livez")
