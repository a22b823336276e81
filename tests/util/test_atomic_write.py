"""Writing a file: whole or not at all, whatever it replaces and where links lead, and with the mode it should have."""

import errno
import os
import re
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from textcls import Classifier
from textcls._util.atomic_write import atomic_write, check_not_an_input, check_output_path, write_computed
from textcls.errors import ArtifactError, ConfigError, InputError, SurroundingsError


@pytest.fixture
def umask() -> Iterator[None]:
    before = os.umask(0o027)
    yield
    os.umask(before)


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_file_is_there_once_it_is_whole_and_alone(tmp_path: Path) -> None:
    path = tmp_path / "out.bin"
    with atomic_write(path) as file:
        file.write(b"half")
        assert not path.exists()
        file.write(b" and whole")
    assert path.read_bytes() == b"half and whole"
    assert list(tmp_path.iterdir()) == [path]


def test_an_old_file_is_replaced_only_by_a_whole_one(tmp_path: Path) -> None:
    path = tmp_path / "out.bin"
    path.write_bytes(b"old")
    with atomic_write(path) as file:
        file.write(b"new")
        file.flush()
        assert path.read_bytes() == b"old"
    assert path.read_bytes() == b"new"


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit])
def test_an_exception_leaves_the_old_file_and_nothing_else(tmp_path: Path, error: type[BaseException]) -> None:
    path = tmp_path / "out.bin"
    path.write_bytes(b"old")

    def write_half() -> None:
        with atomic_write(path) as file:
            file.write(b"half")
            raise error("half way")

    with pytest.raises(error, match="half way"):
        write_half()
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_an_exception_leaves_nothing_where_nothing_was(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="stopped by the test"), atomic_write(tmp_path / "out.bin"):
        raise ValueError("stopped by the test")
    assert list(tmp_path.iterdir()) == []


def test_an_output_folder_that_does_not_exist_is_named(tmp_path: Path) -> None:
    path = tmp_path / "no" / "out.bin"
    for attempt in (check_output_path, lambda path: atomic_write(path).__enter__()):
        with pytest.raises(SurroundingsError, match=re.escape(f"The folder {tmp_path / 'no'} does not exist")):
            attempt(path)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_is_no_output(tmp_path: Path) -> None:
    with pytest.raises(SurroundingsError, match=re.escape(f"{tmp_path} is a folder; name a file in it")):
        check_output_path(tmp_path)


def test_a_folder_that_takes_no_files_is_named_even_to_root() -> None:
    with pytest.raises(SurroundingsError, match="The folder /proc cannot be written to: "):
        check_output_path(Path("/proc/out.bin"))


def test_what_is_no_plain_file_is_never_replaced(tmp_path: Path) -> None:
    # Written as root, `--output /dev/null` would otherwise put a file in the place of the device.
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with (
        pytest.raises(SurroundingsError, match=re.escape(f"{pipe} is not a plain file and cannot be replaced")),
        atomic_write(pipe),
    ):
        pass
    assert pipe.is_fifo()
    assert list(tmp_path.iterdir()) == [pipe]


def test_an_output_name_that_no_system_allows_is_refused(tmp_path: Path) -> None:
    with (
        pytest.raises(SurroundingsError, match="cannot be written: File name too long"),
        atomic_write(tmp_path / ("a" * 300)),
    ):
        pass
    assert list(tmp_path.iterdir()) == []


# Modes


@pytest.mark.usefixtures("umask")
def test_a_new_file_has_the_mode_that_the_umask_leaves(tmp_path: Path) -> None:
    path = tmp_path / "out.bin"
    with atomic_write(path) as file:
        file.write(b"new")
    assert mode_of(path) == 0o640


@pytest.mark.usefixtures("umask")
@pytest.mark.parametrize("mode", [0o600, 0o664, 0o444])
def test_a_file_that_is_replaced_keeps_its_mode(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "out.bin"
    path.write_bytes(b"old")
    path.chmod(mode)
    with atomic_write(path) as file:
        file.write(b"new")
        file.flush()
        (beside,) = set(tmp_path.iterdir()) - {path}
        assert mode_of(beside) == 0o600
    assert path.read_bytes() == b"new"
    assert mode_of(path) == mode


# Links


@pytest.mark.parametrize("before", [b"old", None])
def test_a_link_stays_a_link_and_what_it_points_to_is_written(tmp_path: Path, before: bytes | None) -> None:
    target, link = tmp_path / "elsewhere" / "target.bin", tmp_path / "link.bin"
    target.parent.mkdir()
    if before is not None:
        target.write_bytes(before)
    link.symlink_to(Path("elsewhere") / "target.bin")
    with atomic_write(link) as file:
        file.write(b"new")
        file.flush()
        # In the folder of the target: from another file system it could not be renamed.
        assert len(set(target.parent.iterdir()) - {target}) == 1
    assert link.is_symlink()
    assert target.read_bytes() == b"new"
    assert not target.is_symlink()
    assert sorted(tmp_path.rglob("*")) == sorted([link, target, target.parent])


def test_a_link_to_itself_is_no_output(tmp_path: Path) -> None:
    link = tmp_path / "link.bin"
    link.symlink_to(link)
    with pytest.raises(SurroundingsError, match="cannot be written"), atomic_write(link):
        pass
    assert list(tmp_path.iterdir()) == [link]


def test_an_input_is_no_output_under_any_name(tmp_path: Path) -> None:
    path, link = tmp_path / "in.csv", tmp_path / "link.csv"
    path.write_bytes(b"text")
    link.symlink_to(path)
    with pytest.raises(InputError, match="is also the input; choose another name"):
        check_not_an_input(link, [tmp_path / "no.csv", path])
    check_not_an_input(tmp_path / "out.csv", [path])


def test_no_room_for_a_new_file_is_reported_as_no_room_in_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "full")

    monkeypatch.setattr(os, "open", full)
    with pytest.raises(SurroundingsError, match="cannot be written to: No space left on device"):
        atomic_write(tmp_path / "out.bin").__enter__()


def test_a_file_whose_place_is_taken_at_the_end_is_kept_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "answers.csv"

    def write() -> None:
        with atomic_write(path) as file:
            file.write(b"hours of work")
            path.mkdir()

    with pytest.raises(SurroundingsError, match="cannot be replaced: Is a directory") as caught:
        write()
    kept = Path(str(caught.value).rpartition(" ")[2].rstrip("."))
    assert kept.suffix == ".csv"
    assert kept.read_bytes() == b"hours of work"


def test_what_was_computed_is_kept_elsewhere_where_its_place_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    path = tmp_path / "out" / "model.onnx"
    path.mkdir(parents=True)
    with pytest.raises(SurroundingsError, match=r"is a folder; .* What was computed is not lost: ") as caught:
        write_computed(path, b"hours of work")
    kept = Path(str(caught.value).rpartition(": ")[2])
    assert kept.name == "model.onnx"
    assert kept.read_bytes() == b"hours of work"
    assert list(path.iterdir()) == []


def test_where_there_is_no_room_anywhere_the_reason_is_told_and_nothing_is_left(tmp_path: Path) -> None:
    code = """
import resource, sys, tempfile
from pathlib import Path
from textcls._util.atomic_write import write_computed
tempfile.tempdir = sys.argv[1] + "/tmp"
Path(tempfile.tempdir).mkdir()
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
import signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
try:
    write_computed(Path(sys.argv[1]) / "model.onnx", b"x" * 100_000)
except Exception as error:
    print(type(error).__name__, error)
"""
    done = subprocess.run([sys.executable, "-B", "-c", code, str(tmp_path)], capture_output=True, text=True, check=True)
    assert done.stdout == (
        f"SurroundingsError {tmp_path}/model.onnx cannot be written: File too large; free some space, or choose "
        "another output.\n"
    )
    assert [path.name for path in tmp_path.rglob("*")] == ["tmp"]


def test_what_a_killed_process_has_left_is_removed_by_the_next_and_nothing_that_is_being_written(
    tmp_path: Path,
) -> None:
    code = """
import os, signal, sys
from pathlib import Path
from textcls._util.atomic_write import atomic_write
with atomic_write(Path(sys.argv[1]) / sys.argv[2]) as file:
    file.write(b"half")
    file.flush()
    if sys.argv[2] == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    print("writing", flush=True)
    sys.stdin.read()
"""
    command = [sys.executable, "-c", code, str(tmp_path)]
    subprocess.run([*command, "killed"], check=False)
    (left,) = tmp_path.glob(".textcls-*")
    with subprocess.Popen([*command, "whole"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as writing:
        assert writing.stdout is not None
        assert writing.stdout.readline() == b"writing\n"
        for each in tmp_path.glob(".textcls-*"):
            os.utime(each, (0, 0))
        with atomic_write(tmp_path / "mine") as file:
            file.write(b"mine")
        assert not left.exists()
        writing.communicate(b"")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mine", "whole"]


def test_what_could_not_take_its_place_and_lies_beside_it_is_not_kept_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "kept"))
    path = tmp_path / "model.onnx"
    replace = Path.replace
    monkeypatch.setattr(Path, "replace", lambda one, to: _refuse() if Path(to) == path else replace(one, to))
    with pytest.raises(SurroundingsError, match="the whole file is ") as caught:
        write_computed(path, b"hours of work")
    (beside,) = tmp_path.iterdir()
    assert beside.read_bytes() == b"hours of work"
    assert str(caught.value).endswith(f"{beside}.")


def _refuse() -> None:
    raise PermissionError(13, "Permission denied")


def test_the_address_of_a_store_is_no_folder_of_this_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("s3:/bucket").mkdir(parents=True)
    with pytest.raises(ConfigError, match=r"^The output is an address, s3://\.\.\., and has to be a file"):
        check_output_path(Path("s3://key:secret@bucket/m.onnx"))
    with pytest.raises(ArtifactError, match="textcls fetch copies it"):
        Classifier.load("s3://key:secret@bucket/m.onnx")
    check_output_path(Path("s3:m.onnx"))
