"""Locks of open files, which end with the process that holds them, however it ends."""

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from textcls.errors import SurroundingsError

_TICK_SECONDS: Final = 0.05

if sys.platform == "win32":
    import msvcrt

    # Windows locks bytes, and keeps others from reading them: this one is beyond the end of the files locked here.
    _PLACE: Final = (1 << 31) - 16

    def _at_place(file: int, mode: int) -> bool:
        before = os.lseek(file, 0, os.SEEK_CUR)
        os.lseek(file, _PLACE, os.SEEK_SET)
        try:
            msvcrt.locking(file, mode, 1)
        except PermissionError:
            return False
        finally:
            os.lseek(file, before, os.SEEK_SET)
        return True

    def try_lock(file: int) -> bool:
        """Take the lock of an open file unless another has it; say whether it was taken."""
        return _at_place(file, msvcrt.LK_NBLCK)

    def is_locked(file: int) -> bool:
        """Return whether another holds the lock of an open file."""
        return not (_at_place(file, msvcrt.LK_NBLCK) and _at_place(file, msvcrt.LK_UNLCK))

else:
    import fcntl

    def try_lock(file: int) -> bool:
        """Take the lock of an open file unless another has it; say whether it was taken."""
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def is_locked(file: int) -> bool:
        """Return whether another holds the lock of an open file; simultaneous calls do not affect each other."""
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        fcntl.flock(file, fcntl.LOCK_UN)
        return False


@contextmanager
def locked(path: Path, seconds: float, busy: str) -> Iterator[None]:
    """Hold the lock of the file at `path`, which is made if it does not exist, as long as this block lasts.

    Args:
        path: the file.
        seconds: how long to wait for the lock.
        busy: the error message if another holds it for longer.

    Raises:
        SurroundingsError: another holds the lock for longer.
        OSError: the file cannot be made.
    """
    end = time.monotonic() + seconds
    with path.open("ab") as file:
        while not try_lock(file.fileno()):
            if time.monotonic() > end:
                raise SurroundingsError(busy)
            time.sleep(_TICK_SECONDS)
        yield
