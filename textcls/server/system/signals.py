"""Reload signals that arrive before they can be handled: kept until then, not lost."""

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any, Final

from textcls._util import interrupts

if TYPE_CHECKING:
    import uvicorn

# To reload the models, and to replace the workers. By default they would end the process. Windows has neither.
_RELOADING: Final = () if sys.platform == "win32" else (signal.SIGUSR1, signal.SIGHUP)
_STOPPING: Final = (signal.SIGINT, signal.SIGTERM)
# Ctrl-C signals all processes of a terminal, and must not interrupt the imports of one that is starting.
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
    """Keep signals that arrive in this block until `release` is called.

    With a handler and not the signal mask, since threads of numerical libraries do not have the mask of this one.
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
    """Restore the previous handlers, unless others have been set since."""
    if threading.current_thread() is threading.main_thread():
        for number, handler in _before.items():
            if signal.getsignal(number) is _hear:
                signal.signal(number, handler)


def release() -> None:
    """Deliver the signals that were kept; called in the main thread once there are handlers for them."""
    _put_back()
    if sys.platform != "win32":
        # Blocked by the mask if this process was started by `pending_in_children`.
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _PENDING)
    while _heard:
        signal.raise_signal(_heard.pop())


def pending_in_children() -> AbstractContextManager[None]:
    """Make these signals pending in processes started in this block, until they call `release`."""
    return interrupts.blocked(*_PENDING)


@contextmanager
def stopped_by_signals(server: "uvicorn.Server") -> Iterator[None]:
    """Make signals stop `server`, and nothing more.

    uvicorn has handlers of its own while it runs, but raises the signal again when it is done, which would end the
    process as if killed. A signal before it runs is caught here, too.
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
