"""How far a long task has come: a live bar in a terminal and below the cell of a notebook, plain lines elsewhere."""

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

# Seconds between two pictures of a notebook's bar, each of which is a message to the browser.
_PICTURE_SECONDS: Final = 0.2
# Rows that are counted at once: a single one takes less time than its count would.
_COUNTED: Final = 100
T = TypeVar("T")


class Progress(Protocol):
    """What a task tells of itself."""

    def phase(self, name: str, steps: int) -> None:
        """A new part of the task begins, of so many steps."""

    def step(self, count: int = 1, state: str = "") -> None:
        """So many steps were taken, after which the task stands like this."""

    def note(self, text: str) -> None:
        """Something happened that is worth a line."""


class ProgressBars:
    """Draws one bar a phase, with the state and the last note beside it."""

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
    """Prints a line when a phase begins, and of the notes no more than one a second."""

    def __init__(self, console: Console, unit: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._console, self._unit, self._clock = console, unit, clock
        self._printed, self._name = -float("inf"), ""

    def phase(self, name: str, steps: int) -> None:
        """Say what begins."""
        self._name = name
        unit = self._unit if steps != 1 else self._unit.removesuffix("s")
        self._console.print(f"{name}: {steps:,} {unit}", markup=False)

    def step(self, count: int = 1, state: str = "") -> None:
        """Nothing is said of a single step."""

    def note(self, text: str) -> None:
        """Print the note, unless one of this phase was printed a moment ago."""
        if not self._name or self._clock() - self._printed >= 1:
            self._printed = self._clock()
            self._console.print(f"{self._name}: {text}" if self._name else text, markup=False)


class ProgressCell:
    """Keeps a bar below the cell of a notebook up to date, which is gone in the end."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        from IPython.display import display

        self._clock, self._shown = clock, -float("inf")
        self._name, self._state, self._note = "", "", ""
        self._done, self._steps = 0, 1
        self._handle: Any = display(self._picture(), raw=True, display_id=True)  # type: ignore[no-untyped-call]

    def phase(self, name: str, steps: int) -> None:
        """Begin a new bar in the place of the last."""
        self._name, self._state, self._note, self._done, self._steps = name, "", "", 0, max(1, steps)
        self._show()

    def step(self, count: int = 1, state: str = "") -> None:
        """Advance the bar, and show that unless it was shown a moment ago."""
        self._done, self._state = self._done + count, state
        if self._clock() - self._shown >= _PICTURE_SECONDS:
            self._show()

    def note(self, text: str) -> None:
        """Show the note."""
        self._note = text
        self._show()

    def close(self) -> None:
        """Leave nothing of the bar."""
        self._handle.update({"text/html": "", "text/plain": ""}, raw=True)

    def _show(self) -> None:
        self._shown = self._clock()
        self._handle.update(self._picture(), raw=True)

    def _picture(self) -> dict[str, str]:
        said = "   ".join(filter(None, (self._name, f"{self._done / self._steps:.0%}", self._state, self._note)))
        return {
            "text/html": f'<progress value="{self._done}" max="{self._steps}"></progress> {escape(said)}',
            "text/plain": said,
        }


@contextmanager
def progress_on(
    console: Console, unit: str = "steps", *columns: ProgressColumn, transient: bool = False
) -> Iterator[Progress]:
    """Show progress by bars if `console` is a terminal or a notebook, by lines if not.

    Args:
        console: where.
        unit: what the steps of a phase are, for the lines.
        columns: what the bars show behind themselves, beside the state, the last note and the time that remains.
        transient: whether the bars disappear in the end.
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
    """Yield rows, of which nobody knows how many there are, and count them on a terminal while they are worked on."""
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
