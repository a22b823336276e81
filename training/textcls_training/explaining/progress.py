"""Progress of a measurement: a live bar in a terminal, a line a part elsewhere."""

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn


class BarWatcher:
    """Draws one bar, which every part begins anew."""

    def __init__(self, progress: Progress) -> None:
        self.progress = progress
        self.task = progress.add_task("", total=None)

    def phase(self, name: str, steps: int) -> None:
        """Begin the bar anew."""
        self.progress.reset(self.task, total=steps, description=name)

    def step(self) -> None:
        """Advance it."""
        self.progress.advance(self.task)


class LineWatcher:
    """Prints a line a part."""

    def __init__(self, console: Console) -> None:
        self.console = console

    def phase(self, name: str, steps: int) -> None:
        """Say what begins."""
        self.console.print(f"{name}: {steps:,} steps")

    def step(self) -> None:
        """Nothing is said of a single text."""


@contextmanager
def watching(console: Console) -> Iterator[BarWatcher | LineWatcher]:
    """Watch with a bar if `console` is a terminal, with lines if not."""
    if not console.is_terminal:
        yield LineWatcher(console)
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        yield BarWatcher(progress)
