"""End a training early, on request or by Ctrl-C. What has been learned so far may be worth keeping."""

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
        requested: set to end the training; checked at every step.
        possible: whether something is worth keeping: set by the training once its first fold was validated. Before
            that, a training can only be aborted.
    """

    requested: bool = False
    possible: bool = False


@contextmanager
def stopped_by_ctrl_c(*, quiet: bool) -> Iterator[Stop]:
    """Let Ctrl-C inside request a stop once one is possible; before, and the second time, it interrupts as usual.

    Outside the main thread, and if Ctrl-C is already ignored or handled otherwise, nothing is changed.
    """
    stop = Stop()

    def handle(number: int, frame: FrameType | None) -> None:
        if stop.requested or not stop.possible:
            signal.default_int_handler(number, frame)
        stop.requested = True
        if not quiet:
            # print() may be what was interrupted, and is not reentrant.
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
