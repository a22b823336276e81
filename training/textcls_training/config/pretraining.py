"""What a pre-training on texts without labels is told. Options as in `textcls_training.config.settings`."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, get_args

from textcls.artifact import MOST_TOKENS
from textcls.errors import ConfigError
from textcls.features import MAX_TOKENS
from textcls_training.config.options import Choice, Integer, Option, option
from textcls_training.config.settings import MIXINGS, SEEDS, Device, options_of

Objective = Literal["masked", "mutual-information"]
# How many texts are used at most if nothing is said of it.
MOST_TEXTS: Final[Mapping[Objective, int]] = {"masked": 1_000_000, "mutual-information": 20_000}


@dataclass(frozen=True, slots=True, kw_only=True)
class PretrainConfig:
    """A pre-training. Each field is an option, in the order of `textcls pretrain --help`.

    Raises:
        ConfigError: an option has no such value, or belongs to another objective.
    """

    objective: Objective = option(
        Choice(get_args(Objective)),
        "masked",
        "What is learned: masked words, which gives vectors of words, or mutual information, which gives clusters of "
        "texts.",
    )
    clusters: int = option(Integer(2, 1000), 20, "How many clusters there are to be.")
    mixing: str = option(Choice(MIXINGS), "none", "How the words of a text see each other around a masked one.")
    epochs: int = option(Integer(1), 10, "Passes over the texts.")
    texts: int | None = option(
        Integer(1),
        None,
        "How many texts are used at most, each once.",
        unset=f"{MOST_TEXTS['masked']:,}; {MOST_TEXTS['mutual-information']:,} for clusters",
    )
    max_tokens: int = option(Integer(1, MOST_TOKENS), MAX_TOKENS, "Tokens of a text that are read.")
    seed: int = option(Integer(0, SEEDS - 1), 0, "Same seed and texts, same bytes.")
    device: Device = option(Choice(get_args(Device)), "auto", "Where to train.")

    def __post_init__(self) -> None:
        for name, one in PRETRAIN_OPTIONS.items():
            object.__setattr__(self, name, one.checked(name, getattr(self, name)))
        for name, objective in OBJECTIVE_OF_OPTION.items():
            if objective != self.objective and getattr(self, name) != PRETRAIN_OPTIONS[name].default:
                raise ConfigError(
                    f"{name} is for the objective {objective!r}, not for {self.objective!r}; leave it out."
                )

    @property
    def most_texts(self) -> int:
        """How many texts are used at most."""
        return MOST_TEXTS[self.objective] if self.texts is None else self.texts


PRETRAIN_OPTIONS: Final[Mapping[str, Option]] = options_of(PretrainConfig)
# Options of one objective alone.
OBJECTIVE_OF_OPTION: Final[Mapping[str, Objective]] = {"mixing": "masked", "clusters": "mutual-information"}
