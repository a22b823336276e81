"""The progress of a long task: a live bar in a terminal and below the cell of a notebook, plain lines elsewhere."""

import time
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from html import escape
from typing import Any, Final, Protocol, TypeVar

from rich.console import Console
from rich.progress import (
    BarColumn,
    ProgressColumn,
    SpinnerColumn,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.progress import Progress as Bars

# Seconds between two updates of a notebook's bar, each of which is a message to the browser.
_PICTURE_SECONDS: Final = 0.2
# Rows that are counted together: a single one takes less time than counting it.
_COUNTED: Final = 100
T = TypeVar("T")


class Progress(Protocol):
    """What a task reports about its progress."""

    def phase(self, name: str, steps: int) -> None:
        """Begin a new part of the task, with this many steps."""

    def step(self, count: int = 1, state: str = "") -> None:
        """Report that this many steps were taken, and the state of the task after them."""

    def note(self, text: str) -> None:
        """Report something that is worth a line."""


class ProgressBars:
    """Draw one bar per phase, with the state and the last note beside it."""

    def __init__(self, bars: Bars) -> None:
        self._bars = bars
        self._task: TaskID | None = None

    def phase(self, name: str, steps: int) -> None:
        """Start a new bar."""
        self._task = self._bars.add_task(name, total=steps, state="", note="")

    def step(self, count: int = 1, state: str = "") -> None:
        """Advance the bar."""
        if self._task is not None:
            self._bars.update(self._task, advance=count, state=state)

    def note(self, text: str) -> None:
        """Show the note; before the first bar, as a line."""
        if self._task is None:
            self._bars.console.print(text, markup=False)
        else:
            self._bars.update(self._task, note=text)


class ProgressLines:
    """Print a line when a phase begins, and at most one note per second."""

    def __init__(self, console: Console, unit: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._console, self._unit, self._clock = console, unit, clock
        self._printed, self._name = -float("inf"), ""

    def phase(self, name: str, steps: int) -> None:
        """Print the name of the phase."""
        self._name = name
        unit = self._unit if steps != 1 else self._unit.removesuffix("s")
        self._console.print(f"{name}: {steps:,} {unit}", markup=False)

    def step(self, count: int = 1, state: str = "") -> None:
        """Print nothing for a single step."""

    def note(self, text: str) -> None:
        """Print the note, unless one of this phase was printed a moment ago."""
        if not self._name or self._clock() - self._printed >= 1:
            self._printed = self._clock()
            self._console.print(f"{self._name}: {text}" if self._name else text, markup=False)


class ProgressCell:
    """Keep a bar below the cell of a notebook up to date; it is removed at the end."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        from IPython.display import display

        self._clock, self._shown = clock, -float("inf")
        self._name, self._state, self._note = "", "", ""
        self._done, self._steps = 0, 1
        self._handle: Any = display(self._picture(), raw=True, display_id=True)  # type: ignore[no-untyped-call]

    def phase(self, name: str, steps: int) -> None:
        """Replace the last bar by a new one."""
        self._name, self._state, self._note, self._done, self._steps = name, "", "", 0, max(1, steps)
        self._show()

    def step(self, count: int = 1, state: str = "") -> None:
        """Advance the bar, and show it unless it was shown a moment ago."""
        self._done, self._state = self._done + count, state
        if self._clock() - self._shown >= _PICTURE_SECONDS:
            self._show()

    def note(self, text: str) -> None:
        """Show the note."""
        self._note = text
        self._show()

    def close(self) -> None:
        """Remove the bar."""
        self._handle.update({"text/html": "", "text/plain": ""}, raw=True)

    def _show(self) -> None:
        self._shown = self._clock()
        self._handle.update(self._picture(), raw=True)

    def _picture(self) -> dict[str, str]:
        line = "   ".join(filter(None, (self._name, f"{self._done / self._steps:.0%}", self._state, self._note)))
        return {
            "text/html": f'<progress value="{self._done}" max="{self._steps}"></progress> {escape(line)}',
            "text/plain": line,
        }


@contextmanager
def progress_on(
    console: Console, unit: str = "steps", *columns: ProgressColumn, transient: bool = False
) -> Iterator[Progress]:
    """Show progress by bars if `console` is a terminal or a notebook, by lines if not.

    Args:
        console: the console to show it on.
        unit: what the steps of a phase are, for the lines.
        columns: further columns after the bars, besides the state, the last note and the remaining time.
        transient: whether the bars disappear at the end.
    """
    if console.is_jupyter and not console.quiet:
        cell = ProgressCell()
        try:
            yield cell
        finally:
            cell.close()
        return
    if not console.is_terminal:
        yield ProgressLines(console, unit)
        return
    texts = (TextColumn("{task.fields[state]}"), TextColumn("{task.fields[note]}"))
    shown = (TextColumn("{task.description}"), BarColumn(), *columns, *texts, TimeRemainingColumn())
    with Bars(*shown, console=console, transient=transient) as bars:
        yield ProgressBars(bars)


def counted(rows: Iterable[T], console: Console) -> Generator[T, None, None]:
    """Yield rows, whose number is not known in advance, and count them on a terminal while they are processed."""
    if not console.is_terminal:
        yield from rows
        return
    columns = (SpinnerColumn(), TextColumn("{task.completed:,.0f} rows"), TimeElapsedColumn())
    with Bars(*columns, console=console, transient=True) as bars:
        task = bars.add_task("", total=None)
        for number, row in enumerate(rows, 1):
            yield row
            if number % _COUNTED == 0:
                bars.update(task, completed=number)
