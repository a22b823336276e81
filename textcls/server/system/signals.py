"""Signals that ask for a reload while nobody can do it yet: kept until somebody can, not lost."""

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import uvicorn

# To read the models anew, and to replace the workers. Their default would end the process. Windows has neither.
_RELOADING: Final = () if sys.platform == "win32" else (signal.SIGUSR1, signal.SIGHUP)
_STOPPING: Final = (signal.SIGINT, signal.SIGTERM)
# What comes to all processes of a terminal at Ctrl-C must not break off the imports of one that starts.
_PENDING: Final = (*_RELOADING, signal.SIGINT)
_heard: Final[set[int]] = set()
_before: Final[dict[int, Any]] = {}


def end_of(status: int) -> str:
    """Return how a process ended, by its status: `SIGKILL`, or `exit code 1`."""
    return signal.Signals(-status).name if status < 0 else f"exit code {status}"


def _hear(number: int, _frame: object) -> None:
    _heard.add(number)


@contextmanager
def kept() -> Iterator[None]:
    """Keep the signals that arrive in this block until `release`.

    By a handler and not by the mask: threads of numerical libraries do not have the mask of this one.
    """
    if threading.current_thread() is threading.main_thread():
        for number in _RELOADING:
            if signal.getsignal(number) is not _hear:
                _before[number] = signal.signal(number, _hear)
    try:
        yield
    finally:
        _put_back()


def _put_back() -> None:
    """Set the handlers as they were, where no others have been set since."""
    if threading.current_thread() is threading.main_thread():
        for number, handler in _before.items():
            if signal.getsignal(number) is _hear:
                signal.signal(number, handler)


def release() -> None:
    """Let those come that were kept; called once there are handlers for them, in the main thread."""
    _put_back()
    if sys.platform != "win32":
        # Kept by the mask, if this process was started so.
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _PENDING)
    while _heard:
        signal.raise_signal(_heard.pop())


@contextmanager
def pending_in_children() -> Iterator[None]:
    """Let processes that are started in this block find these signals pending until they `release` them.

    They inherit the mask of this thread before they have any other.
    """
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, _PENDING)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


@contextmanager
def stopped_by_signals(server: "uvicorn.Server") -> Iterator[None]:
    """Let signals stop `server`, and nothing more.

    uvicorn has handlers of its own while it runs, but raises the signal once more when it is done: that would end the
    process as killed. A signal before it runs is caught here, too.
    """

    def stop(number: int, frame: object) -> None:
        server.should_exit = True

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, stop) for number in _STOPPING}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
