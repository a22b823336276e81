"""Several processes that answer: replaced one by one, killed, orphaned, slow to load."""

import os
import signal
import socket
import time
from pathlib import Path

import uvicorn

from tests.service.clients import Load, client_of, numbers
from tests.service.processes import MAIN, PATIENCE, alive, command, until, workers
from textcls.server.models.store import GenerationStore
from textcls.server.processes.supervisor import Worker
from textcls.server.settings import Settings


def test_workers_that_are_replaced_one_by_one_lose_no_request(model_path: Path) -> None:
    with command(model_path, "--workers", "2") as (process, url), Load(url) as load:
        load.more(50)
        before = set(workers(process))
        process.send_signal(signal.SIGHUP)
        until(lambda: len(workers(process)) == 2 and not before & set(workers(process)))
        load.more(50)
        assert load.failures == []
        assert set(load.statuses) == {200}


def test_a_worker_that_is_killed_is_replaced_and_only_its_own_requests_fail(model_path: Path) -> None:
    with command(model_path, "--workers", "2") as (process, url):
        with Load(url) as load:
            load.more(50)
            before = workers(process)
            os.kill(before[0], signal.SIGKILL)
            until(lambda: len(workers(process)) == 2 and before[0] not in workers(process))
            load.more(50)
        assert len(load.failures) <= 4  # one for each client at most
        assert set(load.statuses) == {200}
        with client_of(url) as client:
            found = until(lambda: (n := numbers(client))["textcls_workers"] == 2 and n)
        # What the dead worker had answered is still counted.
        assert found['textcls_requests_total{route="/v1/classify",status="200"}'] >= len(load.statuses)
        assert found["textcls_worker_restarts_total"] == 1
        process.terminate()
        assert f"Worker {before[0]} ended (SIGKILL); worker " in process.communicate(timeout=PATIENCE)[1]


def test_workers_whose_supervisor_was_killed_end_as_well(model_path: Path) -> None:
    with command(model_path, "--workers", "2") as (process, _):
        pids = workers(process)
        process.kill()
        process.wait(PATIENCE)
        assert len(pids) == 2
        assert until(lambda: not any(map(alive, pids)))


class LoadingWorker(Worker):
    """Loads its models for longer than any test."""

    def target(self, sockets: list[socket.socket] | None = None) -> None:
        time.sleep(1000)


def test_a_worker_that_still_loads_its_models_is_not_taken_for_one_that_hangs(store: GenerationStore) -> None:
    worker = LoadingWorker(store, Settings(), uvicorn.Config(""), [])
    worker.start()
    assert [worker.is_alive(timeout=0) for _ in range(3)] == [True] * 3
    worker.kill()
    worker.join()
    assert not worker.is_alive(timeout=0)


def test_a_supervisor_that_fails_ends_its_workers_first(model_path: Path) -> None:
    code = f"""
from textcls.server.processes.supervisor import Supervisor
def fail(self):
    raise RuntimeError("told to")
Supervisor.handle_usr1 = fail
{MAIN}
"""
    with command(model_path, "--workers", "2", code=code) as (process, _):
        pids = workers(process)
        process.send_signal(signal.SIGUSR1)
        assert "RuntimeError: told to" in process.communicate(timeout=PATIENCE)[1]
    assert process.returncode == 1
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)
