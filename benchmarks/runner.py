"""Many trainings to be measured, in a state from which a second run goes on.

The benchmarks and the ablation share this. A cell is a frozen dataclass of plain fields, one training to be measured;
its figures are whatever JSON can hold.
"""

import json
import subprocess
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import mean, median, stdev
from typing import Any, ClassVar, Final, Generic, TypeVar

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from textcls._util.atomic_write import atomic_write
from textcls.errors import ConfigError, SurroundingsError, TextclsError
from textcls.jobs import HERE, Engine, Failed, Work

C = TypeVar("C")
Self = TypeVar("Self", bound="State[Any]")
Figures = dict[str, Any]

WARM_UP: Final = 5


class CommandError(TextclsError):
    """A process ended in failure; the message is the last thing it said."""


def last_words(said: str, code: int) -> str:
    """Return the last line of what a failed process said on standard error, or how it ended."""
    lines = said.strip().splitlines()
    return lines[-1].strip() if lines else f"ended by signal {-code}" if code < 0 else f"exit code {code}"


def figures_of(command: Sequence[str]) -> Figures:
    """Run a command in a process of its own, so that its memory is its own; its last line is its figures in JSON.

    Raises:
        CommandError: that process failed.
    """
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise CommandError(last_words(done.stderr, done.returncode))
    found: Figures = json.loads(done.stdout.splitlines()[-1])
    return found


def microseconds(
    ask: Callable[[Sequence[str]], object],
    batches: Sequence[Sequence[str]],
    clock: Callable[[], float] = time.perf_counter,
) -> float:
    """Return the median over `batches` of the microseconds a text, after a few batches to warm up.

    Args:
        ask: what is timed.
        batches: what it is given, one after the other.
        clock: seconds. `time.process_time` does not count what other programs take; of one thread it is the same else.
    """
    for batch in batches[:WARM_UP]:
        ask(batch)
    times = []
    for batch in batches:
        start = clock()
        ask(batch)
        times.append((clock() - start) / len(batch))
    return 1e6 * median(times)


@dataclass(frozen=True, slots=True)
class InOrder(Generic[C]):
    """Measures by a function of this process."""

    measure: Callable[[C], Figures]

    def ready(self) -> Callable[[C], Figures]:
        """Return the function."""
        return self.measure


@dataclass
class State(Generic[C]):
    """What a run has measured so far: one JSON file, written anew after each measured cell.

    Attributes:
        about: date, machine, versions, and what else makes it this run and no other.
        figures: of each cell that was measured.
        errors: what each cell said that failed.
        cell: what cells are; a subclass says it.
    """

    about: dict[str, Any]
    figures: dict[C, Figures] = field(default_factory=dict)
    errors: dict[C, str] = field(default_factory=dict)

    cell: ClassVar[type[Any]]

    @classmethod
    def load(cls: type[Self], path: Path) -> Self:
        """Read the state in the file at `path`.

        Raises:
            ConfigError: it holds none.
        """
        saved = _read(path)
        state = cls(saved["about"])
        try:
            for record in saved["cells"]:
                found, error = record.pop("figures", None), record.pop("error", None)
                state._put(cls.cell(**record), found, error)
        except (KeyError, TypeError) as problem:
            raise ConfigError(f"{path} holds no cells of a run that this program can read.") from problem
        return state

    def save(self, path: Path) -> None:
        """Write the state to the file at `path`, all or nothing."""
        cells = [{**asdict(cell), "figures": found} for cell, found in self.figures.items()]  # type: ignore[call-overload]
        failed = [{**asdict(cell), "error": error} for cell, error in self.errors.items()]  # type: ignore[call-overload]
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_write(path) as file:
            file.write((json.dumps({"about": self.about, "cells": cells + failed}, indent=1) + "\n").encode())

    def _put(self, cell: C, found: Figures | None, error: str | None) -> None:
        self.errors.pop(cell, None)
        if found is not None:
            self.figures[cell] = found
        else:
            self.errors[cell] = str(error)

    def run(
        self, cells: Sequence[C], measure: Callable[[C], Figures], path: Path, console: Console | None = None
    ) -> None:
        """Measure those of `cells` that are not yet in this process; see `run_by`."""
        self.run_by(HERE, InOrder(measure), cells, path, console)

    def run_by(
        self, engine: Engine, work: Work[C, Figures], cells: Sequence[C], path: Path, console: Console | None = None
    ) -> None:
        """Let an engine measure those of `cells` that are not yet, saving to `path` after each; one that fails is noted
        and left.

        Raises:
            SurroundingsError: nothing more can be done here: a full disk, workers that end unexpectedly.
        """
        missing = [cell for cell in cells if cell not in self.figures]
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
        with Progress(*columns, TimeElapsedColumn(), TimeRemainingColumn(), console=console) as progress:
            task = progress.add_task("", total=len(cells), completed=len(cells) - len(missing))
            for outcome in engine(work, missing):
                cell, error = outcome.job, outcome.error if isinstance(outcome, Failed) else None
                if isinstance(error, SurroundingsError):
                    raise error
                self._put(
                    cell, None if isinstance(outcome, Failed) else outcome.result, None if error is None else str(error)
                )
                progress.update(task, description=str(cell), advance=1)
                if error is not None:
                    progress.console.print(f"Failed: {cell}: {error}", markup=False, soft_wrap=True)
                elif not progress.console.is_terminal:
                    progress.console.print(str(cell), markup=False, soft_wrap=True)
                self.save(path)

    def failures(self) -> list[str]:
        """Return the lines that tell what failed; none if nothing did."""
        lines = [f"- {cell}: {error}" for cell, error in self.errors.items()]
        return ["", "Failed:", "", *lines] if lines else []

    @classmethod
    def resume(cls: type[Self], path: Path, about: dict[str, Any], restart: bool) -> Self:
        """Return the state at `path` to go on with, or a new one where there is none or a `restart` is asked for.

        Raises:
            ConfigError: it is that of another run: something in `about` but the date is not the same.
        """
        if restart or not path.exists():
            return cls(about)
        was, now = _identity(_read(path)["about"]), _identity(about)
        changed = [f"{name} {was.get(name)} (now {value})" for name, value in now.items() if was.get(name) != value]
        if changed:
            raise ConfigError(f"{path} was measured with {', '.join(changed)}: go on there, or give --restart.")
        return cls.load(path)


def _identity(about: dict[str, Any]) -> dict[str, Any]:
    return {**about["versions"], **{name: value for name, value in about.items() if name not in ("date", "versions")}}


def _read(path: Path) -> dict[str, Any]:
    try:
        saved: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        _identity(saved["about"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as problem:
        raise ConfigError(f"{path} is not the JSON file of a run.") from problem
    return saved


def markdown_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Return the lines of a Markdown table."""
    return ["| " + " | ".join(row) + " |" for row in (header, ["---"] * len(header), *rows)]


def mean_and_spread(values: Sequence[float]) -> str:
    """Return the mean and, of several values, their sample standard deviation."""
    spread = f" ± {stdev(values):.2f}" if len(values) > 1 else ""
    return f"{mean(values):.2f}{spread}"
