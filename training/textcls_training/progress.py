"""Progress of a training run: a live bar in a terminal, plain lines elsewhere."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn, TimeRemainingColumn
from rich.text import Text

from textcls_training.watching import EpochScore

# Share of the running mean that a step's loss keeps.
SMOOTHING = 0.98


class _Speed(ProgressColumn):
    def render(self, task: Task) -> Text:
        return Text(f"{task.speed or 0:,.0f} rows/s")


class BarWatcher:
    """Draws one bar a phase, with the running loss and the best validation score."""

    def __init__(self, progress: Progress) -> None:
        self.progress = progress
        self.loss: float | None = None

    def phase(self, name: str, rows: int) -> None:
        """Start a new bar."""
        self.loss = None
        self.task = self.progress.add_task(name, total=rows, loss="", score="")

    def step(self, rows: int, loss: float) -> None:
        """Advance the bar."""
        self.loss = loss if self.loss is None else SMOOTHING * self.loss + (1 - SMOOTHING) * loss
        self.progress.update(self.task, advance=rows, loss=f"loss {self.loss:.3f}")

    def epoch(self, number: int, score: EpochScore | None) -> None:
        """Show the validation score."""
        if score is not None:
            self.progress.update(self.task, score=f"epoch {number}: validation {score.accuracy:.2%}")


class LineWatcher:
    """Prints a line when an epoch ends, but no more than one a second."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.printed = -float("inf")

    def phase(self, name: str, rows: int) -> None:
        """Say what begins."""
        self.name = name
        self.losses: list[float] = []
        self.console.print(f"{name}: {rows:,} rows over all epochs")

    def step(self, rows: int, loss: float) -> None:
        """Remember the loss."""
        self.losses.append(loss)

    def epoch(self, number: int, score: EpochScore | None) -> None:
        """Say how the epoch went."""
        loss, self.losses = sum(self.losses) / max(1, len(self.losses)), []
        if time.monotonic() - self.printed >= 1:
            self.printed = time.monotonic()
            validation = "" if score is None else f", validation {score.accuracy:.2%}"
            self.console.print(f"{self.name}: epoch {number}, loss {loss:.3f}{validation}")


@contextmanager
def watching(console: Console) -> Iterator[BarWatcher | LineWatcher]:
    """Watch with a bar if `console` is a terminal, with lines if not."""
    if not console.is_terminal:
        yield LineWatcher(console)
        return
    columns = (TextColumn("{task.description}"), BarColumn(), _Speed(), TextColumn("{task.fields[loss]}"))
    with Progress(*columns, TextColumn("{task.fields[score]}"), TimeRemainingColumn(), console=console) as progress:
        yield BarWatcher(progress)
