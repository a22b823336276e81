"""Sources of bytes: files or standard input, compressed or not."""

import io
import os
import sys
import zipfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from difflib import get_close_matches
from itertools import islice
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any, Final, cast

from textcls.data import compression
from textcls.errors import InputError

STANDARD: Final = Path("-")
# How many bytes are read to detect format, encoding and delimiter; from a pipe, those available at once.
PEEK: Final = 1 << 18
# The signatures of a zip file, and of an empty one.
_ZIP: Final = (b"PK\x03\x04", b"PK\x05\x06")
# The member of a zip file that is a spreadsheet, and files that systems add to zip files.
WORKBOOK: Final = "xl/workbook.xml"
_DOCUMENTS: Final = {
    "content.xml": "an OpenDocument file",
    "word/document.xml": "a Word document",
    "ppt/presentation.xml": "a PowerPoint file",
    "xl/workbook.bin": "a binary Excel file",
}
_BESIDE: Final = ("__MACOSX/", ".DS_Store", "Thumbs.db")
# Most files of a zip file that a message names.
_NAMED: Final = 5
# Most files of a folder to search for one with a similar name, and the least similarity, as measured by `difflib`.
_LOOKED_AT, _ALIKE = 1000, 0.8


@dataclass(frozen=True, slots=True)
class Source:
    """An open source; `stack` is closed with it.

    Attributes:
        name: its name in messages.
        path: the path whose name may indicate the format; for a zip file that of the only file in it.
        stream: its bytes, uncompressed.
        stack: what is open.
        packed: whether they were compressed.
        workbook: whether it is an Excel spreadsheet.
    """

    name: str
    path: Path
    stream: io.BufferedReader
    stack: ExitStack
    packed: bool = False
    workbook: bool = False

    def peek(self) -> bytes:
        """Return the first bytes without consuming them; to be called before anything is read."""
        return self.stream.peek(PEEK)


def name_of(path: object) -> str:
    """Return the name of a path, or of a table in memory, in messages."""
    return "standard input" if path == STANDARD else str(path)


@contextmanager
def open_source(path: Path, name: str | None = None) -> Iterator[Source]:
    """Open the file at `path`, or standard input if it is `-`; messages call it `name`, by default its path.

    Raises:
        InputError: there is no such file, or it cannot be read, also while it is being read; or it is a zip file that
            does not contain exactly one file.
        MissingExtraError: its compression needs a package that is not installed.
    """
    name = name_of(path) if name is None else name
    with ExitStack() as stack:
        with reading(name):
            source = _unpacked(Source(name, path, stack.enter_context(_open(path, name)), stack))
        yield source


def _unpacked(source: Source) -> Source:
    found = compression.by_first_bytes(source.peek())
    if found is not None:
        source = replace(source, stream=source.stack.enter_context(_buffered(found.unpack(source.stream))), packed=True)
    return _unzipped(source) if source.peek().startswith(_ZIP) else source


def _unzipped(source: Source) -> Source:
    """Return the only file in a zip file; the zip file itself if it is a spreadsheet.

    Raises:
        InputError: it contains no file, several, or one with a password.
    """
    file = source.stack.enter_context(seekable(source))
    archive = source.stack.enter_context(zipfile.ZipFile(file))
    names = [name for name in archive.namelist() if name and not name.endswith("/")]
    if WORKBOOK in names:
        file.seek(0)
        return replace(source, stream=_buffered(file), packed=False, workbook=True)
    if other := next((kind for name, kind in _DOCUMENTS.items() if name in names), None):
        raise InputError(f"{source.name} is {other}; save it as .xlsx or .csv.")
    meant = [name for name in names if not name.startswith(_BESIDE[0]) and Path(name).name not in _BESIDE]
    if len(meant) != 1:
        some = ", ".join(meant[:_NAMED]) + (", ..." if len(meant) > _NAMED else "")
        held = f"{len(meant)} files ({some})" if meant else "no file"
        raise InputError(f"{source.name} is a zip file that holds {held}; unpack it, and name the files you mean.")
    if archive.getinfo(meant[0]).flag_bits & 1:
        raise InputError(f"{source.name} is a zip file with a password; unpack it first.")
    stream = source.stack.enter_context(_buffered(archive.open(meant[0])))
    return replace(source, path=Path(meant[0]), stream=stream, packed=True)


def _open(path: Path, name: str) -> io.BufferedReader:
    try:
        return _buffered(path.open("rb", 0)) if path != STANDARD else _standard_input()
    except FileNotFoundError as error:
        raise InputError(f"There is no file {name}{_meant(path)}.") from error
    except IsADirectoryError as error:
        raise InputError(f"{name} is a folder; name a file in it.") from error
    except OSError as error:
        raise InputError(f"{name} cannot be read: {os.strerror(error.errno or 0)}.") from error


def _meant(path: Path) -> str:
    """Return a suggestion of a file in the same folder with a similar name, if there is one."""
    try:
        there = [one.name for one in islice(path.parent.iterdir(), _LOOKED_AT)]
    except OSError:
        return ""
    near = get_close_matches(path.name, there, 1, _ALIKE) or [one for one in there if Path(one).stem == path.name][:1]
    return f"; perhaps {path.with_name(near[0])} is meant" if near else ""


def _standard_input() -> io.BufferedReader:
    if sys.stdin is None:
        raise InputError("Standard input is closed; name a file.")
    try:
        # On the raw descriptor: a buffer over the buffer of `sys.stdin` would wait until that is full.
        return _buffered(os.fdopen(os.dup(sys.stdin.fileno()), "rb", 0))
    except io.UnsupportedOperation:  # something that only looks like a file, as in tests
        return _buffered(sys.stdin.buffer)


def _buffered(raw: IO[bytes]) -> io.BufferedReader:
    return io.BufferedReader(cast(Any, raw), PEEK)


@contextmanager
def reading(name: str) -> Iterator[None]:
    """Turn errors of reading the bytes of the source `name` into messages.

    Raises:
        InputError: compressed data are truncated or damaged, or bytes are not in the requested encoding.
    """
    try:
        yield
    except EOFError as error:
        raise InputError(f"{name} is cut off: its compressed data ends too early; copy it again.") from error
    except UnicodeDecodeError as error:
        raise InputError(
            f"{name} is not {error.encoding}: byte 0x{error.object[error.start]:02x} cannot be read; "
            "name its --encoding, or save it as UTF-8."
        ) from error
    except Exception as error:
        if compression.is_damage(error):
            raise InputError(f"{name} is damaged: its compressed data cannot be unpacked; copy it again.") from error
        if isinstance(error, OSError):
            raise InputError(f"{name} cannot be read: {os.strerror(error.errno or 0)}.") from error
        raise


@contextmanager
def seekable(source: Source) -> Iterator[IO[bytes]]:
    """Yield the bytes of `source` as a seekable file: itself, or a temporary copy on disk."""
    if source.path != STANDARD and not source.packed and source.stream.seekable():
        yield source.stream
        return
    with TemporaryFile() as copy:
        while block := source.stream.read(1 << 20):
            copy.write(block)
        copy.seek(0)
        yield copy
