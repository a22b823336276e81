"""The state of a run: one JSON file, written anew after each measured cell, from which a second run goes on."""

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import click
from common import OURS, CommandError
from measure import Figures
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

RESTART = click.option("--restart", is_flag=True, help="Forget what an earlier run has measured.")


@dataclass(frozen=True)
class Cell:
    """One training to be measured.

    Attributes:
        set: name of the data set.
        model: a peer's name, or textcls with the options of its training behind it.
        seed: of the training; of the choice of rows where it is on some of them.
        rows: how many rows to train on; all where None.
    """

    set: str
    model: str
    seed: int = 0
    rows: int | None = None

    def __str__(self) -> str:
        rows = f", {self.rows:,} rows" if self.rows else ""
        return f"{self.set}, {self.model}, seed {self.seed}{rows}"

    @property
    def options(self) -> list[str]:
        """What `textcls train` is given beside the files."""
        options = self.model.split()[1:]
        return options if self.rows else [*options, "--seed", str(self.seed)]

    @property
    def ours(self) -> bool:
        """Whether this is textcls."""
        return self.model.split()[0] == OURS

    def to_json(self) -> dict[str, Any]:
        """Return the fields as plain data."""
        return asdict(self)


@dataclass
class State:
    """What a run has measured so far.

    Attributes:
        about: date, commit, machine and versions.
        figures: of each cell that was measured.
        errors: what each cell said that failed.
    """

    about: dict[str, Any]
    figures: dict[Cell, Figures] = field(default_factory=dict)
    errors: dict[Cell, str] = field(default_factory=dict)

    @classmethod
    def load(cls, path: Path) -> "State":
        """Read the state in the file at `path`.

        Raises:
            click.UsageError: it holds none.
        """
        saved = _read(path)
        state = cls(saved["about"])
        try:
            for record in saved["cells"]:
                found, error = record.pop("figures", None), record.pop("error", None)
                state._put(Cell(**record), found, error)
        except (KeyError, TypeError) as problem:
            raise click.UsageError(f"{path} holds no cells of a run that this program can read.") from problem
        return state

    def save(self, path: Path) -> None:
        """Write the state to the file at `path`, all or nothing."""
        cells = [{**cell.to_json(), "figures": found} for cell, found in self.figures.items()]
        failed = [{**cell.to_json(), "error": error} for cell, error in self.errors.items()]
        path.parent.mkdir(parents=True, exist_ok=True)
        beside = path.with_name(path.name + ".part")
        beside.write_text(json.dumps({"about": self.about, "cells": cells + failed}, indent=1) + "\n", encoding="utf-8")
        beside.replace(path)

    def _put(self, cell: Cell, found: Figures | None, error: str | None) -> None:
        self.errors.pop(cell, None)
        if found is not None:
            self.figures[cell] = found
        else:
            self.errors[cell] = str(error)

    def run(self, cells: Sequence[Cell], measure: Callable[[Cell], Figures], path: Path) -> None:
        """Measure those of `cells` that are not yet, saving to `path` after each; one that fails is noted and left."""
        missing = [cell for cell in cells if cell not in self.figures]
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
        with Progress(*columns, TimeElapsedColumn(), TimeRemainingColumn()) as progress:
            task = progress.add_task("", total=len(cells), completed=len(cells) - len(missing))
            for cell in missing:
                progress.update(task, description=str(cell))
                try:
                    self._put(cell, measure(cell), None)
                except CommandError as error:
                    self._put(cell, None, str(error))
                    progress.console.print(f"Failed: {cell}: {error}", markup=False, soft_wrap=True)
                self.save(path)
                progress.advance(task)

    def measured(self) -> list[tuple[Cell, Figures]]:
        """Return the measured cells in the order of the sets, in each of them textcls first."""
        sets = list(dict.fromkeys(cell.set for cell in self.figures))
        return sorted(self.figures.items(), key=lambda item: (sets.index(item[0].set), not item[0].ours))

    def failures(self) -> list[str]:
        """Return the lines that tell what failed; none if nothing did."""
        lines = [f"- {cell}: {error}" for cell, error in self.errors.items()]
        return ["", "Failed:", "", *lines] if lines else []


def resume(path: Path, about: dict[str, Any], restart: bool) -> State:
    """Return the state at `path` to go on with, or a new one where there is none or a `restart` is asked for.

    Raises:
        click.UsageError: it was measured at another commit, with other versions or on another machine.
    """
    if restart or not path.exists():
        return State(about)
    was, now = _identity(_read(path)["about"]), _identity(about)
    changed = [f"{name} {was.get(name)} (now {value})" for name, value in now.items() if was.get(name) != value]
    if changed:
        raise click.UsageError(f"{path} was measured with {', '.join(changed)}: go on there, or give --restart.")
    return State.load(path)


def _identity(about: dict[str, Any]) -> dict[str, str]:
    return {"commit": about["commit"], **about["versions"], "machine": about["machine"]}


def _read(path: Path) -> dict[str, Any]:
    try:
        saved: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        _identity(saved["about"])
    except (OSError, ValueError, KeyError, TypeError) as problem:
        raise click.UsageError(f"{path} is not the JSON file of a run.") from problem
    return saved
