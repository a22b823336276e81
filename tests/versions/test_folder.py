"""The folder of a registry: a version is there whole or not at all, whoever is killed and whoever else publishes."""

import json
import os
import resource
import signal
import subprocess
import sys
from contextlib import nullcontext
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pytest

from tests.command_line import succeed
from tests.service.processes import MAIN, PATIENCE
from tests.versions.conftest import Model
from textcls import ArtifactError, InputError
from textcls.server.models.registry import resolve
from textcls.versions import folder as versions
from textcls.versions.folder import Registry
from textcls.versions.record import Version

# Publishing, and the process that does it is killed at the fsync of this number: each file and each folder has one.
KILLED = f"""
import os, signal, sys
at, real = int(os.environ["KILL_AT"]), os.fsync
def fsync(file):
    global at
    if at == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    at -= 1
    real(file)
os.fsync = fsync
{MAIN}
"""


# Of a process with little room for files: what Python compiles would be cut off, too, and kept so.
WITHOUT_BYTECODE = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}


def publishing(*arguments: str | Path, code: str = MAIN, **given: object) -> "subprocess.Popen[str]":
    line = [sys.executable, "-c", code, "publish", *map(str, arguments)]
    return subprocess.Popen(line, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **given)  # type: ignore[call-overload,no-any-return]


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_kill_at_any_moment_leaves_no_half_version(model: Model, tmp_path: Path) -> None:
    registry = tmp_path / "registry"
    first, second = model("first.onnx"), model("second.onnx")
    succeed("publish", first, registry, "--promote")
    for at in range(20):
        process = publishing(second, registry, code=KILLED, env={**os.environ, "KILL_AT": str(at)})
        said = process.communicate(timeout=PATIENCE)[1]
        if process.returncode == 0:
            break
        assert process.returncode == -signal.SIGKILL, said
        opened = Registry(registry)
        # Not there, or, once it has its name, whole.
        for number in opened.numbers():
            assert opened.load(number).info.example == ("first.onnx", "second.onnx")[number - 1]
        assert [source.version for source in resolve([str(registry)])] == ["1"]
    assert at > 4
    assert Registry(registry).numbers() == [1, 2]
    assert names(registry) == [".lock", "1", "2", "registry.json"]
    assert names(registry / "2") == ["README.md", "model.onnx", "version.json"]


def test_a_kill_while_the_registry_is_made_leaves_a_folder_that_can_be_published_to(
    model: Model, tmp_path: Path
) -> None:
    path = model("first.onnx")
    for at in range(3):
        registry = tmp_path / f"registry-{at}"
        process = publishing(path, registry, code=KILLED, env={**os.environ, "KILL_AT": str(at)})
        process.communicate(timeout=PATIENCE)
        assert process.returncode == -signal.SIGKILL
        succeed("publish", path, registry)
        assert Registry(registry).numbers() == [1]


def test_of_several_who_publish_at_once_each_gets_a_number_of_its_own(model: Model, tmp_path: Path) -> None:
    registry = tmp_path / "registry"
    paths = [model(f"{letter}.onnx") for letter in "abcd"]
    processes = [publishing(path, registry, "--name", "tickets") for path in [*paths, paths[0]]]
    said = [process.communicate(timeout=PATIENCE) for process in processes]
    assert [process.returncode for process in processes] == [0] * 5, said
    opened = Registry(registry)
    assert opened.numbers() == [1, 2, 3, 4]
    assert {opened.load(number).info.example for number in opened.numbers()} == {path.name for path in paths}
    assert sum("nothing was added" in out for out, _ in said) == 1


def test_where_locks_do_nothing_a_number_is_still_given_once(
    model: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    registry = tmp_path / "registry"
    succeed("publish", model("first.onnx"), registry)
    monkeypatch.setattr(versions, "locked", lambda *_: nullcontext())
    # The other has published since the numbers were looked up.
    monkeypatch.setattr(Registry, "numbers", lambda self: [])
    succeed("publish", model("second.onnx"), registry)
    assert json.loads((registry / "2" / "version.json").read_text())["version"] == 2
    assert Registry(registry).load(1).info.example == "first.onnx"


def test_without_room_nothing_is_published_and_one_sentence_says_so(model: Model, tmp_path: Path) -> None:
    registry = tmp_path / "registry"
    succeed("publish", model("first.onnx"), registry)

    def little_room() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))

    process = publishing(model("second.onnx"), registry, preexec_fn=little_room, env=WITHOUT_BYTECODE)
    said = process.communicate(timeout=PATIENCE)[1]
    assert process.returncode == 6
    assert said == (
        f"Error: {registry} cannot be written to: File too large; free some space there, and publish again. "
        "Nothing was changed.\n"
    )
    assert names(registry) == [".lock", "1", "registry.json"]
    new = tmp_path / "new"
    process = publishing(model("third.onnx"), new, preexec_fn=little_room, env=WITHOUT_BYTECODE)
    assert "Nothing was changed." in process.communicate(timeout=PATIENCE)[1]
    assert names(new) == [".lock"]
    assert "tickets, version 1" in succeed("publish", model("fourth.onnx"), new, "--name", "tickets")


def test_a_number_that_was_promoted_is_not_given_again(model: Model, tmp_path: Path) -> None:
    registry = tmp_path / "registry"
    succeed("publish", model("first.onnx"), registry, "--promote")
    (registry / "1").rename(tmp_path / "taken away")
    succeed("publish", model("second.onnx"), registry)
    assert Registry(registry).numbers() == [2]


def test_what_was_published_and_is_damaged_is_published_anew(model: Model, tmp_path: Path) -> None:
    registry, path = tmp_path / "registry", model("first.onnx")
    succeed("publish", path, registry)
    (registry / "1" / "model.onnx").write_bytes(path.read_bytes()[:-1] + b"?")
    with pytest.raises(ArtifactError, match="it is damaged or was changed"):
        Registry(registry).load(1)
    succeed("publish", path, registry)
    assert Registry(registry).load(2).info.example == "first.onnx"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", r"registry.json is damaged \("),
        (b"[]", "it is not an object"),
        (b"\xff", r"registry.json is damaged \("),
        (b"[" * 100_000, "registry.json is damaged"),
        (b'{"registry_format": 1, "name": "a", "history": [], "number": 1' + b"0" * 5000 + b"}", "is damaged"),
    ],
    ids=["empty", "list", "bytes", "deep", "digits"],
)
def test_a_damaged_registry_is_named(tmp_path: Path, content: bytes, said: str) -> None:
    (tmp_path / "registry.json").write_bytes(content)
    with pytest.raises(ArtifactError, match=said):
        Registry.open(tmp_path).state()


def test_what_is_too_large_to_be_a_registry_is_not_read(tmp_path: Path) -> None:
    with (tmp_path / "registry.json").open("wb") as file:
        file.truncate(2**34)
    with pytest.raises(ArtifactError, match="it is not a plain file of at most"):
        Registry.open(tmp_path).state()


def test_a_folder_that_is_none_is_told(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"is not a registry: it has no registry\.json"):
        Registry.open(tmp_path)
    with pytest.raises(InputError, match="There is no folder"):
        Registry.open(tmp_path / "nothing")


def test_of_two_who_make_a_registry_at_once_the_second_is_told_its_name(registry: Path) -> None:
    Registry.make(registry, "tickets")
    assert Registry.make(registry, "tickets").state().name == "tickets"
    with pytest.raises(InputError, match="is the registry of 'tickets', not of 'mails'"):
        Registry.make(registry, "mails")


def test_what_another_has_published_meanwhile_is_not_added_again(registry: Path, model: Model) -> None:
    content = model("tickets.onnx").read_bytes()
    about = Version(
        version=0, sha256=sha256(content).hexdigest(), bytes=len(content), created="", textcls="", labels=7, held_out={}
    )
    opened = Registry.make(registry, "tickets")
    assert opened.add(content, {}, about) == (replace(about, version=1), True)
    assert opened.add(content, {"README.md": b"another"}, about) == (replace(about, version=1), False)
    assert names(registry / "1") == ["model.onnx", "version.json"]
