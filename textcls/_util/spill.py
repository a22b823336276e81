"""Arrays that may be too large for memory: above a limit, they are in files without a name.

Such a file disappears with the process, however that ends, and reserves all its disk space before it is written to, so
that a full disk is reported at once. Code that reads the array need not know where it is: the file is memory-mapped,
and the system keeps as much of it in memory as there is room for.
"""

import mmap
import os
import sys
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile, gettempdir
from typing import IO, Any, Final

import numpy as np
from numpy.typing import DTypeLike, NDArray

from textcls._util.atomic_write import no_space_for


@dataclass(frozen=True, slots=True)
class Spill:
    """Where arrays are stored.

    Attributes:
        limit: the size in bytes of the largest array in memory.
        folder: the folder for the files of larger arrays; None for the system's folder for temporary files.
    """

    limit: int = sys.maxsize
    folder: Path | None = None

    def empty(self, length: int, dtype: DTypeLike) -> NDArray[Any]:
        """Return an uninitialized array [length].

        Raises:
            SurroundingsError: the disk has no room for it.
        """
        kind = np.dtype(dtype)
        size = length * kind.itemsize
        if size <= self.limit:
            return np.empty(length, kind)
        with self.file() as file, self.room():
            _reserve(file, size)
            return mapped(file, kind)

    def growing(self, dtype: DTypeLike) -> "Growing":
        """Return an array that grows at its end."""
        return Growing(self, np.dtype(dtype))

    def file(self) -> IO[bytes]:
        """Return a new file without a name."""
        return TemporaryFile(dir=self.folder)

    def room(self) -> AbstractContextManager[None]:
        """Report in one sentence if there is no room for a file."""
        return no_space_for(
            f"A temporary file in {self.folder or gettempdir()}",
            "free some space, name another folder by TMPDIR, or raise the memory that may be used",
        )


IN_MEMORY: Final = Spill()


class Growing:
    """An array that grows at its end: in memory up to the limit, then in a file."""

    def __init__(self, spill: Spill, kind: "np.dtype[Any]") -> None:
        self._spill, self._kind = spill, kind
        self._parts: list[NDArray[Any]] = []
        self._size = 0
        self._file: IO[bytes] | None = None

    def extend(self, numbers: NDArray[Any]) -> None:
        """Add `numbers`, which must not change later.

        Raises:
            SurroundingsError: the disk is full.
        """
        self._parts.append(numbers.astype(self._kind, copy=False))
        self._size += self._parts[-1].nbytes
        if self._size > self._spill.limit:
            self._write()

    def _write(self) -> None:
        self._file = self._file or self._spill.file()
        with self._spill.room():
            for part in self._parts:
                self._file.write(part.data)
            self._file.flush()
        self._parts.clear()

    def array(self) -> NDArray[Any]:
        """Return all numbers; nothing can be added afterwards."""
        if self._file is None:
            return np.concatenate([np.empty(0, self._kind), *self._parts])
        with self._file:
            return mapped(self._file, self._kind)


def mapped(file: IO[bytes], kind: "np.dtype[Any]") -> NDArray[Any]:
    """Return the content of a file as an array; the file may be closed; its disk space is freed with the array."""
    return np.frombuffer(mmap.mmap(file.fileno(), 0), kind)


def _reserve(file: IO[bytes], size: int) -> None:
    """Reserve disk space, without which a process that writes to a mapped file is killed when the disk is full."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(file.fileno(), 0, size)
    else:  # macOS
        file.write(bytes(1 << 20) * (size >> 20))
        file.write(bytes(size & ((1 << 20) - 1)))
        file.flush()
