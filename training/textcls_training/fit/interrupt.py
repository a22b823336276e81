"""Ending a training early: who asks for it, and how Ctrl-C does. What has been learned so far may be worth keeping."""

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Final

_NOTICE: Final = b"\nInterrupted: saving what has been learned so far. Ctrl-C once more ends without it.\n"


@dataclass(slots=True)
class Stop:
    """A request to end a training early, and to keep what it has learned.

    Attributes:
        requested: set by whoever wants it to end; every step looks here.
        possible: whether something is worth keeping: set by the training once its first fold was validated. Before, a
            training can only be broken off.
    """

    requested: bool = False
    possible: bool = False


@contextmanager
def stopped_by_ctrl_c(*, quiet: bool) -> Iterator[Stop]:
    """Let Ctrl-C inside request a stop once one is possible; before, and the second time, it interrupts as ever.

    Outside the main thread, and where somebody ignores or handles Ctrl-C otherwise, nothing is changed.
    """
    stop = Stop()

    def handle(number: int, frame: FrameType | None) -> None:
        if stop.requested or not stop.possible:
            signal.default_int_handler(number, frame)
        stop.requested = True
        if not quiet:
            # print() may be what has been interrupted, and must not be entered twice.
            os.write(sys.stderr.fileno(), _NOTICE)

    ours = threading.current_thread() is threading.main_thread()
    if not ours or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield stop
        return
    signal.signal(signal.SIGINT, handle)
    try:
        yield stop
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
