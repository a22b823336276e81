"""What Ctrl-C must not cut in two."""

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def held_back() -> Iterator[None]:
    """Let Ctrl-C wait until the block has ended; processes that are started meanwhile never hear it."""
    heard = False

    def hear(*_: object) -> None:
        nonlocal heard
        heard = True

    before = signal.getsignal(signal.SIGINT)
    replaced = callable(before) and threading.current_thread() is threading.main_thread()
    if replaced:
        signal.signal(signal.SIGINT, hear)
    try:
        with _masked():
            yield
    finally:
        if replaced:
            signal.signal(signal.SIGINT, before)
        if heard:
            signal.raise_signal(signal.SIGINT)


@contextmanager
def _masked() -> Iterator[None]:
    """Let the mask of signals, which processes inherit, hold Ctrl-C back; Windows has none.

    It is not enough for this process: the threads of numerical libraries do not have it, and whichever thread gets the
    signal, Python calls the handler in the main one.
    """
    if sys.platform == "win32":
        yield
        return
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
