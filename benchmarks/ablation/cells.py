"""What an ablation trains: cells, the settings that they share, and the state that keeps their figures."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Final, cast

from runner import State
from textcls._util.options import Choice
from textcls.errors import ConfigError
from textcls_training.config.settings import OPTIONS, Attention, EmbeddingKind, TrainConfig, Values

FIELDS: Final = ("mixing", "attention", "embedding", "values")


@dataclass(frozen=True, slots=True)
class Cell:
    """One training to be measured. Fields as in `TrainConfig`."""

    mixing: str = OPTIONS["mixing"].default
    attention: str = OPTIONS["attention"].default
    embedding: str = OPTIONS["embedding"].default
    values: str = OPTIONS["values"].default
    seed: int = OPTIONS["seed"].default

    def __str__(self) -> str:
        return f"{self.name}, seed {self.seed}"

    @property
    def name(self) -> str:
        """The mixing, and what else is not the default."""
        words = [self.mixing]
        for field in FIELDS[1:]:
            value: str = getattr(self, field)
            if value != OPTIONS[field].default:
                words.append(value)
        return " ".join(words)


class AblationState(State[Cell]):
    """What an ablation has measured so far."""

    cell = Cell

    def by_name(self) -> dict[str, list[tuple[Cell, dict[str, object]]]]:
        """Return the measured cells and their figures by what they are, a list over the seeds."""
        found: dict[str, list[tuple[Cell, dict[str, object]]]] = {}
        for cell, figures in self.figures.items():
            found.setdefault(cell.name, []).append((cell, figures))
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class CellSettings:
    """What all cells share; as in `TrainConfig`, where None is what training decides by itself.

    The names of the fields stand in the state of a run, which a later version may go on with.
    """

    epochs: int | None = None
    mixing_rate: float | None = None
    bigrams: bool = True
    ngram_sizes: tuple[int, ...] | None = None

    def config(self, cell: Cell) -> TrainConfig:
        """Return what the training of a cell is told."""
        return TrainConfig(
            mixing=cell.mixing,
            attention=cast(Attention, cell.attention),
            embedding=cast(EmbeddingKind, cell.embedding),
            values=cast(Values, cell.values),
            epochs=self.epochs,
            mixing_rate=self.mixing_rate,
            bigrams=self.bigrams,
            ngrams=None if cell.embedding == "bits" else self.ngram_sizes,
            # They go together with some cells only, and cells are to differ in nothing but what they are named by.
            vectors="none",
            seed=cell.seed,
            device="cpu",
        )


def choices_of(field: str) -> tuple[str, ...]:
    """Return the values that a field of a cell may have."""
    kind = OPTIONS[field].kind
    if not isinstance(kind, Choice):
        raise TypeError(f"{field} has no choices")
    return kind.names


def choose(field: str, names: str) -> list[str]:
    """Return the values named in `names`, with commas between them; all of them for `all`.

    Raises:
        ConfigError: there is no such value.
    """
    known = choices_of(field)
    chosen = list(known) if names == "all" else list(dict.fromkeys(name.strip() for name in names.split(",")))
    for name in chosen:
        if name not in known:
            raise ConfigError(f"There is no {field} {name!r}; choose all, or some of {', '.join(known)}.")
    return chosen


def make_cells(choices: Mapping[str, Sequence[str]], seeds: Iterable[int]) -> list[Cell]:
    """Return every combination once, a seed after the other, so that a run cut short has one of each first.

    Without mixing there is nothing to mix into the values: `none` with mixed values is left out beside token values.
    """
    mixed = len(choices["values"]) > 1
    found = []
    for seed in seeds:
        for mixing, attention, embedding, values in product(*(choices[field] for field in FIELDS)):
            if not (mixed and mixing == "none" and values == "mixed"):
                found.append(Cell(mixing, attention, embedding, values, seed))
    return found
