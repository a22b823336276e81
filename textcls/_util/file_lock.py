"""Locks of files, which end with the process that holds them, however it does."""

import fcntl
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from textcls.errors import SurroundingsError

_TICK_SECONDS: Final = 0.05


def try_lock(file: int) -> bool:
    """Take the lock of an open file unless another has it; say whether it was taken."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


@contextmanager
def locked(path: Path, seconds: float, busy: str) -> Iterator[None]:
    """Hold the lock of the file at `path`, which is made if it is not there, as long as this block lasts.

    Args:
        path: the file.
        seconds: how long to wait for it.
        busy: what is said if another holds it for longer.

    Raises:
        SurroundingsError: another holds it.
        OSError: the file cannot be made.
    """
    end = time.monotonic() + seconds
    with path.open("a") as file:
        while not try_lock(file.fileno()):
            if time.monotonic() > end:
                raise SurroundingsError(busy)
            time.sleep(_TICK_SECONDS)
        yield
