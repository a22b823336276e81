"""What a pre-training on texts without labels is told. Options as in `textcls_training.config.settings`."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, get_args

from textcls.artifact import MOST_TOKENS
from textcls.errors import ConfigError
from textcls.features import MAX_TOKENS
from textcls_training.config.options import Choice, FileName, Integer, Name, Number, Option, option
from textcls_training.config.settings import MIXINGS, SEEDS, Device, options_of
from textcls_training.vectors.file import MOST_DIMS, MOST_WORDS

Objective = Literal["cooccurrence", "masked", "mutual-information", "label-names"]
# How many texts are used at most if nothing is said of it.
MOST_TEXTS: Final = 1_000_000
MOST_CLUSTERED: Final = 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class PretrainConfig:
    """A pre-training. Each field is an option, in the order of `textcls pretrain --help`.

    Raises:
        ConfigError: an option has no such value, or belongs to another objective.
    """

    objective: Objective = option(
        Choice(get_args(Objective)),
        "cooccurrence",
        "What is learned: vectors of words, from which words stand in texts together (cooccurrence) or by guessing "
        "masked words; clusters of texts, from two views of each (mutual-information); or labels whose names alone are "
        "told (label-names).",
    )
    names: Path | None = option(
        FileName(),
        None,
        'Labels, one a line; or JSON that says in words what each means: {"refunds": "money back refund"}.',
    )
    teacher: str | None = option(
        Name(),
        None,
        "Who knows what names mean: the folder or the name of a sentence-transformers model.",
        unset="vectors of words",
    )
    clusters: int = option(Integer(2, 1000), 20, "How many clusters there are to be.")
    vectors: Path | Literal["none", "english"] | None = option(
        FileName(("auto", "none", "english")),
        None,
        "Of clusters and label names: vectors of words: a file made by textcls vectors, or english, which come along.",
        unset="english for texts in English, of clusters only for short ones",
    )
    mixing: str = option(Choice(MIXINGS), "none", "How the words of a text see each other around a masked one.")
    mask_rate: float = option(Number(0.01, most=0.9), 0.15, "Which share of the words is masked at a time.")
    dim: int = option(Integer(2, MOST_DIMS), 128, "Width of a word's vector.")
    words: int = option(Integer(2, MOST_WORDS), 50_000, "How many words get a vector at most, the most frequent ones.")
    epochs: int | None = option(
        Integer(1),
        None,
        "Passes over the texts.",
        unset="of masked words so many that 4 million tokens are read, 20 at most; of clusters 10, of few texts more; "
        "of label names as in training",
    )
    texts: int | None = option(
        Integer(1),
        None,
        "How many texts are used at most, each once.",
        unset=f"{MOST_TEXTS:,}; of clusters and label names {MOST_CLUSTERED:,}",
    )
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
        if self.objective == "label-names" and self.names is None:
            raise ConfigError("The objective label-names needs names, a file of the labels; give one a line.")

    @property
    def most_texts(self) -> int:
        """How many texts are used at most."""
        usual = MOST_CLUSTERED if self.objective in ("mutual-information", "label-names") else MOST_TEXTS
        return usual if self.texts is None else self.texts


PRETRAIN_OPTIONS: Final[Mapping[str, Option]] = options_of(PretrainConfig)
# Options that not every objective has.
OBJECTIVES_OF_OPTION: Final[Mapping[str, tuple[Objective, ...]]] = {
    "clusters": ("mutual-information",),
    "names": ("label-names",),
    "teacher": ("label-names",),
    "vectors": ("mutual-information", "label-names"),
    "mixing": ("masked",),
    "mask_rate": ("masked",),
    "dim": ("cooccurrence", "masked"),
    "words": ("cooccurrence", "masked"),
    "epochs": ("masked", "mutual-information", "label-names"),
}
