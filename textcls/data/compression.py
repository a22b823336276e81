"""Compression formats of files: detected by the first bytes when read, by the name when written."""

import bz2
import gzip
import lzma
import sys
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any, Final, Literal, NamedTuple, cast

from textcls._util import optional_dependencies


class Compression(NamedTuple):
    """A compression format.

    Attributes:
        suffix: the suffix of file names.
        magic: the first bytes.
        unpack: returns a file with the decompressed bytes of a compressed one.
        pack: returns a file that compresses into another what is written to it; the same bytes give the same result.
    """

    suffix: str
    magic: bytes
    unpack: Callable[[IO[bytes]], IO[bytes]]
    pack: Callable[[IO[bytes]], IO[bytes]]


def _bz2(file: IO[bytes], mode: Literal["rb", "wb"]) -> IO[bytes]:
    return cast(IO[bytes], bz2.BZ2File(file, mode))


def _xz(file: IO[bytes], mode: Literal["rb", "wb"]) -> IO[bytes]:
    return cast(IO[bytes], lzma.LZMAFile(file, mode))


def _gzip(file: IO[bytes]) -> IO[bytes]:
    # No time and no name, so that the same rows give the same bytes.
    return cast(IO[bytes], gzip.GzipFile("", "wb", fileobj=file, mtime=0))


def _zstd(file: IO[bytes], mode: str) -> IO[bytes]:
    if sys.version_info >= (3, 14):
        from compression import zstd
    else:
        with optional_dependencies.needed_by("Zstandard"):
            from backports import zstd
    return cast(IO[bytes], zstd.ZstdFile(file, cast(Any, mode)))


COMPRESSIONS: Final = (
    Compression(".gz", b"\x1f\x8b", lambda file: cast(IO[bytes], gzip.GzipFile(fileobj=file)), _gzip),
    Compression(".bz2", b"BZh", lambda file: _bz2(file, "rb"), lambda file: _bz2(file, "wb")),
    Compression(".xz", b"\xfd7zXZ\x00", lambda file: _xz(file, "rb"), lambda file: _xz(file, "wb")),
    Compression(".zst", b"\x28\xb5\x2f\xfd", lambda file: _zstd(file, "rb"), lambda file: _zstd(file, "wb")),
)


def by_first_bytes(first: bytes) -> Compression | None:
    """Return the compression of a file that begins with `first`; None if it is not compressed."""
    return next((found for found in COMPRESSIONS if first.startswith(found.magic)), None)


def by_name(path: Path) -> Compression | None:
    """Return the compression that the name of `path` indicates; None if it indicates none."""
    return next((found for found in COMPRESSIONS if path.suffix.lower() == found.suffix), None)


def is_damage(error: Exception) -> bool:
    """Return whether `error` is how a library reports that compressed data is damaged."""
    if isinstance(error, gzip.BadGzipFile | zlib.error | lzma.LZMAError | zipfile.BadZipFile | NotImplementedError):
        return True
    # bz2 has no error class of its own, and the Zstandard module may not be installed.
    return (type(error) is OSError and error.errno is None) or type(error).__name__ == "ZstdError"
