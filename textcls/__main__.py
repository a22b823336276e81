"""What the command `textcls` runs, and `python -m textcls`, too."""

import atexit
import io
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TextIO

from textcls.cli import main, report_os_error


def run() -> None:
    """Run the command, and end the process without taking down what was imported, which takes a third of a second.

    Threads have ended and other exit handlers have run by then, as the first one that is registered runs last.
    """
    status: object = 1  # What an exception that nobody catches exits with.
    ended = 0  # What a signal exits with.

    def leave() -> None:
        nonlocal status
        try:
            sys.stdout.flush()
            sys.stderr.flush()
        except OSError as error:  # what was said last has not left the buffer
            status = status or report_os_error(error)
        os._exit(ended or (status if isinstance(status, int) else int(status is not None)))

    def end(number: int, _: object) -> None:
        """End as by an exception, so that no half-written file is left, with the status that shells give to signals."""
        nonlocal ended
        ended = 128 + number
        signal.signal(number, signal.SIG_DFL)  # Where the exception is lost, a second signal is not.
        sys.exit(ended)

    # Who starts programs in the background may have closed them.
    sys.stdout, sys.stderr = sys.stdout or _nowhere(), sys.stderr or _nowhere()
    atexit.register(leave)
    for name in ("SIGTERM", "SIGHUP"):
        _handle(getattr(signal, name, None), end)
    if isinstance(sys.stdout, io.TextIOWrapper):
        # In a pipe on Windows it is a code page, without half of the signs that a text may have.
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        main(prog_name="textcls")
    except SystemExit as done:
        status = done.code
        raise
    except OSError as error:  # click itself writes what --help and --version say
        status = report_os_error(error)
        sys.exit(status)
    except Exception:
        if ended:  # Libraries turn an exit while they are imported into an error of theirs.
            sys.exit(ended)
        raise


def _handle(number: int | None, handler: Callable[[int, object], None]) -> None:
    """Set the handler of a signal that there is here, and that is not ignored, as under nohup."""
    if number is not None and signal.getsignal(number) is signal.SIG_DFL:
        signal.signal(number, handler)


def _nowhere() -> TextIO:
    return Path(os.devnull).open("w", encoding="utf-8")


if __name__ == "__main__":
    run()
