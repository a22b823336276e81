"""Fetch a file from a store, whose content is known beforehand by its hash: what `textcls fetch` calls."""

import re
import time
from enum import Enum, auto
from hashlib import file_digest, sha256
from pathlib import Path
from typing import IO, Final

from textcls._util.atomic_write import atomic_write
from textcls.data import storage
from textcls.errors import ConfigError, InputError, TooLargeError

_BLOCK: Final = 1 << 20
# Default time limit for the whole copy: two gigabytes at 0.6 MB/s.
SECONDS: Final = 3600.0
_DIGITS: Final = re.compile(r"[0-9a-f]{64}")


def fetch(url: str, expected: str, output: Path, most_bytes: int, seconds: float = SECONDS) -> bool:
    """Copy the file at `url` to `output`, where it appears whole and with the expected content, or not at all.

    Args:
        url: the URL of the file.
        expected: its SHA-256, in hexadecimal.
        output: where it goes.
        most_bytes: the most bytes that it may have.
        seconds: the most time that the whole copy may take.

    Returns:
        Whether it was copied; False if such a file was there already.

    Raises:
        ConfigError: `url` is not a URL, or `expected` is not a SHA-256.
        InputError: the file cannot be read, does not arrive in time, or has other content.
        TooLargeError: it has more than `most_bytes`.
        MissingExtraError: a package needed to reach it is not installed.
        SurroundingsError: `output` cannot be written.
    """
    expected = expected.lower()
    if not storage.is_url(url):
        raise ConfigError(f"{url} is not a URL, such as s3://models/tickets.onnx.")
    if not _DIGITS.fullmatch(expected):
        raise ConfigError(f"{expected!r} is not a SHA-256, which has 64 hexadecimal digits; sha256sum prints it.")
    if _has(output, expected):
        return False
    shown = storage.without_secrets(url)
    with storage.opened(url) as source, atomic_write(output) as file:
        found = _copy(source, file, most_bytes, time.monotonic() + seconds)
        if found is LATE:
            raise InputError(f"{shown} was not there within {seconds:g} seconds; nothing was kept; see --timeout.")
        if found is LARGE:
            raise TooLargeError(f"{shown} has more than {most_bytes:,} bytes, the most allowed; nothing was kept.")
        if found != expected:
            raise InputError(f"{shown} has the SHA-256 {found}, and {expected} was expected; nothing was kept.")
    return True


def _has(path: Path, expected: str) -> bool:
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest() == expected


class _Failed(Enum):
    """Why a file was not copied."""

    LARGE = auto()
    LATE = auto()


LARGE, LATE = _Failed.LARGE, _Failed.LATE


def _copy(source: storage.Source, target: IO[bytes], most_bytes: int, until: float) -> str | _Failed:
    """Copy all bytes, and return their SHA-256."""
    digest, copied = sha256(), 0
    while block := source.read_some(_BLOCK):
        copied += len(block)
        if copied > most_bytes:
            return LARGE
        if time.monotonic() > until:
            return LATE
        digest.update(block)
        target.write(block)
    return digest.hexdigest()
