"""The safetensors format, read and written without its library: named arrays and some text, nothing that can run.

    8 bytes     length of the header, little-endian
    header      JSON: {name: {"dtype", "shape", "data_offsets"}, "__metadata__": {text: text}}
    data        the arrays one behind another, without gaps, in C order

Source: the format's description at https://github.com/huggingface/safetensors.
"""

import json
import math
import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final

import numpy as np
from numpy.typing import NDArray

from textcls.errors import InputError

HEADER_BYTES: Final = 1_000_000
MOST_BYTES: Final = 4_000_000_000
METADATA: Final = "__metadata__"
_DTYPES: Final[Mapping[str, Any]] = {
    "F64": np.dtype("<f8"),
    "F32": np.dtype("<f4"),
    "F16": np.dtype("<f2"),
    "I64": np.dtype("<i8"),
    "I32": np.dtype("<i4"),
    "I8": np.dtype("i1"),
    "U8": np.dtype("u1"),
}
Arrays = Mapping[str, NDArray[Any]]


@dataclass(frozen=True, slots=True)
class Entry:
    """Where an array stands in the data: its type, its shape, its first byte and the one behind its last."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Header:
    """What a file holds: its arrays by name, and text about them."""

    entries: Mapping[str, Entry]
    about: Mapping[str, str]


def write(file: IO[bytes], arrays: Arrays, about: Mapping[str, str]) -> None:
    """Write arrays and text about them; the same content gives the same bytes."""
    names = {array_type: name for name, array_type in _DTYPES.items()}
    entries: dict[str, Any] = {METADATA: dict(sorted(about.items()))}
    start = 0
    for name, array in arrays.items():
        end = start + array.nbytes
        entries[name] = {"dtype": names[array.dtype], "shape": list(array.shape), "data_offsets": [start, end]}
        start = end
    header = json.dumps(entries, ensure_ascii=False).encode()
    header += b" " * (-len(header) % 8)  # Arrays of wide types begin at a multiple of eight bytes.
    file.write(len(header).to_bytes(8, "little"))
    file.write(header)
    for array in arrays.values():
        file.write(np.ascontiguousarray(array).tobytes())


def read_header(path: Path, most_bytes: int = MOST_BYTES) -> Header:
    """Return what the file at `path` holds, without reading its arrays.

    Raises:
        InputError: there is no such file, it is too large, or it is none of this format.
    """
    with _opened(path, most_bytes) as (file, size):
        return _header(path, file, size)[0]


def read(path: Path, *wanted: str, most_bytes: int = MOST_BYTES) -> tuple[dict[str, NDArray[Any]], Header]:
    """Return the arrays `wanted` of the file at `path`, all of them if none is named, and its header.

    Raises:
        InputError: there is no such file, it is too large, it is none of this format, or it lacks an array.
    """
    with _opened(path, most_bytes) as (file, size):
        header, first = _header(path, file, size)
        arrays = {}
        for name in wanted or header.entries:
            if name not in header.entries:
                raise damaged(path, f"it holds no {name!r}")
            entry = header.entries[name]
            file.seek(first + entry.start)
            data = file.read(entry.end - entry.start)
            if len(data) != entry.end - entry.start:
                raise damaged(path, "it was changed while it was read")
            arrays[name] = np.frombuffer(data, entry.dtype).reshape(entry.shape)
    return arrays, header


def damaged(path: Path, why: str) -> InputError:
    """Return the error of a file that is not what it should be."""
    return InputError(f"{path} is damaged, or no file of vectors ({why}); copy or make it again.")


class _opened:  # noqa: N801
    """A regular file open for reading, and its size in bytes."""

    def __init__(self, path: Path, most_bytes: int) -> None:
        self.path, self.most_bytes = path, most_bytes

    def __enter__(self) -> tuple[IO[bytes], int]:
        try:
            # What is no regular file, a pipe for instance, might never end.
            if not stat.S_ISREG(self.path.stat().st_mode):
                raise InputError(f"{self.path} is no regular file: copy the vectors to one.")
            self.file = self.path.open("rb")
        except OSError as error:
            raise InputError(f"{self.path} cannot be read: {error.strerror or error}.") from error
        size = os.fstat(self.file.fileno()).st_size
        if size > self.most_bytes:
            self.file.close()
            raise InputError(f"{self.path} has {size:,} bytes, and {self.most_bytes:,} are the most.")
        return self.file, size

    def __exit__(self, *_: object) -> None:
        self.file.close()


def _header(path: Path, file: IO[bytes], size: int) -> tuple[Header, int]:
    """Return the header of an open file, and where the data begin."""
    length = int.from_bytes(file.read(8), "little")
    if not 2 <= length <= min(HEADER_BYTES, size - 8):
        raise damaged(path, "it has no header")
    try:
        found = json.loads(file.read(length))
        about = found.pop(METADATA, {})
        if any(not isinstance(text, str) for text in about.values()):
            raise ValueError("its text is no text")
        entries = {str(name): _entry(fields) for name, fields in found.items()}
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise damaged(path, "its header makes no sense") from error
    at = 0
    for entry in sorted(entries.values(), key=lambda entry: (entry.start, entry.end)):
        if entry.start != at:
            raise damaged(path, "its arrays overlap or have gaps")
        at = entry.end
    if at != size - 8 - length:
        raise damaged(path, f"it has {size:,} bytes, and its header speaks of {8 + length + at:,}")
    return Header(entries, about), 8 + length


def _entry(fields: Mapping[str, Any]) -> Entry:
    dtype = _DTYPES[fields["dtype"]]
    shape = tuple(fields["shape"])
    start, end = fields["data_offsets"]
    if any(type(number) is not int or number < 0 for number in (*shape, start, end)):
        raise ValueError("a size is no size")
    if end - start != math.prod(shape) * dtype.itemsize:
        raise ValueError("the shape is not that of the data")
    return Entry(dtype, shape, start, end)
