"""Exchanging the models of a running service: whatever the files do, the old models go on answering."""

import ctypes
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import httpx
import onnx
import pytest

from tests.service.clients import client_of, clients_of, numbers
from tests.service.processes import MAIN, PATIENCE, command, ended, stop, until, workers
from textcls import SurroundingsError
from textcls.artifact import METADATA_KEY
from textcls.server import intake
from textcls.server.reload import Shelf
from textcls.server.settings import Settings

ADMIN = {"authorization": "Bearer key-of-the-administrator"}
REFUSED, DONE = 'textcls_reloads_total{result="refused"}', 'textcls_reloads_total{result="done"}'
# Enough for a busy machine; where the answer must come sooner, a test says so.
LOAD_SECONDS = str(PATIENCE)


class Served:
    """A running `textcls serve` that an administrator may reload."""

    def __init__(self, process: "subprocess.Popen[str]", client: httpx.Client) -> None:
        self.process, self.client = process, client

    def label(self) -> str:
        found = self.client.post("/v1/classify", json={"inputs": "my card was charged twice"})
        assert found.status_code == 200, found.text
        return str(found.json()["results"][0]["label"])

    def numbers(self) -> dict[str, float]:
        return numbers(self.client)

    def reload(self) -> httpx.Response:
        return self.client.post("/v1/admin/reload", headers=ADMIN)

    def workers(self) -> list[int]:
        return workers(self.process)

    def stop(self) -> tuple[int, str]:
        return stop(self.process)


def refused(running: Served, times: int) -> bool:
    """Whether so many reloads have been refused."""
    return running.numbers()[REFUSED] == times


@contextmanager
def served(*arguments: str | Path, code: str = MAIN) -> Iterator[Served]:
    bound = () if "--load-seconds" in arguments else ("--load-seconds", LOAD_SECONDS)
    env = {"TEXTCLS_ADMIN_KEY": ADMIN["authorization"].removeprefix("Bearer ")}
    with command(*arguments, *bound, env=env, code=code) as (process, url), clients_of(url) as client:
        yield Served(process, client)


def with_metadata(source: Path, target: Path, **changes: object) -> Path:
    """Write a model whose metadata are others into the place of `target`."""
    model = onnx.load(source)
    (prop,) = (prop for prop in model.metadata_props if prop.key == METADATA_KEY)
    prop.value = json.dumps({**json.loads(prop.value), **changes})
    beside = target.with_suffix(".new")
    onnx.save(model, beside)
    beside.replace(target)
    return target


LABELS = ["account", "billing", "cancellation", "returns", "sales", "shipping", "technical"]


def put_too_few_labels(source: Path, target: Path) -> None:
    with_metadata(source, target, labels=LABELS[:6], bias=[0.0] * 6)


def put_no_threshold(source: Path, target: Path) -> None:
    with_metadata(source, target, threshold=float("nan"))


def put_odd_label(source: Path, target: Path) -> None:
    with_metadata(source, target, labels=[*LABELS[:6], "\ud83d"])


def put_pipe(source: Path, target: Path) -> None:
    target.unlink()
    os.mkfifo(target)


def put_device(source: Path, target: Path) -> None:
    target.unlink()
    target.symlink_to("/dev/zero")


def put_nothing(source: Path, target: Path) -> None:
    target.unlink()


def put_large(source: Path, target: Path) -> None:
    with target.open("wb") as file:
        file.truncate(3 * 2**30)


BAD = [put_too_few_labels, put_no_threshold, put_odd_label, put_pipe, put_device, put_nothing, put_large]


@pytest.fixture
def model(model_path: Path, tmp_path: Path) -> Path:
    """A copy of the small model that may be exchanged."""
    return Path(shutil.copy(model_path, tmp_path / "tickets.onnx"))


@pytest.mark.parametrize("count", ["1", "2"])
def test_whatever_the_new_file_is_the_old_model_goes_on_answering(model: Path, model_path: Path, count: str) -> None:
    with served(model, "--workers", count) as running:
        for number, put in enumerate(BAD, 1):
            put(model_path, model)
            answer = running.reload()
            assert answer.status_code == 409, (put.__name__, answer.text)
            assert str(model) in answer.json()["error"]["message"]
            running.process.send_signal(signal.SIGUSR1)
            until(partial(refused, running, 2 * number))
            assert running.label() == "billing"
            model.unlink(missing_ok=True)
            shutil.copy(model_path, model)
        assert running.numbers()["textcls_generation"] == 1
        assert running.reload().json()["generation"] == 2
        status, said = running.stop()
    assert status == 0
    assert "Traceback" not in said


KILLER = f"""
import os, sys
from textcls.server import intake
# What a damaged graph may do to whoever runs it.
intake._CODE = "import os; os.kill(os.getpid(), 11)"
{MAIN}
"""


@pytest.mark.parametrize("count", ["1", "2"])
def test_a_file_that_kills_whoever_tests_it_kills_nobody_who_answers(model: Path, count: str) -> None:
    with served(model, "--workers", count, code=KILLER) as running:
        running.process.send_signal(signal.SIGUSR1)
        until(lambda: running.numbers()[REFUSED] == 1)
        assert running.label() == "billing"
        status, said = running.stop()
    assert status == 0
    assert "ended (SIGSEGV) before it was done" in said


# File systems that hang


@pytest.fixture
def hanging_folder() -> Iterator[Path]:
    """A folder of a file system that never answers: FUSE without anybody behind it."""
    libc = ctypes.CDLL(None, use_errno=True)
    folder = Path(tempfile.mkdtemp())
    try:
        device = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        pytest.skip("there is no /dev/fuse that this user may open")
    options = f"fd={device},rootmode=40000,user_id=0,group_id=0".encode()
    try:
        if libc.mount(b"hanging", bytes(folder), b"fuse", 0, options):
            pytest.skip("this user may not mount")
        yield folder
    finally:
        libc.umount2(bytes(folder), 2)  # MNT_DETACH: whoever still waits is let go when the device is closed
        os.close(device)
        folder.rmdir()


def hang(path: Path, folder: Path) -> None:
    """Let what is at `path` be in `folder`."""
    link = path.with_suffix(".link")
    link.symlink_to(folder / path.name)
    link.replace(path)


@pytest.mark.parametrize("count", ["1", "2"])
def test_while_a_file_system_hangs_the_service_answers_and_a_reload_is_refused_in_the_end(
    model: Path, hanging_folder: Path, count: str
) -> None:
    with served(model, "--workers", count, "--load-seconds", "12") as running:
        hang(model, hanging_folder)
        running.process.send_signal(signal.SIGUSR1)
        for _ in range(10):
            assert running.label() == "billing"
        until(lambda: running.numbers()[REFUSED] == 1)
        answer = running.reload()
        assert answer.status_code == 409
        assert "could not be read and tested within load_seconds, which is 12" in answer.json()["error"]["message"]
        assert running.stop()[0] == 0


def test_while_a_file_system_hangs_dead_workers_are_replaced_and_the_service_can_be_stopped(
    model: Path, hanging_folder: Path
) -> None:
    with served(model, "--workers", "2", "--load-seconds", "300") as running:
        hang(model, hanging_folder)
        running.process.send_signal(signal.SIGUSR1)
        before = running.workers()
        os.kill(before[0], signal.SIGKILL)
        until(lambda: len(running.workers()) == 2 and before[0] not in running.workers())
        until(lambda: running.numbers()["textcls_workers"] == 2)
        assert running.label() == "billing"
        assert running.stop()[0] == 0


def test_a_worker_that_reloads_from_a_hanging_file_system_can_be_stopped(model: Path, hanging_folder: Path) -> None:
    with served(model, "--load-seconds", "300") as running:
        hang(model, hanging_folder)
        running.process.send_signal(signal.SIGUSR1)
        assert running.label() == "billing"
        assert running.stop()[0] == 0


def test_keys_in_a_pipe_that_nobody_writes_to_hold_up_nobody(model: Path, tmp_path: Path) -> None:
    keys = tmp_path / "keys"
    keys.write_text("key-of-the-first-client")
    with served(model, "--workers", "2", "--load-seconds", "12", "--api-keys-file", keys) as running:
        running.client.headers["x-api-key"] = "key-of-the-first-client"
        keys.unlink()
        os.mkfifo(keys)
        running.process.send_signal(signal.SIGUSR1)
        until(lambda: running.numbers()[REFUSED] == 1)
        assert running.label() == "billing"
        status, said = running.stop()
    assert status == 0
    assert "the keys could not be read and tested within load_seconds" in said


def test_a_start_from_a_hanging_file_system_ends_in_one_sentence(hanging_folder: Path) -> None:
    status, said = ended(hanging_folder / "a.onnx", "--load-seconds", "1")
    assert status == 6
    assert said.count("\n") == 1
    assert "a.onnx could not be read and tested within load_seconds, which is 1" in said


def test_copies_that_were_begun_by_a_process_that_was_killed_are_removed(model: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    shelf = Shelf(folder, [str(model)], Settings())
    shelf.publish()
    (folder / "0123.onnx.99.part").write_bytes(b"half")
    shelf.publish()
    assert not list(folder.glob("*.part"))


def test_an_exchange_waits_for_another_and_not_for_ever(model: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    shelf = Shelf(folder, [str(model)], Settings(load_seconds=0.2))
    with shelf._alone(0.2), pytest.raises(SurroundingsError, match="Another exchange of the models is still under way"):
        shelf.publish()


# Reloads that are asked for early


@pytest.mark.parametrize("count", ["1", "2"])
@pytest.mark.parametrize("moment", ["textcls.server.run.listen", "textcls.server.shared_folder.shared_folder"])
def test_a_reload_that_is_asked_for_during_the_start_is_done_after_it(model: Path, count: str, moment: str) -> None:
    module, _, name = moment.rpartition(".")
    code = f"""
import os, signal
import {module} as module
import textcls.server.run as run
real = module.{name}
def early(*given):
    os.kill(os.getpid(), signal.SIGUSR1)
    return real(*given)
run.{name} = early
{MAIN}
"""
    with served(model, "--workers", count, code=code) as running:
        until(lambda: running.numbers()["textcls_generation"] == 2)
        assert running.numbers()[DONE] == 1


def test_a_reload_that_is_asked_for_while_the_command_is_being_imported_is_done_after_the_start(model: Path) -> None:
    code = f"""
import builtins, os, signal
real = builtins.__import__
asked = []
def early(name, *given, **more):
    if name == "uvicorn" and not asked:
        asked.append(os.kill(os.getpid(), signal.SIGUSR1))
    return real(name, *given, **more)
builtins.__import__ = early
{MAIN}
"""
    with served(model, code=code) as running:
        until(lambda: running.numbers()["textcls_generation"] == 2)


def test_workers_that_hear_of_a_reload_before_they_watch_do_it_after_their_start(model: Path) -> None:
    line = [sys.executable, "-u", "-c", MAIN, "serve", str(model), "--port", "0", "--workers", "2"]
    with subprocess.Popen(line, stdout=subprocess.PIPE, text=True) as process:
        try:
            asked: set[int] = set()
            while len(asked) < 2 and process.poll() is None:
                for pid in set(workers(process)) - asked:
                    os.kill(pid, signal.SIGUSR1)
                    asked.add(pid)
            found = re.search(r"on (http://127\.0\.0\.1:\d+)\n", process.stdout.readline())  # type: ignore[union-attr]
            assert found
            with client_of(found[1]) as client:
                until(lambda: numbers(client)["textcls_generation"] == 3)
                assert set(workers(process)) == asked
        finally:
            process.terminate()
            process.wait(PATIENCE)


def test_workers_are_replaced_after_the_start_if_that_is_asked_for_during_it(model: Path) -> None:
    code = f"""
import os, signal
import textcls.server.run as run
real = run.listen
def early(*given):
    os.kill(os.getpid(), signal.SIGHUP)
    return real(*given)
run.listen = early
{MAIN}
"""
    with served(model, "--workers", "2", code=code) as running:
        before = set(running.workers())
        until(lambda: len(running.workers()) == 2 and not before & set(running.workers()))
        assert running.label() == "billing"


# Labels that change


def test_a_reload_that_changes_the_labels_says_so_in_its_answer_and_in_the_log(model: Path, model_path: Path) -> None:
    with served(model) as running:
        assert running.reload().json()["changed_labels"] == []
        with_metadata(model_path, model, labels=["accounts", *LABELS[1:]])
        expected = [{"model": "tickets", "added": ["accounts"], "removed": ["account"]}]
        assert running.reload().json()["changed_labels"] == expected
        said = running.stop()[1]
    assert said.count("The labels are others than before, of tickets: 1 added 'accounts', 1 removed 'account'") == 1


def test_labels_in_another_order_are_the_same_labels(model: Path, model_path: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    shelf = Shelf(folder, [str(model)], Settings(same_labels=True))
    shelf.publish()
    with_metadata(model_path, model, labels=LABELS[::-1])
    assert shelf.publish() == (2, ())


@pytest.mark.parametrize("count", ["1", "2"])
def test_a_reload_that_changes_the_labels_is_refused_if_they_must_be_the_same(
    model: Path, model_path: Path, count: str
) -> None:
    with served(model, "--workers", count, "--same-labels") as running:
        with_metadata(model_path, model, labels=["accounts", *LABELS[1:]])
        answer = running.reload()
        assert answer.status_code == 409
        said = "The labels would be others (tickets: 1 added 'accounts', 1 removed 'account'), and same_labels is set"
        assert said in answer.json()["error"]["message"]
        running.process.send_signal(signal.SIGUSR1)
        until(lambda: running.numbers()[REFUSED] == 2)
        (card,) = running.client.get("/v1/models").json()["models"]
        assert card["labels"] == LABELS


def test_an_order_comes_to_the_process_as_it_was_given(tmp_path: Path) -> None:
    settings = Settings(api_keys_file=tmp_path / "keys", cors_origin=("https://a", "https://b"), load_seconds=7)
    order = intake.Order(("a=b.onnx", "c\udcff.onnx"), settings, tmp_path)
    assert intake.Order.from_json(order.to_json()) == order
