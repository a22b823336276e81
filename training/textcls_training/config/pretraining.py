"""What a pre-training on texts without labels is told. Options as in `textcls_training.config.settings`."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, get_args

from textcls.artifact import MOST_TOKENS
from textcls.errors import ConfigError
from textcls.features import MAX_TOKENS
from textcls_training.config.options import Choice, Integer, Number, Option, option
from textcls_training.config.settings import MIXINGS, SEEDS, Device, options_of
from textcls_training.vectors.file import MOST_DIMS, MOST_WORDS

Objective = Literal["cooccurrence", "masked"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PretrainConfig:
    """A pre-training. Each field is an option, in the order of `textcls pretrain --help`.

    Raises:
        ConfigError: an option has no such value, or belongs to another objective.
    """

    objective: Objective = option(
        Choice(get_args(Objective)),
        "cooccurrence",
        "How vectors of words are learned: from which words stand in texts together, or by guessing masked words.",
    )
    mixing: str = option(Choice(MIXINGS), "none", "How the words of a text see each other around a masked one.")
    mask_rate: float = option(Number(0.01, most=0.9), 0.15, "Which share of the words is masked at a time.")
    dim: int = option(Integer(2, MOST_DIMS), 128, "Width of a word's vector.")
    words: int = option(Integer(2, MOST_WORDS), 50_000, "How many words get a vector at most, the most frequent ones.")
    epochs: int | None = option(
        Integer(1),
        None,
        "Of masked words: passes over the texts.",
        unset="so many that 4 million tokens are read, 20 at most",
    )
    texts: int = option(Integer(1), 1_000_000, "How many texts are used at most, each once.")
    max_tokens: int = option(Integer(1, MOST_TOKENS), MAX_TOKENS, "Tokens of a text that are read.")
    seed: int = option(Integer(0, SEEDS - 1), 0, "Same seed and texts, same bytes.")
    device: Device = option(Choice(get_args(Device)), "auto", "Where to train.")

    def __post_init__(self) -> None:
        for name, one in PRETRAIN_OPTIONS.items():
            object.__setattr__(self, name, one.checked(name, getattr(self, name)))
        for name, objectives in OBJECTIVES_OF_OPTION.items():
            if self.objective not in objectives and getattr(self, name) != PRETRAIN_OPTIONS[name].default:
                raise ConfigError(
                    f"{name} is an option of the objective {' or '.join(objectives)}, not of {self.objective}; leave "
                    "it out."
                )


PRETRAIN_OPTIONS: Final[Mapping[str, Option]] = options_of(PretrainConfig)
# Options that not every objective has.
OBJECTIVES_OF_OPTION: Final[Mapping[str, tuple[Objective, ...]]] = {
    "mixing": ("masked",),
    "mask_rate": ("masked",),
    "epochs": ("masked",),
}
