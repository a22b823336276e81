"""Labels that are taught while several workers answer, are killed, and are started anew."""

import os
import shutil
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from tests.service.clients import ADMIN, Load, clients_of, numbers, post
from tests.service.processes import Running, alive, command, until, workers
from tests.service.teaching import TEXT, best, digest, listed, take_back, taught, teach

REQUESTS = 24


@pytest.fixture
def model(prototypes_path: Path, tmp_path: Path) -> Path:
    """A copy of the small model of prototypes that may be rewritten."""
    return Path(shutil.copy(prototypes_path, tmp_path / "tickets.onnx"))


@contextmanager
def started(model: Path) -> Iterator[tuple[Running, httpx.Client]]:
    """A service of two workers, and a client each of whose requests may come to either."""
    options = ("--workers", "2", "--teaching")
    with (
        command(model, *options, env={"TEXTCLS_ADMIN_KEY": ADMIN}) as running,
        clients_of(running.url) as client,
    ):
        yield running, client


def answers(client: httpx.Client) -> set[tuple[str, str]]:
    """Which label, and which file, many requests on connections of their own are answered with."""
    body = b'{"inputs": "%b", "top_k": 1}' % TEXT.encode()
    found = [post(client, body) for _ in range(REQUESTS)]
    return {(one.json()["results"][0]["label"], one.headers["x-model"].rpartition('sha256="')[2][:-1]) for one in found}


def test_every_worker_answers_with_what_was_taught_after_kills_and_restarts_as_well(
    model: Path, prototypes_path: Path
) -> None:
    with started(model) as (running, client):
        said = teach(client).json()
        assert (said["workers"], said["workers_waiting"], said["sha256"]) == (2, 0, digest(model))
        assert answers(client) == {("animals", digest(model))}
        (killed, _) = before = workers(running.process)
        os.kill(killed, signal.SIGKILL)
        until(lambda: len(now := workers(running.process)) == 2 and killed not in now)
        until(lambda: numbers(client)["textcls_workers"] == 2)
        assert answers(client) == {("animals", digest(model))}
        # The supervisor: nobody is told to end in peace.
        before = workers(running.process)
        running.process.kill()
        until(lambda: not any(map(alive, before)))
    with started(model) as (_, client):
        assert answers(client) == {("animals", digest(model))}
        assert taught(client) == {"animals": 3}
        assert take_back(client).json()["workers"] == 2
        assert answers(client) == {(best(client), digest(prototypes_path))}
        assert "animals" not in listed(client)


def test_of_labels_that_are_taught_at_once_none_is_lost_and_neither_is_a_request(model: Path) -> None:
    labels = [f"label {i}" for i in range(8)]
    with started(model) as (running, client), Load(running.url, 2) as load, ThreadPoolExecutor(4) as threads:
        load.more(5)
        found = list(threads.map(lambda label: teach(client, label, [f"zebra of {label}"]), labels))
        load.more(5)
        assert [each.status_code for each in found] == [200] * len(labels)
        assert [each.json()["workers"] for each in found] == [2] * len(labels)
        assert taught(client) == dict.fromkeys(labels, 1)
        assert len({each.json()["generation"] for each in found}) == len(labels)
        assert {sha for _, sha in answers(client)} == {digest(model)}
        done = [value for name, value in numbers(client).items() if name.startswith("textcls_lessons") and value]
        assert done == [len(labels)]
    assert set(load.statuses) == {200}
    assert load.failures == []
