"""Where bytes come from: a file or standard input, gzipped or not."""

import gzip
import io
import os
import sys
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any, Final, cast

from textcls.errors import InputError

STANDARD: Final = Path("-")
# How many bytes are looked at to find out format, encoding and delimiter; of a pipe, those that are there at once.
PEEK: Final = 1 << 18
_GZIP: Final = b"\x1f\x8b"


@dataclass(frozen=True, slots=True)
class Source:
    """An open source: its name for a person, its path, its bytes, unzipped; `stack` is closed with it."""

    name: str
    path: Path
    stream: io.BufferedReader
    stack: ExitStack

    def peek(self) -> bytes:
        """Return the first bytes, without moving on; to be asked before anything is read."""
        return self.stream.peek(PEEK)


def name_of(path: Path) -> str:
    """Return what `path` is called in messages."""
    return "standard input" if path == STANDARD else str(path)


@contextmanager
def open_source(path: Path) -> Iterator[Source]:
    """Open the file at `path`, or standard input where it is `-`.

    Raises:
        InputError: no such file, or it cannot be read; also while it is being read.
    """
    name = name_of(path)
    with ExitStack() as stack:
        file = stack.enter_context(_open(path, name))
        if file.peek(2).startswith(_GZIP):
            file = stack.enter_context(_buffered(gzip.GzipFile(fileobj=file)))
        yield Source(name, path, file, stack)


def _open(path: Path, name: str) -> io.BufferedReader:
    try:
        return _buffered(path.open("rb", 0)) if path != STANDARD else _standard_input()
    except FileNotFoundError as error:
        raise InputError(f"There is no file {name}.") from error
    except IsADirectoryError as error:
        raise InputError(f"{name} is a folder; name a file in it.") from error
    except OSError as error:
        raise InputError(f"{name} cannot be read: {os.strerror(error.errno or 0)}.") from error


def _standard_input() -> io.BufferedReader:
    if sys.stdin is None:
        raise InputError("Standard input is closed; name a file.")
    try:
        # Over the bare descriptor: a buffer over the buffer of `sys.stdin` would wait until it is full.
        return _buffered(os.fdopen(os.dup(sys.stdin.fileno()), "rb", 0))
    except io.UnsupportedOperation:  # something that only looks like a file, as in tests
        return _buffered(sys.stdin.buffer)


def _buffered(raw: IO[bytes] | gzip.GzipFile) -> io.BufferedReader:
    return io.BufferedReader(cast(Any, raw), PEEK)


@contextmanager
def reading(name: str) -> Iterator[None]:
    """Say what is wrong with the bytes of the source `name` while they are being read.

    Raises:
        InputError: the gzip file is cut off or damaged, or bytes are not of the encoding asked for.
    """
    try:
        yield
    except EOFError as error:
        raise InputError(f"{name} is cut off: the gzip file ends too early; copy it again.") from error
    except (gzip.BadGzipFile, zlib.error) as error:
        raise InputError(f"{name} is damaged: its gzip data cannot be unpacked; copy it again.") from error
    except UnicodeDecodeError as error:
        raise InputError(
            f"{name} is not {error.encoding}: byte 0x{error.object[error.start]:02x} cannot be read; "
            "name its --encoding, or save it as UTF-8."
        ) from error
    except OSError as error:
        raise InputError(f"{name} cannot be read: {os.strerror(error.errno or 0)}.") from error


@contextmanager
def seekable(source: Source) -> Iterator[IO[bytes]]:
    """Give the bytes of `source` as a file that can be read at any place: itself, or a temporary copy on the disk."""
    if source.path != STANDARD and not isinstance(source.stream.raw, gzip.GzipFile) and source.stream.seekable():
        yield source.stream
        return
    with TemporaryFile() as copy:
        while block := source.stream.read(1 << 20):
            copy.write(block)
        copy.seek(0)
        yield copy
