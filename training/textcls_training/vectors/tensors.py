"""Safetensors files within bounds: named arrays and text about them, nothing executable."""

import json
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from textcls.errors import InputError

MOST_BYTES: Final = 4_000_000_000
# The library writes several metadata entries in random order, so all metadata are in one, as JSON.
_ABOUT: Final = "about"


@dataclass(frozen=True, slots=True)
class Header:
    """The contents of a file: type (as safetensors calls it) and shape of its arrays by name; text about them."""

    arrays: Mapping[str, tuple[str, tuple[int, ...]]]
    about: Mapping[str, str]


def write(file: IO[bytes], arrays: Mapping[str, NDArray[Any]], about: Mapping[str, str]) -> None:
    """Write arrays and text about them; the same content gives the same bytes."""
    said = json.dumps(dict(about), ensure_ascii=False, sort_keys=True)
    file.write(save({name: np.ascontiguousarray(array) for name, array in arrays.items()}, {_ABOUT: said}))


def read_header(path: Path, most_bytes: int = MOST_BYTES) -> Header:
    """Return what the file at `path` contains, without reading its arrays.

    Raises:
        InputError: there is no such file, it is too large, or it is not in this format.
    """
    with _opened(path, most_bytes) as file:
        return _header(path, file)


def read(path: Path, *wanted: str, most_bytes: int = MOST_BYTES) -> tuple[dict[str, NDArray[Any]], Header]:
    """Return the arrays `wanted` of the file at `path`, all of them if none is named, and its header.

    Raises:
        InputError: there is no such file, it is too large, it is not in this format, or it lacks an array.
    """
    with _opened(path, most_bytes) as file:
        header = _header(path, file)
        if lacking := [name for name in wanted if name not in header.arrays]:
            raise damaged(path, f"it holds no {lacking[0]!r}")
        return {name: file.get_tensor(name) for name in wanted or header.arrays}, header


def damaged(path: Path, why: str) -> InputError:
    """Return the error for a file that is not what it should be."""
    return InputError(
        f"{path} is damaged, or not a file of vectors ({why}); copy it again, or make one with textcls vectors import."
    )


@contextmanager
def _opened(path: Path, most_bytes: int) -> Iterator[Any]:
    """Open a regular file of at most `most_bytes` bytes."""
    try:
        found = path.stat()
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}.") from error
    # Anything but a regular file, a pipe for instance, might never end.
    if not stat.S_ISREG(found.st_mode):
        raise InputError(f"{path} is not a regular file; copy the vectors to one.")
    if found.st_size > most_bytes:
        raise InputError(f"{path} has {found.st_size:,} bytes; the maximum is {most_bytes:,}.")
    try:
        with safe_open(path, framework="np") as file:
            yield file
    except SafetensorError as error:
        raise damaged(path, str(error).partition("\n")[0].rstrip(".")) from error
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}.") from error


def _header(path: Path, file: Any) -> Header:
    parts = {name: file.get_slice(name) for name in file.keys()}  # noqa: SIM118 - it is not a mapping
    arrays = {name: (part.get_dtype(), tuple(part.get_shape())) for name, part in parts.items()}
    try:
        about = json.loads((file.metadata() or {}).get(_ABOUT, "{}"))
        if any(not isinstance(text, str) for text in about.values()):
            raise ValueError("its metadata is not text")
    except (ValueError, AttributeError, RecursionError) as error:
        raise damaged(path, "its metadata makes no sense") from error
    return Header(arrays, about)
