"""The configuration of a pre-training on texts without labels. Options as in `textcls_training.config.settings`."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, get_args

from textcls._util.options import Choice, FileName, Integer, Name, Option, check_options, option, options_of
from textcls.errors import ConfigError
from textcls.model.artifact import MOST_TOKENS
from textcls.model.features import MAX_TOKENS
from textcls_training.config.settings import SEEDS, Device
from textcls_training.vectors.file import MOST_DIMS, MOST_WORDS

Objective = Literal["cooccurrence", "mutual-information", "label-names"]
# How many texts are used at most by default.
MOST_TEXTS: Final = 1_000_000
MOST_CLUSTERED: Final = 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class PretrainConfig:
    """A pre-training. Each field is an option, in the order of `textcls pretrain --help`.

    Raises:
        ConfigError: an option does not allow its value, or belongs to another objective.
    """

    objective: Objective = option(
        Choice(get_args(Objective)),
        "cooccurrence",
        "What to learn: word vectors, from which words occur together (cooccurrence); clusters of texts, from two "
        "views of each (mutual-information); or labels given only by their names (label-names).",
    )
    names: Path | None = option(
        FileName(),
        None,
        'File of labels, one per line; or JSON that describes what each means: {"refunds": "money back refund"}.',
    )
    teacher: str | None = option(
        Name(),
        None,
        "Teacher that knows what the names mean: the folder or name of a sentence-transformers model.",
        unset="vectors of words",
        metavar="MODEL",
    )
    clusters: int = option(Integer(2, 1000), 20, "Number of clusters.")
    vectors: Path | Literal["none", "english"] | None = option(
        FileName(("auto", "none", "english")),
        None,
        "For clusters and label names: word vectors, a file made by textcls vectors, or english, which comes "
        "with the package.",
        unset="english for texts in English; for clusters, only if they are short",
    )
    dim: int = option(Integer(2, MOST_DIMS), 128, "Width of a word's vector.")
    words: int = option(Integer(2, MOST_WORDS), 50_000, "Most words to learn vectors for, the most frequent first.")
    epochs: int | None = option(
        Integer(1),
        None,
        "Passes over the texts.",
        unset="clusters: 10, with few texts more; label names: as in training",
    )
    texts: int | None = option(
        Integer(1),
        None,
        "Most texts to use; duplicates count once.",
        unset=f"{MOST_TEXTS:,}; of clusters and label names {MOST_CLUSTERED:,}",
    )
    max_tokens: int = option(Integer(1, MOST_TOKENS), MAX_TOKENS, "Read this many tokens of each text.")
    seed: int = option(Integer(0, SEEDS - 1), 0, "Random seed; the same seed and texts give the same file.")
    device: Device = option(Choice(get_args(Device)), "auto", "Where to train.")

    def __post_init__(self) -> None:
        check_options(self)
        for name, objectives in OBJECTIVES_OF_OPTION.items():
            if self.objective not in objectives and getattr(self, name) != PRETRAIN_OPTIONS[name].default:
                raise ConfigError(
                    f"{name} is an option of the objective {' or '.join(objectives)}, not of {self.objective}; leave "
                    "it out."
                )
        if self.objective == "label-names" and self.names is None:
            raise ConfigError("The objective label-names needs names: a file of labels, one per line.")
        if self.objective == "label-names" and self.vectors == "none" and self.teacher is None:
            raise ConfigError("Texts are compared with names by vectors or by a teacher; leave vectors none out.")

    @property
    def most_texts(self) -> int:
        """Return how many texts are used at most."""
        usual = MOST_CLUSTERED if self.objective in ("mutual-information", "label-names") else MOST_TEXTS
        return usual if self.texts is None else self.texts


PRETRAIN_OPTIONS: Final[Mapping[str, Option]] = options_of(PretrainConfig)
# Options that only some objectives have.
OBJECTIVES_OF_OPTION: Final[Mapping[str, tuple[Objective, ...]]] = {
    "clusters": ("mutual-information",),
    "names": ("label-names",),
    "teacher": ("label-names",),
    "vectors": ("mutual-information", "label-names"),
    "dim": ("cooccurrence",),
    "words": ("cooccurrence",),
    "epochs": ("mutual-information", "label-names"),
}
