"""Files that never answer hold up neither requests nor signals."""

import ctypes
import os
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.service.processes import ended, until
from tests.service.reloading import REFUSED, served


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
    with served(model, "--workers", count, "--load-seconds", "4") as running:
        hang(model, hanging_folder)
        running.process.send_signal(signal.SIGUSR1)
        for _ in range(10):
            assert running.label() == "billing"
        until(lambda: running.numbers()[REFUSED] == 1)
        answer = running.reload()
        assert answer.status_code == 409
        assert "could not be read and tested within load_seconds, which is 4" in answer.json()["error"]["message"]
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
    with served(model, "--workers", "2", "--load-seconds", "4", "--api-keys-file", keys) as running:
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
    assert "a.onnx could not be read and tested within --load-seconds, which is 1" in said
