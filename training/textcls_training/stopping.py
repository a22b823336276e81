"""Ctrl-C while a model is trained: what has been learned so far may be worth keeping."""

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Final

from textcls_training.watching import Stop

_SAID: Final = b"\nInterrupted: saving what has been learned so far. Ctrl-C once more ends without it.\n"


@contextmanager
def stopped_by_ctrl_c(*, quiet: bool) -> Iterator[Stop]:
    """Let Ctrl-C inside ask to stop once that leads to a model; before, and the second time, it interrupts as ever.

    Outside the main thread, and where somebody ignores or handles Ctrl-C otherwise, nothing is changed.
    """
    stop = Stop()

    def handle(number: int, frame: FrameType | None) -> None:
        if stop.asked or stop.kept is None:
            signal.default_int_handler(number, frame)
        stop.asked = True
        if not quiet:
            # print() may be what has been interrupted, and must not be entered twice.
            os.write(sys.stderr.fileno(), _SAID)

    ours = threading.current_thread() is threading.main_thread()
    if not ours or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield stop
        return
    signal.signal(signal.SIGINT, handle)
    try:
        yield stop
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
