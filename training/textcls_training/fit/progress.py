"""Progress of a training run: the losses of its steps and the scores of its epochs."""

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import ProgressColumn, Task
from rich.text import Text

from textcls.display.terminal import progress
from textcls.display.terminal.progress import Progress
from textcls_training.fit.callbacks import Callback

# The weight of the previous running mean when a step's loss is added.
SMOOTHING = 0.98


class _Speed(ProgressColumn):
    def __init__(self, unit: str) -> None:
        super().__init__()
        self._unit = unit

    def render(self, task: Task) -> Text:
        return Text(f"{task.speed or 0:,.0f} {self._unit}/s")


class ProgressCallback(Callback):
    """Report the running loss at each step, and mean loss and validation score at the end of each epoch."""

    def __init__(self, progress: Progress) -> None:
        self.progress = progress

    def phase(self, name: str, rows: int) -> None:
        """Show the name of the phase."""
        self.running: float | None = None
        self.losses: list[float] = []
        self.progress.phase(name, rows)

    def step(self, rows: int, loss: float | None = None) -> None:
        """Show the running loss."""
        if loss is None:
            self.progress.step(rows)
            return
        self.losses.append(loss)
        self.running = loss if self.running is None else SMOOTHING * self.running + (1 - SMOOTHING) * loss
        self.progress.step(rows, f"loss {self.running:.3f}")

    def note(self, text: str) -> None:
        """Show the note."""
        self.progress.note(text)

    def epoch(self, number: int, score: float | None) -> None:
        """Show the result of the epoch."""
        loss, self.losses = sum(self.losses) / max(1, len(self.losses)), []
        validation = "" if score is None else f", validation {score:.2%}"
        self.progress.note(f"epoch {number}, loss {loss:.3f}{validation}")


@contextmanager
def progress_on(console: Console, unit: str = "rows") -> Iterator[ProgressCallback]:
    """Yield a callback that shows progress in `unit`, by bars if `console` is a terminal, by lines if not."""
    with progress.progress_on(console, f"{unit} over all epochs", _Speed(unit)) as shown:
        yield ProgressCallback(shown)
