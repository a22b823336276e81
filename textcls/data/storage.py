"""Storage of whole files that are processed one by one: in local folders, or in a store given by a URL.

A store is accessed with pyarrow, which supports s3://, gs://, abfs:// and hdfs://, and everything in fsspec as
fsspec+sftp:// and the like; files at https:// or http:// are only read, one at a time, with the standard library. Files
are copied to this machine to be read, and from it when they are complete.
"""

import re
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from fnmatch import fnmatchcase
from glob import has_magic
from math import nan
from pathlib import Path, PurePosixPath
from secrets import token_hex
from tempfile import TemporaryDirectory
from typing import Any, Final, NamedTuple
from urllib.parse import SplitResult, quote, unquote, urlsplit

from textcls._util.atomic_write import atomic_write, check_output_path, no_space_for
from textcls.data import arrow, patterns
from textcls.data.folders import files_of
from textcls.errors import InputError, SurroundingsError

_HOST: Final = re.compile(r"[^:@\s]*(:\d+)?|\[[0-9a-fA-F:.]+\](:\d+)?")
_URL: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
# Names of files that are being written, by `atomic_write` and here.
# What needs pyarrow, for messages.
_WHAT: Final = "A file that a URL names"
_PART: Final = ".textcls-"
# A file that has not changed for this many seconds is no longer being written: it was left by a killed worker.
_LEFT: Final = 600
_HTTP: Final = ("http://", "https://")
# After this prefix a name is not quoted, unlike in other URLs.
_FSSPEC: Final = "fsspec+"
_KEY: Final = re.compile(r"://.*@")
# Options for a store after its address, such as ?region=eu-west-1; other question marks belong to patterns.
_QUERY: Final = re.compile(r"\?\w+=[^/]*$")
# Messages of stores, through pyarrow or urllib, about wrong or missing keys.
_REFUSED: Final = (
    "ACCESS_DENIED",
    "SIGNATURE",
    "INVALID_ACCESS_KEY",
    "status 401",
    "status 403",
    "Error 401",
    "Error 403",
)


@dataclass(frozen=True, slots=True)
class RemoteFile:
    """A file, a folder of files or a pattern given by a URL, as the source of a table.

    Attributes:
        url: the URL.
    """

    url: str

    def __str__(self) -> str:
        return without_secrets(self.url)


class Found(NamedTuple):
    """A file.

    Attributes:
        name: its path or URL.
        inside: its path within the requested folder, or within the fixed part of the pattern.
        bytes: its size; 0 for a file on a web server until `dated` requests it.
        changed: the time of its last change, in seconds since the epoch; NaN if unknown.
    """

    name: str
    inside: str
    bytes: int
    changed: float

    def __str__(self) -> str:
        return without_secrets(self.name)


def is_url(name: str) -> bool:
    """Return whether `name` is not a local path."""
    return _URL.match(name) is not None


def without_secrets(name: str) -> str:
    """Return a path, or a URL in a form safe to show: without the key before its host, and what follows its path."""
    if not is_url(name):
        return name
    if name.startswith(_FSSPEC) and not name.startswith(tuple(f"{_FSSPEC}{http}" for http in _HTTP)):
        return _KEY.sub("://", _QUERY.sub("", name))
    address = _address(name)
    host = address.netloc.rpartition("@")[2]
    # In a misspelt URL the key may be anywhere.
    return f"{address.scheme}://{host}{address.path}" if _HOST.fullmatch(host) else f"{address.scheme}://..."


def _address(name: str) -> SplitResult:
    """Return the parts of a URL.

    Raises:
        InputError: it is not a URL.
    """
    try:
        return urlsplit(name)
    except ValueError as error:
        # The part between scheme and path may contain a key, and so may a message about it.
        why = "" if "netloc" in str(error) else f": {error}"
        raise InputError(f"{name.partition('://')[0]}://... is not a URL that can be read{why}.") from error


def find(name: str) -> list[Found]:
    """Return the files that `name` means, sorted by name: a file, those in a folder, or those matching a pattern.

    Raises:
        InputError: there are none, or they cannot be read.
        MissingExtraError: pyarrow is not installed.
    """
    if name.lower().startswith(_HTTP):
        return [Found(name, _last_part(name), 0, nan)]
    if is_url(name):
        return _find_in_store(name)
    path = Path(name)
    if patterns.is_pattern(path):
        return [_on_disk(one, Path(_fixed(name) or path.anchor)) for one in patterns.matching(path) if one.is_file()]
    try:
        if path.is_dir():
            return [_on_disk(one, path) for one in files_of(path)]
        return [_on_disk(path, path.parent)]
    except FileNotFoundError as error:
        raise InputError(f"There is no file {name}.") from error
    except OSError as error:
        raise InputError(f"{name} cannot be read: {error.strerror}.") from error


def dated(file: Found) -> Found:
    """Return a file with the size and time that its web server reports, if any; other files already have theirs."""
    if not file.name.lower().startswith(_HTTP):
        return file
    from textcls.data.web import size_and_time

    try:
        return file._replace(**size_and_time(file.name))
    except OSError:  # reported when it is read
        return file


def _on_disk(path: Path, folder: Path) -> Found:
    about = path.stat()
    return Found(str(path), path.relative_to(folder).as_posix(), about.st_size, about.st_mtime)


def _fixed(pattern: str) -> str:
    """Return the folder before the first part of a pattern with a wildcard."""
    parts = pattern.split("/")
    return "/".join(parts[: next(i for i, part in enumerate(parts) if has_magic(part))])


def _last_part(url: str) -> str:
    return PurePosixPath(url if url.startswith(_FSSPEC) else unquote(_address(url).path)).name


def _below(url: str, inside: str) -> str:
    """Return the URL of a file in the folder of another."""
    query = "" if url.startswith(_FSSPEC) else "".join(_QUERY.findall(url))
    return f"{url.removesuffix(query).rstrip('/')}/{inside if url.startswith(_FSSPEC) else quote(inside)}{query}"


class OutputFolder:
    """A folder for output files, each written as a whole or not at all; it is created if it does not exist."""

    def __init__(self, name: str) -> None:
        self.name = name.rstrip("/") or "/"
        if not is_url(name):
            with _making(name):
                Path(name).mkdir(parents=True, exist_ok=True)
            check_output_path(Path(name) / "file")

    def place(self, inside: str) -> str:
        """Return the path or URL of a file in it.

        Raises:
            InputError: it would be outside the folder, as is possible with keys of a store.
        """
        if {"", ".", ".."} & set(inside.split("/")) or "\0" in inside:
            raise InputError(
                f"{inside!r} is not a file name in {without_secrets(self.name)}; give the file another name."
            )
        if is_url(self.name):
            return _below(self.name, inside)
        base = Path(self.name)
        if not (base / inside).resolve().is_relative_to(base.resolve()):
            raise InputError(f"{base / inside} is a link that leads out of {base}; remove it, or name another folder.")
        return str(base / inside)

    def files(self) -> set[str]:
        """Return the files in it, and remove what killed workers have left."""
        if is_url(self.name):
            found = _in_store(self.name, recursive=True)
        else:
            base = Path(self.name)
            found = []
            for path in base.rglob("*"):
                # Other runs may finish their files meanwhile, which renames them.
                with suppress(FileNotFoundError):
                    if path.is_file():
                        found.append(_on_disk(path, base))
        parts = [file for file in found if PurePosixPath(file.inside).name.startswith(_PART)]
        for part in parts:
            if part.changed < time.time() - _LEFT:
                _remove(part.name)
        return {file.inside for file in found if file not in parts}

    def read(self, inside: str) -> bytes | None:
        """Return the content of a small file in it; None if it does not exist."""
        try:
            with fetched(self.place(inside)) as path:
                return path.read_bytes()
        except (FileNotFoundError, InputError):
            return None

    def write(self, inside: str, content: bytes) -> None:
        """Write a small file in it."""
        with delivered(self.place(inside)) as path, atomic_write(path) as file:
            file.write(content)


@contextmanager
def fetched(name: str) -> Iterator[Path]:
    """Yield the path of the file `name` on this machine: itself, or a temporary copy."""
    if not is_url(name):
        yield Path(name)
        return
    with TemporaryDirectory(prefix="textcls-") as folder:
        copy = Path(folder) / (_last_part(name) or "file")
        room = no_space_for(f"A copy of {without_secrets(name)}", "free some space, or set TMPDIR to another folder")
        with opened(name) as source, room, copy.open("wb") as file:
            shutil.copyfileobj(source, file)
        yield copy


@contextmanager
def opened(name: str) -> Iterator["Source"]:
    """Open the file at a URL, to be read from start to end.

    Raises:
        InputError: it does not exist or cannot be read, also while it is being read.
        MissingExtraError: a package needed to access it is not installed.
    """
    with _reading(name):
        if name.lower().startswith(_HTTP):
            from textcls.data.web import WebFile  # imports an HTTP client, which is rarely needed

            stream: Any = WebFile(name)
        else:
            store, path = _store(name)
            stream = store.open_input_stream(path)
    with stream:
        yield Source(name, stream)


class Source:
    """A file at a URL. Errors of reading it are reported as such; other errors of its consumer are not."""

    def __init__(self, name: str, stream: Any) -> None:
        self._name, self._stream = name, stream

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes, at most `size`.

        Raises:
            InputError: they cannot be read.
        """
        return self._read("read", size)

    def read_some(self, size: int) -> bytes:
        """Return the next bytes as soon as there are any, at most `size`; none at the end.

        Raises:
            InputError: they cannot be read.
        """
        return self._read("read1" if hasattr(self._stream, "read1") else "read", size)

    def _read(self, how: str, size: int) -> bytes:
        with _reading(self._name):
            found: bytes = getattr(self._stream, how)(size)
        return found


@contextmanager
def _reading(name: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise _unreadable(name, error) from error


@contextmanager
def delivered(name: str) -> Iterator[Path]:
    """Yield a local path for writing the file `name`, where it then appears as a whole or not at all."""
    if not is_url(name):
        with _making(name):
            Path(name).parent.mkdir(parents=True, exist_ok=True)
        yield Path(name)
        return
    store, path = _store(name)
    with TemporaryDirectory(prefix="textcls-") as folder:
        whole = Path(folder) / PurePosixPath(path).name
        yield whole
        part = str(PurePosixPath(path).with_name(f"{_PART}{token_hex(8)}"))
        try:
            store.create_dir(str(PurePosixPath(path).parent), recursive=True)
            with whole.open("rb") as file, store.open_output_stream(part) as target:
                shutil.copyfileobj(file, target)
            store.move(part, path)
        except OSError as error:
            with suppress(OSError):
                store.delete_file(part)
            raise SurroundingsError(f"{without_secrets(name)} cannot be written: {_why(error)}.") from error


def _find_in_store(name: str) -> list[Found]:
    query = "" if name.startswith(_FSSPEC) else "".join(_QUERY.findall(name))
    address = name.removesuffix(query)
    if not has_magic(address):
        found = _in_store(name)
        if [file.name for file in found] == [name]:
            return found
    else:
        base = _fixed(address)
        pattern = address[len(base) + 1 :]
        wanted = (pattern if name.startswith(_FSSPEC) else unquote(pattern)).split("/")
        found = [file for file in _in_store(base + query, recursive=True) if _matches(file.inside.split("/"), wanted)]
    shown = [file for file in found if not PurePosixPath(file.inside).name.startswith((".", "_"))]
    if not shown:
        raise InputError(f"No file matches {without_secrets(name)}; check the address and the pattern.")
    return sorted(shown)


def _matches(parts: list[str], wanted: list[str]) -> bool:
    """Return whether the parts of a path match those of a pattern, in which ** means any number of folders."""
    if not wanted or not parts:
        return wanted == parts
    if wanted[0] == "**":
        return _matches(parts, wanted[1:]) or _matches(parts[1:], wanted)
    return fnmatchcase(parts[0], wanted[0]) and _matches(parts[1:], wanted[1:])


def _in_store(name: str, *, recursive: bool = False) -> list[Found]:
    """Return the file `name`, or those in the folder `name`; empty if there is neither."""
    fs = arrow.pyarrow(_WHAT, "fs").fs
    store, path = _store(name)
    try:
        about = store.get_file_info(path)
        files, base = [about], PurePosixPath(path).parent
        if about.type != fs.FileType.File:
            files, base = store.get_file_info(fs.FileSelector(path, True, recursive)), PurePosixPath(path)
    except OSError as error:
        raise _unreadable(name, error) from error
    if about.type == fs.FileType.File:
        return [_stored(name, about, base)]
    insides = ((file, PurePosixPath(file.path).relative_to(base).as_posix()) for file in files)
    return [_stored(_below(name, inside), file, base) for file, inside in insides if file.type == fs.FileType.File]


def _stored(url: str, file: Any, base: PurePosixPath) -> Found:
    inside = PurePosixPath(file.path).relative_to(base).as_posix()
    return Found(url, inside, file.size, file.mtime_ns / 1e9 if file.mtime_ns else nan)


def _store(name: str) -> tuple[Any, str]:
    """Return the file system of a URL, and the path in it."""
    pyarrow = arrow.pyarrow(_WHAT, "fs")
    try:
        return pyarrow.fs.FileSystem.from_uri(name)  # type: ignore[no-any-return]
    except (ValueError, OSError, ImportError, pyarrow.ArrowException) as error:
        why = _why(error).replace(name, without_secrets(name))
        raise InputError(f"{without_secrets(name)} cannot be reached: {why}.") from error


def _remove(name: str) -> None:
    with suppress(OSError):
        if is_url(name):
            store, path = _store(name)
            store.delete_file(path)
        else:
            Path(name).unlink()


@contextmanager
def _making(name: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise SurroundingsError(f"{name} cannot be made: {error.strerror}.") from error


def _unreadable(name: str, error: Exception) -> InputError:
    shown = without_secrets(name)
    if isinstance(error, FileNotFoundError):
        return InputError(f"There is no file {shown}.")
    return InputError(f"{shown} cannot be read: {_why(error)}.")


def _why(error: Exception) -> str:
    said = " ".join(str(error).split()).rstrip(".")
    if isinstance(error, FileNotFoundError):
        return "its folder is not there"
    refused = any(sign in said for sign in _REFUSED)
    return f"the store refuses it; check the key, and what it may read or write ({said})" if refused else said
