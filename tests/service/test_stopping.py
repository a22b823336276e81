"""The service stops without losing anybody who has been connected, and lack of files ends nothing."""

import json
import os
import resource
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from contextlib import ExitStack, closing
from http.client import HTTPConnection
from pathlib import Path

import httpx
import pytest

from tests.command_line import heed_ctrl_c
from tests.service.clients import client_of, post
from tests.service.processes import MAIN, PATIENCE, alive, command, until, workers

REQUEST = b"GET /livez HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n"


def ask(address: tuple[str, int], seconds: float = PATIENCE) -> str:
    """Ask once, on a connection of its own; return the status, or what went wrong."""
    try:
        connection = socket.create_connection(address, timeout=seconds)
    except ConnectionRefusedError:
        return "refused"
    with connection:
        try:
            connection.sendall(REQUEST)
            answer = b"".join(iter(lambda: connection.recv(65536), b""))
        except OSError as error:
            return type(error).__name__
    return answer[9:12].decode() or "no answer"


class Callers:
    """Clients that open a connection for each request, until they are refused."""

    def __init__(self, address: tuple[str, int], clients: int = 4) -> None:
        self.found: Counter[str] = Counter()
        self._address, self._stop = address, threading.Event()
        self._threads = [threading.Thread(target=self._call) for _ in range(clients)]

    def __enter__(self) -> "Callers":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(PATIENCE)

    def _call(self) -> None:
        while not self._stop.is_set() and not self.found["refused"]:
            self.found[ask(self._address)] += 1


@pytest.mark.parametrize("count", ["1", "2"])
def test_nobody_whom_the_kernel_has_connected_is_reset_at_the_end(model_path: Path, count: str) -> None:
    with command(model_path, "--workers", count) as running, Callers(running.address) as callers:
        until(lambda: callers.found["200"] > 50)
        running.process.terminate()
        assert running.process.wait(PATIENCE) == 0
    assert set(callers.found) <= {"200", "refused"}


def test_a_signal_to_stop_ends_a_replacement_of_the_workers_at_once_and_all_processes(model_path: Path) -> None:
    begun = time.monotonic()
    with command(model_path, "--workers", "2") as (process, _):
        started = time.monotonic() - begun
        before = workers(process)
        process.send_signal(signal.SIGHUP)
        new = until(lambda: set(workers(process)) - set(before))
        process.terminate()
        begun = time.monotonic()
        assert process.wait(PATIENCE) == 0
        # Loading a model takes longer than this, and on a slow machine it took half of the start.
        assert time.monotonic() - begun < max(2, started / 2)
        assert not any(map(alive, {*before, *new}))


def test_while_it_drains_it_serves_says_so_and_then_ends(model_path: Path) -> None:
    with (
        command(model_path, "--drain-seconds", "4") as (process, url),
        client_of(url) as client,
    ):
        assert client.get("/readyz").status_code == 200
        process.terminate()
        until(lambda: client.get("/readyz").status_code == 503)
        answer = post(client)
        assert (answer.status_code, answer.headers["connection"]) == (200, "close")
        assert process.wait(PATIENCE) == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_lets_the_request_in_flight_finish(model_path: Path, number: signal.Signals) -> None:
    body = b'{"inputs": "hello"}'
    head = "POST /v1/classify HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
    head += f"content-length: {len(body)}\r\n"
    with command(model_path) as (process, url):
        address = httpx.URL(url)
        with socket.create_connection((address.host, address.port or 0), timeout=PATIENCE) as connection:
            connection.sendall(f"{head}expect: 100-continue\r\n\r\n".encode())
            assert b"100 Continue" in connection.recv(1000)
            process.send_signal(number)
            time.sleep(0.3)
            assert process.poll() is None
            connection.sendall(body)
            answer = b"".join(iter(lambda: connection.recv(65536), b""))
        assert answer.startswith(b"HTTP/1.1 200 OK")
        assert json.loads(answer.partition(b"\r\n\r\n")[2])["results"]
        output, errors = process.communicate(timeout=PATIENCE)
    assert (process.returncode, output, errors) == (0, "", "")


# Too many open files


@pytest.mark.parametrize("count", ["1", "2"])
def test_too_many_open_files_end_nothing_and_when_there_are_fewer_all_is_as_before(
    model_path: Path, count: str
) -> None:
    with command(model_path, "--workers", count, "--receive-seconds", "3") as running:
        process, address = running.process, running.address
        pids = [process.pid] if count == "1" else workers(process)
        for pid in pids:
            resource.prlimit(pid, resource.RLIMIT_NOFILE, (96, 96))
        with ExitStack() as stack:
            kept = stack.enter_context(closing(HTTPConnection(*address, timeout=PATIENCE)))
            assert status(kept, "/livez") == 200
            for _ in range(len(pids) * 120):
                stack.enter_context(socket.create_connection(address, timeout=PATIENCE))
            late = socket.create_connection(address, timeout=PATIENCE)
            late.sendall(REQUEST)
            spent = sum(map(processor_seconds, pids))
            time.sleep(1)
            assert sum(map(processor_seconds, pids)) - spent < 0.5 * len(pids)
            # What needs a file has one: nobody but new connections has to wait.
            assert status(kept, "/metrics") == 200
        with late:
            assert late.recv(65536).startswith(b"HTTP/1.1 200")
        assert ask(address) == "200"
        assert process.poll() is None
        assert all(map(alive, pids))


def status(connection: HTTPConnection, path: str) -> int:
    connection.request("GET", path)
    answer = connection.getresponse()
    answer.read()
    return answer.status


def processor_seconds(pid: int) -> float:
    found = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(found[11]) + int(found[12])) / os.sysconf("SC_CLK_TCK")


# Before it answers


def test_ctrl_c_while_the_workers_start_ends_all_processes_in_one_line(model_path: Path) -> None:
    line = [sys.executable, "-c", MAIN, "serve", str(model_path), "--workers", "2", "--port", "0"]
    with subprocess.Popen(
        line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True, preexec_fn=heed_ctrl_c
    ) as process:
        pids = until(lambda: len(found := workers(process)) == 2 and found)
        os.killpg(process.pid, signal.SIGINT)
        output, errors = process.communicate(timeout=PATIENCE)
    assert (process.returncode, output, errors) == (130, "", "Interrupted; no file was left half-written.\n")
    assert not any(map(alive, pids))
