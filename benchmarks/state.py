"""The cells and the state of a run of the benchmarks, which `runner` keeps."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import click

import runner
from common import OURS
from measure import Figures
from textcls.errors import ConfigError

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


class State(runner.State[Cell]):
    """What a run has measured so far."""

    cell = Cell

    @classmethod
    def load(cls, path: Path) -> "State":
        """Read the state in the file at `path`.

        Raises:
            click.UsageError: it holds none.
        """
        try:
            return super().load(path)
        except ConfigError as problem:
            raise click.UsageError(str(problem)) from problem

    def measured(self) -> list[tuple[Cell, Figures]]:
        """Return the measured cells in the order of the sets, in each of them textcls first."""
        sets = list(dict.fromkeys(cell.set for cell in self.figures))
        return sorted(self.figures.items(), key=lambda item: (sets.index(item[0].set), not item[0].ours))


def resume(path: Path, about: dict[str, Any], restart: bool) -> State:
    """Return the state at `path` to go on with, or a new one where there is none or a `restart` is asked for.

    Raises:
        click.UsageError: it was measured at another commit, with other versions or on another machine.
    """
    try:
        return State.resume(path, about, restart)
    except ConfigError as problem:
        raise click.UsageError(str(problem)) from problem
