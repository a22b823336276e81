"""Protect work that must not be interrupted by signals that end a program."""

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

ENDING = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]
"""The signals that end a program by an exception, if anything does: Windows has no SIGHUP."""


@contextmanager
def held_back(*numbers: int) -> Iterator[None]:
    """Delay signals until the block has ended; without `numbers`, Ctrl-C.

    Python calls handlers in the main thread, whichever thread gets the signal, so other threads have nothing to delay.
    """
    heard: set[int] = set()
    # Whatever a handler raises, the others are restored and get their signals.
    with ExitStack() as stack:
        for number, handler in _handlers(numbers or (signal.SIGINT,)).items():
            stack.callback(_hear_late, number, handler, heard)
            signal.signal(number, lambda number, _: heard.add(number))
        yield


def _hear_late(number: int, handler: Any, heard: set[int]) -> None:
    """Restore a handler, and call it if its signal arrived."""
    signal.signal(number, handler)
    if number in heard:
        handler(number, None)


def _handlers(numbers: tuple[int, ...]) -> dict[int, Any]:
    """Return the handlers of the signals that have one; none outside the main thread."""
    if threading.current_thread() is not threading.main_thread():
        return {}
    return {number: handler for number in numbers if callable(handler := signal.getsignal(number))}


@contextmanager
def held_back_from_processes() -> Iterator[None]:
    """Delay Ctrl-C until the block has ended; processes that are started meanwhile never get it.

    They inherit the signal mask, which Windows does not have. The mask is not enough for this process, since the
    threads of numerical libraries do not have it.
    """
    with held_back(), blocked(signal.SIGINT):
        yield


@contextmanager
def blocked(*numbers: int) -> Iterator[None]:
    """Block signals by the mask, which Windows does not have: processes started meanwhile inherit it."""
    if sys.platform == "win32":
        yield
        return
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, numbers)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
