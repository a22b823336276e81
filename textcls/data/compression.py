"""What files may be packed with: found by the first bytes when read, by the name when written. One line each."""

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
    """A way to pack a file.

    Attributes:
        suffix: of names.
        magic: the first bytes.
        unpack: gives the bytes of a packed file.
        pack: gives a file whose bytes are packed into another; the same bytes give the same.
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
    # Neither time nor name: the same rows give the same bytes.
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
    """Return what a file that begins with `first` is packed with; None if with nothing."""
    return next((found for found in COMPRESSIONS if first.startswith(found.magic)), None)


def by_name(path: Path) -> Compression | None:
    """Return what the name of `path` says that it is packed with; None if with nothing."""
    return next((found for found in COMPRESSIONS if path.suffix.lower() == found.suffix), None)


def is_damage(error: Exception) -> bool:
    """Return whether a library says by `error` that packed data cannot be unpacked."""
    if isinstance(error, gzip.BadGzipFile | zlib.error | lzma.LZMAError | zipfile.BadZipFile | NotImplementedError):
        return True
    # bz2 has no error of its own, and the module of Zstandard may not be there to ask.
    return (type(error) is OSError and error.errno is None) or type(error).__name__ == "ZstdError"
