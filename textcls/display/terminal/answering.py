"""The progress of answering many files."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from textcls.display.terminal.console import stderr_console
from textcls.display.terminal.progress import progress_on
from textcls.jobs.batch.folder import Standing

# Seconds between two lines if there is no terminal.
PACE: Final = 10.0
_MINUTE, _HOUR, _DAY = 60, 3600, 86400


@contextmanager
def standing_on(*, quiet: bool) -> Iterator[Callable[[Standing], None]]:
    """Yield a function that shows the progress on standard error: a bar in a terminal, otherwise an occasional line."""
    console = stderr_console(quiet=quiet)
    with progress_on(console, "files", transient=True) as progress:
        started, said = False, time.monotonic()

        def tell(standing: Standing) -> None:
            nonlocal started, said
            if not started:
                started = True
                if standing.files:
                    progress.phase("Answering", standing.files)
                return
            progress.step(1, sentence(standing))
            if not console.is_terminal and time.monotonic() - said >= PACE:
                said = time.monotonic()
                progress.note(sentence(standing))

        yield tell


def sentence(standing: Standing) -> str:
    """Return the progress of a run, its pace, what is left of it, and how many files have failed."""
    left = standing.seconds_left
    parts = [
        f"{standing.done + len(standing.failed):,} of {standing.files:,} files",
        f"{standing.rows:,} rows",
        f"{standing.rows_per_second:,.0f} rows/s",
        *([] if left is None else [f"{_time(left)} left"]),
        *([f"{len(standing.failed):,} failed"] if standing.failed else []),
    ]
    return ", ".join(parts)


def _time(seconds: float) -> str:
    for unit, name in ((_DAY, "days"), (_HOUR, "h"), (_MINUTE, "min")):
        if seconds >= 2 * unit:
            return f"{seconds / unit:.0f} {name}"
    return f"{seconds:.0f} s"
