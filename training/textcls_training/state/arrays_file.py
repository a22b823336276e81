"""A file of named arrays with facts about them: NumPy's own format, a zip without compression.

It is written array by array, so it takes no additional memory; the zip contains a checksum (CRC-32) of each, which is
compared on reading; and nothing in it can be executed, as pickles are refused.
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

# Part of the names of unfinished files, so that those of killed processes are recognised.
UNFINISHED: Final = "state-"
_ABOUT: Final = "about"
# The checksums cover the arrays, not the list of them; so the list is part of the facts.
_NAMES: Final = "arrays"
# NumPy lets Python parse an array's header, and in two threads at once CPython 3.11 may fail at that (gh-106905).
_PARSING: Final = threading.Lock()


class DamagedError(InputError):
    """A file is not as it was written."""


def write(path: Path, arrays: Arrays, about: Mapping[str, Any]) -> None:
    """Write arrays, and facts about them as JSON, to `path`, whole or not at all.

    Raises:
        SurroundingsError: it cannot be written.
    """
    said = np.frombuffer(json.dumps({**about, _NAMES: sorted(arrays)}).encode(), np.uint8)
    with atomic_write(path, advice="free some space, or name another folder", kind=UNFINISHED) as file:
        cast(Any, np.savez)(file, **{_ABOUT: said, **arrays})


def read_about(path: Path) -> dict[str, Any]:
    """Return the facts about the arrays of a file, without reading the arrays.

    Raises:
        DamagedError: the file is not as it was written.
        InputError: it cannot be read.
    """
    with _opened(path) as file:
        return _about(file)


def read(path: Path, *wanted: str) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    """Return the arrays `wanted` of a file, all of them if none is named, and the facts about them.

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
    """Open a file of arrays; any error inside is reported in a sentence."""
    try:
        # Opening a pipe would block.
        if not stat.S_ISREG(path.stat().st_mode):
            raise DamagedError(f"{path} is not a plain file.")
        raw = path.open("rb")
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}.") from error
    with raw:
        try:
            with zipfile.ZipFile(raw) as packed:
                # Uncompressed entries cannot unpack to more than the file contains.
                if any(entry.compress_type != zipfile.ZIP_STORED for entry in packed.infolist()):
                    raise ValueError("an array is compressed")
            raw.seek(0)
            with _PARSING, np.load(raw, allow_pickle=False) as file:
                yield file
        except Exception as error:  # Of bytes that are not theirs, zipfile and NumPy raise nearly anything.
            raise DamagedError(f"{path} is damaged; it is not as it was written.") from error
