"""What an ablation trains: cells, the settings that they share, and the state that keeps their figures."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import cast

from textcls.errors import ConfigError
from textcls_training.choices import ATTENTIONS, EMBEDDINGS, MIXINGS, VALUES, Attention, EmbeddingKind, Values
from textcls_training.config import TrainConfig, default_dim
from textcls_training.experiments import State
from textcls_training.model import ModelConfig

CHOICES: dict[str, tuple[str, ...]] = {
    "mixing": MIXINGS,
    "attention": ATTENTIONS,
    "embedding": EMBEDDINGS,
    "values": VALUES,
}
DEFAULT = ModelConfig()


@dataclass(frozen=True, slots=True)
class Cell:
    """One training to be measured. Fields as in `ModelConfig`; `seed` is that of the training."""

    mixing: str = DEFAULT.mixing
    attention: str = DEFAULT.attention
    embedding: str = DEFAULT.embedding
    values: str = DEFAULT.values
    seed: int = 0

    def __str__(self) -> str:
        return f"{self.name}, seed {self.seed}"

    @property
    def name(self) -> str:
        """The mixing, and what else is not the default."""
        more = [getattr(self, field) for field in CHOICES if field != "mixing"]
        usual = [getattr(DEFAULT, field) for field in CHOICES if field != "mixing"]
        return " ".join([self.mixing, *(one for one, other in zip(more, usual, strict=True) if one != other)])


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
class Settings:
    """What all cells share; as in `TrainConfig`, where None is what training decides by itself."""

    epochs: int | None = None
    mixing_rate: float | None = None
    bigrams: bool = True
    ngram_sizes: tuple[int, ...] | None = None

    def config(self, cell: Cell, labels: int) -> TrainConfig:
        """Return what the training of a cell is told."""
        bits = cell.embedding == "bits"
        return TrainConfig(
            model=ModelConfig(
                mixing=cell.mixing,
                attention=cast(Attention, cell.attention),
                embedding=cast(EmbeddingKind, cell.embedding),
                values=cast(Values, cell.values),
                dim=default_dim(labels),
            ),
            epochs=self.epochs,
            mixing_rate=self.mixing_rate,
            bigrams=self.bigrams,
            ngram_sizes=None if bits else self.ngram_sizes,
            seed=cell.seed,
            device="cpu",
        )


def choose(field: str, names: str) -> list[str]:
    """Return the values named in `names`, with commas between them; all of them for `all`.

    Raises:
        ConfigError: there is no such value.
    """
    known = CHOICES[field]
    chosen = list(known) if names == "all" else list(dict.fromkeys(name.strip() for name in names.split(",")))
    for name in chosen:
        if name not in known:
            raise ConfigError(f"There is no {field} {name!r}; choose all, or some of {', '.join(known)}.")
    return chosen


def make_cells(choices: Mapping[str, Sequence[str]], seeds: Iterable[int]) -> list[Cell]:
    """Return every combination once, a seed after the other, so that a run cut short has one of each first.

    Without mixing there is nothing to mix into the values: `none` with mixed values is left out beside token values.
    """
    combined = list(product(*(choices[field] for field in CHOICES)))
    found = [Cell(**dict(zip(CHOICES, chosen, strict=True)), seed=seed) for seed in seeds for chosen in combined]
    twice = len(choices["values"]) > 1
    return [cell for cell in found if not (twice and cell.mixing == "none" and cell.values == "mixed")]
