"""A file of named arrays and of what is to be said of them: NumPy's own format, a zip without compression.

It is written array by array, so it takes no memory beside them; the zip holds a checksum (CRC-32) of each, which is
compared when they are read; and nothing in it can run, as pickles are refused.
"""

import json
import stat
import threading
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, cast

import numpy as np
from numpy.typing import NDArray

from textcls._util.atomic_write import atomic_write
from textcls.errors import InputError

Arrays = Mapping[str, NDArray[Any]]

# Stands in the names of files that are being written, so that those of killed processes are known.
UNFINISHED: Final = "state-"
_ABOUT: Final = "about"
# The checksums are of arrays alone, not of the list of them; so that stands in what is said.
_NAMES: Final = "arrays"
# NumPy has Python parse what it says of an array, and in two threads at once CPython 3.11 may fail at that (gh-106905).
_PARSING: Final = threading.Lock()


class DamagedError(InputError):
    """A file is not as it was written."""


def write(path: Path, arrays: Arrays, about: Mapping[str, Any]) -> None:
    """Write arrays, and what is said of them as JSON, to `path`, whole or not at all.

    Raises:
        SurroundingsError: it cannot be written.
    """
    said = np.frombuffer(json.dumps({**about, _NAMES: sorted(arrays)}).encode(), np.uint8)
    with atomic_write(path, advice="free some space, or name another folder", kind=UNFINISHED) as file:
        cast(Any, np.savez)(file, **{_ABOUT: said, **arrays})


def read_about(path: Path) -> dict[str, Any]:
    """Return what is said of the arrays of a file, without reading these.

    Raises:
        DamagedError: the file is not as it was written.
        InputError: it cannot be read.
    """
    with _opened(path) as file:
        return _about(file)


def read(path: Path, *wanted: str) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    """Return the arrays `wanted` of a file, all of them if none is named, and what is said of them.

    Raises:
        DamagedError: the file is not as it was written.
        InputError: it cannot be read.
    """
    with _opened(path) as file:
        about = _about(file)
        return {name: file[name] for name in wanted or file.files if name != _ABOUT}, about


def _about(file: Any) -> dict[str, Any]:
    about = json.loads(file[_ABOUT].tobytes())
    if not isinstance(about, dict):
        raise TypeError("what is said is not an object")
    if sorted(about.pop(_NAMES)) != sorted({*file.files} - {_ABOUT}):
        raise ValueError("an array is missing")
    return about


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    """Open a file of arrays; whatever goes wrong with it inside is told in a sentence."""
    try:
        # A pipe would be waited for.
        if not stat.S_ISREG(path.stat().st_mode):
            raise DamagedError(f"{path} is not a plain file.")
        raw = path.open("rb")
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}.") from error
    with raw:
        try:
            with zipfile.ZipFile(raw) as packed:
                # What is not compressed cannot unpack to more than the file holds.
                if any(entry.compress_type != zipfile.ZIP_STORED for entry in packed.infolist()):
                    raise ValueError("an array is compressed")
            raw.seek(0)
            with _PARSING, np.load(raw, allow_pickle=False) as file:
                yield file
        except Exception as error:  # Of bytes that are not theirs, zipfile and NumPy raise nearly anything.
            raise DamagedError(f"{path} is damaged; it is not as it was written.") from error
