"""The entry point of the command `textcls` and of `python -m textcls`."""

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
    """Run the command, and end the process without tearing down what was imported, which takes a third of a second.

    Threads have ended and other exit handlers have run by then, as the handler registered first runs last.
    """
    status: object = 1  # The exit status after an uncaught exception.
    ended = 0  # The exit status after a signal.

    def leave() -> None:
        nonlocal status
        try:
            sys.stdout.flush()
            sys.stderr.flush()
        except OSError as error:  # the last output could not be written
            status = status or report_os_error(error)
        os._exit(ended or (status if isinstance(status, int) else int(status is not None)))

    def end(number: int, _: object) -> None:
        """End by an exception, so that no half-written file is left, with the status that shells give to signals."""
        nonlocal ended
        ended = 128 + number
        signal.signal(number, signal.SIG_DFL)  # If the exception is swallowed, a second signal still works.
        sys.exit(ended)

    # Both are None if the program was started in the background with closed streams.
    sys.stdout, sys.stderr = sys.stdout or _nowhere(), sys.stderr or _nowhere()
    atexit.register(leave)
    for name in ("SIGTERM", "SIGHUP"):
        _handle(getattr(signal, name, None), end)
    if isinstance(sys.stdout, io.TextIOWrapper):
        # In a pipe on Windows, the encoding is a code page, which lacks many characters that a text may have.
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        main(prog_name="textcls")
    except SystemExit as done:
        status = done.code
        raise
    except OSError as error:  # click itself writes the output of --help and --version
        status = report_os_error(error)
        sys.exit(status)
    except Exception:
        if ended:  # Libraries turn an exit during their import into an error of their own.
            sys.exit(ended)
        raise


def _handle(number: int | None, handler: Callable[[int, object], None]) -> None:
    """Set the handler of a signal, if this system has it and it is not ignored, as under nohup."""
    if number is not None and signal.getsignal(number) is signal.SIG_DFL:
        signal.signal(number, handler)


def _nowhere() -> TextIO:
    return Path(os.devnull).open("w", encoding="utf-8")


if __name__ == "__main__":
    run()
