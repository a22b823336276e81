"""Arrays that are too large for memory: from a bound on they lie in files without a name.

Such a file is gone with the process, however that ends, and takes its whole room on the disk before it is written to,
so that a full disk is told at once. Whoever reads the array does not know where it lies: the file is mapped, and the
system keeps in memory what there is room for.
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
    """Where arrays lie.

    Attributes:
        limit: bytes of the largest array in memory.
        folder: the folder of the files of larger ones; None for the system's folder of temporary files.
    """

    limit: int = sys.maxsize
    folder: Path | None = None

    def empty(self, length: int, dtype: DTypeLike) -> NDArray[Any]:
        """Return an array [length] whose numbers are yet to be written.

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
        """Say in one sentence when there is no room for a file."""
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
        """Add `numbers`, which are not to change later.

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
        """Return all numbers; nothing can be added after."""
        if self._file is None:
            return np.concatenate([np.empty(0, self._kind), *self._parts])
        with self._file:
            return mapped(self._file, self._kind)


def mapped(file: IO[bytes], kind: "np.dtype[Any]") -> NDArray[Any]:
    """Return what is in a file as an array; the file may be closed, and its room is free once the array is gone."""
    return np.frombuffer(mmap.mmap(file.fileno(), 0), kind)


def _reserve(file: IO[bytes], size: int) -> None:
    """Take room on the disk: whoever writes to a map of a file without it is killed when the disk is full."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(file.fileno(), 0, size)
    else:  # macOS
        file.write(bytes(1 << 20) * (size >> 20))
        file.write(bytes(size & ((1 << 20) - 1)))
        file.flush()
