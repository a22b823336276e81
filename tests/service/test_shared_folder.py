"""The folder that the workers share: no room in it, none at all, copies that are left in it."""

import errno
import os
import resource
import shutil
import signal
import time
from hashlib import sha256
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.service.clients import client_of, numbers, post
from tests.service.processes import PATIENCE, command, until
from textcls import SurroundingsError
from textcls.cli import main
from textcls.server.models.store import GenerationStore
from textcls.server.settings import Settings


@pytest.mark.parametrize("count", ["1", "2"])
def test_models_for_which_there_is_no_room_are_refused_and_the_old_ones_go_on_answering(
    model_path: Path, whole_tokens_path: Path, tmp_path: Path, count: str
) -> None:
    path, folder = tmp_path / "tickets.onnx", tmp_path / "run"
    folder.mkdir()
    shutil.copy(model_path, path)
    with (
        command(path, "--workers", count, "--runtime-dir", folder, env={"PYTHONDONTWRITEBYTECODE": "1"}) as (
            process,
            url,
        ),
        client_of(url) as c,
    ):
        resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (20_000, 20_000))
        shutil.copy(whole_tokens_path, path)
        process.send_signal(signal.SIGUSR1)
        until(lambda: numbers(c)['textcls_reloads_total{result="refused"}'] == 1)
        assert post(c).status_code == 200
        assert numbers(c)["textcls_generation"] == 1
        (shared,) = folder.iterdir()
        copies = [file.name for file in shared.iterdir() if file.stat().st_size >= 20_000 and file.suffix != ".counts"]
        assert copies == [f"{sha256(model_path.read_bytes()).hexdigest()}.onnx"]
        process.terminate()
        said = process.communicate(timeout=PATIENCE)[1]
    assert process.returncode == 0
    assert "cannot be written: File too large; free some space there, or start the service with --runtime-dir" in said


def test_models_that_are_refused_after_they_were_copied_leave_no_copy(
    store: GenerationStore, tmp_path: Path, whole_tokens_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    replace = Path.replace

    def full(self: Path, target: Path) -> Path:
        if target.name == "generation.json":
            raise OSError(errno.ENOSPC, "no room")
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", full)
    shutil.copy(whole_tokens_path, tmp_path / "tickets.onnx")
    with pytest.raises(SurroundingsError, match=r"generation\.json cannot be written: No space left on device"):
        store.publish()
    assert not list(store.folder.glob("generation.*[0-9]"))
    assert store.number() == 1
    assert len(list(store.folder.glob("*.onnx"))) == 1


def test_copies_of_models_that_nobody_serves_any_more_are_removed(
    store: GenerationStore, tmp_path: Path, model_path: Path
) -> None:
    for _ in range(3):
        store.publish()
    assert len(list(store.folder.glob("*.onnx"))) == 1


def test_copies_that_were_begun_by_a_process_that_was_killed_are_removed(model: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    store = GenerationStore(folder, [str(model)], Settings())
    store.publish()
    (folder / "0123.onnx.99.part").write_bytes(b"half")
    store.publish()
    assert not list(folder.glob("*.part"))


@pytest.mark.parametrize("wanted", [None, Path("/nowhere")])
def test_without_any_writable_folder_one_sentence_says_what_to_set(
    model_path: Path, monkeypatch: pytest.MonkeyPatch, wanted: Path | None
) -> None:
    def refuse(**_: object) -> str:
        raise FileNotFoundError("No usable temporary directory found")

    monkeypatch.setattr("tempfile.mkdtemp", refuse)
    options = [] if wanted is None else ["--runtime-dir", str(wanted)]
    done = CliRunner().invoke(main, ["serve", str(model_path), "--port", "0", *options])
    place = wanted or "/dev/shm or the temporary folder"
    assert (done.exit_code, done.stderr) == (
        6,
        f"Error: No file can be made in {place}: name a writable folder with --runtime-dir.\n",
    )


def test_what_a_killed_service_left_is_removed_by_the_next_and_what_a_living_one_uses_is_not(
    model_path: Path, tmp_path: Path
) -> None:
    options: tuple[str | Path, ...] = (model_path, "--runtime-dir", tmp_path)
    with command(*options) as (killed, _):
        killed.kill()
        killed.wait(PATIENCE)
    (dead,) = tmp_path.iterdir()
    # However long the next one takes to start, the dead one is too young to be removed.
    os.utime(dead / "owner", (time.time() + PATIENCE,) * 2)
    with command(*options):
        (living,) = set(tmp_path.iterdir()) - {dead}
        for folder in (dead, living):
            os.utime(folder / "owner", (0, 0))
        with command(*options):
            assert not dead.exists()
            assert len(list(living.glob("*.onnx"))) == 1


@pytest.mark.parametrize("count", ["1", "2"])
def test_a_service_whose_shared_folder_is_removed_says_so_and_ends(
    model_path: Path, tmp_path: Path, count: str
) -> None:
    with command(model_path, "--workers", count, "--runtime-dir", tmp_path) as (process, _):
        shutil.rmtree(next(tmp_path.iterdir()))
        said = process.communicate(timeout=PATIENCE)[1]
    assert process.returncode == 6
    assert "which the workers share, cannot be used: No such file or directory; restart the service" in said
    assert "Traceback" not in said
