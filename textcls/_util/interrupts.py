"""What Ctrl-C must not cut in two."""

import signal
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
    # Processes inherit the mask. It is not enough for this one: the threads of numerical libraries do not have it, and
    # whichever thread gets the signal, Python calls the handler in the main one.
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        if replaced:
            signal.signal(signal.SIGINT, before)
        if heard:
            signal.raise_signal(signal.SIGINT)
