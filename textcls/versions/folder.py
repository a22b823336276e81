"""The folder of a registry: its content, adding a version, and changing what is promoted.

A version is a folder named by its number, and never changes once it is there: it is written under a hidden name, synced
to disk, and renamed. What is promoted is recorded in `registry.json`, which is replaced as a whole: a link would not
survive a copy to a store. Every writer holds the lock of a hidden file.
"""

import errno
import json
import os
import re
import shutil
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from hashlib import sha256
from itertools import count
from pathlib import Path
from secrets import token_hex
from typing import Any, Final

from textcls._util.atomic_write import atomic_write, sync_folder
from textcls._util.file_lock import locked
from textcls.errors import ArtifactError, InputError, NotFoundError, SurroundingsError, TextclsError
from textcls.model import artifact
from textcls.model.classifier import Classifier
from textcls.versions.record import State, Version

REGISTRY: Final = artifact.REGISTRY
VERSION: Final = "version.json"
MODEL: Final = "model.onnx"
_LOCK: Final = ".lock"
# The prefix of the folders of versions that are being written.
_PART: Final = ".textcls-publish-"
_LOCK_SECONDS: Final = 60.0
# A history of one promotion per night for a hundred years takes 4 MB.
_MOST_BYTES: Final = 16_000_000
_NUMBER: Final = re.compile(r"[1-9][0-9]{0,8}")
_ADVICE: Final = "free some space there, and publish again"
Change = Callable[[State], State]


@dataclass(frozen=True, slots=True)
class Listed:
    """A version, or what is wrong with it.

    Attributes:
        number: the number of the version.
        version: what its `version.json` says.
        problem: why it cannot be used, in a sentence.
    """

    number: int
    version: Version | None
    problem: str | None = None


def is_registry(folder: Path) -> bool:
    """Return whether `folder` is a registry."""
    return (folder / REGISTRY).is_file()


def read_version(folder: Path) -> Version:
    """Return what the `version.json` in `folder` says.

    Raises:
        ArtifactError: it is damaged.
    """
    try:
        return Version.from_json(_read_json(folder / VERSION))
    except FileNotFoundError as error:
        raise ArtifactError(f"{folder} is not a version of a registry: it has no {VERSION}.") from error
    except ValueError as error:
        raise ArtifactError(f"{folder / VERSION} is damaged ({error}); publish the model again.") from error


def check_content(folder: Path, content: bytes) -> None:
    """Refuse the content of a model file if it is not what was published.

    Args:
        folder: the folder of the version.
        content: the content of its model file.

    Raises:
        ArtifactError: it is not, or the version is damaged.
    """
    expected, found = read_version(folder).sha256, sha256(content).hexdigest()
    if found != expected:
        raise ArtifactError(
            f"{folder / MODEL} has the SHA-256 {found}, and {expected} was published: it is damaged or was changed; "
            "promote another version, and publish this one again."
        )


class Registry:
    """A folder of versions.

    Attributes:
        folder: where it is.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @classmethod
    def open(cls, folder: Path) -> "Registry":
        """Return the registry in `folder`.

        Raises:
            InputError: there is none.
        """
        if folder.is_file():
            raise InputError(f"{folder} is a file, and a registry is a folder: textcls publish MODEL FOLDER makes one.")
        if not folder.is_dir():
            raise InputError(f"There is no folder {folder}; textcls publish MODEL {folder} makes a registry there.")
        if not is_registry(folder):
            raise InputError(f"{folder} is not a registry: it has no {REGISTRY}; textcls publish makes one.")
        return cls(folder)

    @classmethod
    def make(cls, folder: Path, name: str, *, exactly: bool = True) -> "Registry":
        """Return the registry in `folder`; make it, with this name, if there is none.

        Args:
            folder: where it is.
            name: the name of the model.
            exactly: whether an existing registry must have this name.

        Raises:
            InputError: the folder contains something else, or a registry with another name.
            SurroundingsError: it cannot be made.
        """
        with _naming(folder):
            folder.mkdir(parents=True, exist_ok=True)
        registry = cls(folder)
        with registry._alone():
            if not is_registry(folder):
                check_new(folder)
                registry._write(State(name))
        if (found := registry.state().name) != name and exactly:
            raise InputError(f"{folder} is the registry of {found!r}, not of {name!r}: name another folder.")
        return registry

    @contextmanager
    def kept_if_filled(self) -> Iterator[None]:
        """If the block fails and there is no version, leave no registry, so that nothing was changed."""
        try:
            yield
        except BaseException:
            with suppress(TextclsError, OSError), self._alone():
                if not self.numbers():
                    (self.folder / REGISTRY).unlink(missing_ok=True)
            raise

    def state(self) -> State:
        """Return the name of the registry, and what is and was promoted.

        Raises:
            ArtifactError: it is damaged.
            InputError: it is gone.
        """
        path = self.folder / REGISTRY
        try:
            return State.from_json(_read_json(path))
        except FileNotFoundError as error:
            raise InputError(f"{self.folder} is not a registry: it has no {REGISTRY}.") from error
        except ValueError as error:
            raise ArtifactError(f"{path} is damaged ({error}); restore it from a copy.") from error

    def numbers(self) -> list[int]:
        """Return the numbers of all versions, ascending.

        Raises:
            SurroundingsError: the folder cannot be read.
        """
        with _naming(self.folder, "read"):
            return sorted(int(path.name) for path in self.folder.iterdir() if _NUMBER.fullmatch(path.name))

    def versions(self) -> list[Listed]:
        """Return all versions, by ascending number, each checked against what was published.

        Raises:
            SurroundingsError: the folder cannot be read.
        """
        return [self._listed(number) for number in self.numbers()]

    def path_of(self, number: int) -> Path:
        """Return the folder of a version."""
        return self.folder / str(number)

    def version(self, number: int) -> Version:
        """Return what the `version.json` of a version says.

        Raises:
            NotFoundError: there is no such version.
            ArtifactError: it is damaged.
        """
        if not self.path_of(number).is_dir():
            there = self.numbers()
            known = (
                f"it has {'version' if len(there) == 1 else 'versions'} {_listing(there)}" if there else "there is none"
            )
            raise NotFoundError(f"{self.folder} has no version {number}; {known}.")
        return read_version(self.path_of(number))

    def load(self, number: int) -> Classifier:
        """Return the model of a version, after checking that it is what was published and passes its self-test.

        Raises:
            NotFoundError: there is no such version.
            ArtifactError: it cannot be used.
        """
        self.version(number)
        path = self.path_of(number) / MODEL
        content = artifact.read_file(path)
        check_content(path.parent, content)
        return Classifier.from_bytes(content, path)

    def find(self, digest: str) -> Version | None:
        """Return the version published with this SHA-256, if its file still has it; None if there is none."""
        for path in map(self.path_of, self.numbers()):
            with suppress(ArtifactError):
                version = read_version(path)
                if version.sha256 == digest:
                    check_content(path, artifact.read_file(path / MODEL))
                    return version
        return None

    def add(self, content: bytes, files: Mapping[str, bytes], about: Version) -> tuple[Version, bool]:
        """Add a version, which appears whole or not at all.

        Args:
            content: the content of the model file.
            files: the files beside it, by name.
            about: the record of the version; its number is assigned here.

        Returns:
            The version, and whether it is new; if the same file was published before, that version.

        Raises:
            SurroundingsError: it cannot be written, and nothing has changed; or others write for too long.
        """
        with self._alone():
            self._sweep()
            same = self.find(about.sha256)
            if same is not None:
                return same, False
            return self._write_version({MODEL: content, **files}, about), True

    def change(self, change: Change) -> tuple[State, State]:
        """Change what is promoted, and return the states before and after.

        Raises:
            TextclsError: `change` raised it, and nothing has changed.
            SurroundingsError: it cannot be written, and nothing has changed; or others write for too long.
        """
        with self._alone():
            before = self.state()
            after = change(before)
            if after != before:
                self._write(after)
            return before, after

    def _listed(self, number: int) -> Listed:
        path = self.path_of(number)
        try:
            version = read_version(path)
        except ArtifactError as error:
            return Listed(number, None, str(error))
        try:
            check_content(path, artifact.read_file(path / MODEL))
        except ArtifactError as error:
            return Listed(number, version, str(error))
        return Listed(number, version)

    def _write_version(self, files: Mapping[str, bytes], about: Version) -> Version:
        beside = self.folder / f"{_PART}{token_hex(8)}"
        beside.mkdir()
        try:
            for name, content in files.items():
                _write_synced(beside / name, content)
            number = self._rename(beside, about)
        except BaseException:
            shutil.rmtree(beside, ignore_errors=True)
            raise
        sync_folder(self.folder)
        return replace(about, version=number)

    def _rename(self, beside: Path, about: Version) -> int:
        """Give a written version its number, rename its folder to it, and return it."""
        state = self.state()
        known = [*self.numbers(), *(one.version for one in state.history), 0]
        for number in count(max(known) + 1):
            content = json.dumps(replace(about, version=number).to_json(), ensure_ascii=False, indent=2) + "\n"
            _write_synced(beside / VERSION, content.encode())
            sync_folder(beside)
            try:
                # A rename never replaces a folder that is not empty, so two versions get two numbers even where locks
                # have no effect, as on some network file systems.
                beside.rename(self.path_of(number))
            except OSError as error:
                if error.errno not in (errno.EEXIST, errno.ENOTEMPTY):
                    raise
            else:
                return number
        raise AssertionError("count() has no end")

    def _write(self, state: State) -> None:
        content = json.dumps(state.to_json(), ensure_ascii=False, indent=2) + "\n"
        with atomic_write(self.folder / REGISTRY, "free some space there, and try again") as file:
            file.write(content.encode())
        sync_folder(self.folder)

    def _sweep(self) -> None:
        """Remove what killed publishers have left; a live one would hold the lock."""
        for path in self.folder.glob(f"{_PART}*"):
            shutil.rmtree(path, ignore_errors=True)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        busy = f"Another process has been writing to {self.folder} for {_LOCK_SECONDS:.0f} seconds: try later."
        with _naming(self.folder), locked(self.folder / _LOCK, _LOCK_SECONDS, busy):
            yield


def check_new(folder: Path) -> None:
    """Refuse a folder that contains anything other than a registry.

    Raises:
        InputError: it does, or it is not a folder.
        SurroundingsError: it cannot be read.
    """
    if is_registry(folder) or not (folder.exists() or folder.is_symlink()):
        return
    if not folder.is_dir():
        raise InputError(f"{folder} is a file, and a registry is a folder: name a new or an empty one.")
    with _naming(folder, "read"):
        other = sorted(path.name for path in folder.iterdir() if not path.name.startswith("."))
    if other:
        raise InputError(
            f"{folder} is not a registry: it has no {REGISTRY} and holds {other[0]!r}; name a new or an empty folder."
        )


def _listing(numbers: list[int]) -> str:
    """Return numbers as listed in a sentence: 1 to 4, or 1, 2, 4."""
    first, last = numbers[0], numbers[-1]
    if len(numbers) > 2 and len(numbers) == last - first + 1:
        return f"{first} to {last}"
    return ", ".join(map(str, numbers if len(numbers) <= 10 else [*numbers[:3], "...", *numbers[-3:]]))


def _read_json(path: Path) -> Any:
    """Return the content of a small JSON file.

    Raises:
        FileNotFoundError: it does not exist.
        ValueError: it is not JSON, or too large.
        ArtifactError: it cannot be read.
    """
    try:
        about = path.stat()
        if not stat.S_ISREG(about.st_mode) or about.st_size > _MOST_BYTES:
            raise ValueError(f"it is not a plain file of at most {_MOST_BYTES:,} bytes")
        return json.loads(path.read_bytes())
    except (FileNotFoundError, NotADirectoryError) as error:
        raise FileNotFoundError(error.errno, error.strerror, str(path)) from error
    except OSError as error:
        raise ArtifactError(f"{path} cannot be read: {os.strerror(error.errno or 0)}.") from error
    except RecursionError as error:
        raise ValueError("it is not plain JSON") from error


def _write_synced(path: Path, content: bytes) -> None:
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


@contextmanager
def _naming(folder: Path, what: str = "written to") -> Iterator[None]:
    """Turn an error of the system on the folder into one sentence.

    Raises:
        SurroundingsError: the system reports an error.
    """
    try:
        yield
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
        advice = _ADVICE if full else "give this user the right to, or name another folder"
        why = os.strerror(error.errno or 0)
        raise SurroundingsError(f"{folder} cannot be {what}: {why}; {advice}. Nothing was changed.") from error
