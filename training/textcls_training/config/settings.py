"""The configuration of a training run: the user's options, the sizes of the model, and the rates of its optimizers."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final, Literal, get_args

from textcls._util.gone import gone
from textcls._util.options import (
    Choice,
    FileName,
    Flag,
    Integer,
    Name,
    Number,
    Option,
    check_options,
    option,
    options_of,
)
from textcls.errors import ConfigError
from textcls.model.artifact import MOST_TOKENS
from textcls.model.features import MAX_TOKENS
from textcls_training.config.options import Bytes, ClassWeights, ExampleText, NgramSizes

Attention = Literal["norm", "softmax", "cosine", "kernel", "metric"]
ClassWeight = Literal["auto", "none", "balanced"] | Mapping[str, float]
Device = Literal["auto", "cpu", "cuda"]
Impl = Literal["auto", "compiled", "one-vs-rest", "reference"]
EmbeddingKind = Literal["rows", "bits"]
Head = Literal["linear", "prototypes"]
Size = Literal["tiny", "small", "default", "full"]
Values = Literal["token", "mixed"]
# A variant follows a colon; `textcls_torch.models.mixing.MIXERS` has a layer for each.
MIXINGS: Final = (
    "none",
    "pool",
    "fourier",
    "mixer",
    "lambda",
    "lambda:kernel",
    "lambda:position",
    "lambda:kernel+position",
    "gmlp",
    "gmlp:full",
    "gmlp:multiplicative",
    "gmlp:additive",
    "gmlp:linear",
    "amlp",
    "linear",
    "softmax",
    "metric",
    "metric:heads",
    "sha",
)
NONLINEAR_SCORES: Final = ("cosine", "kernel")
# Options of the machine that trains, which change no byte of the model.
WITHOUT_EFFECT: Final = ("max_memory",)
# Options that a model does not name: they change no weight, or are reported together with their effect, if any.
_NOT_NAMED: Final = (
    *WITHOUT_EFFECT, "class_weight", "device", "example", "impl", "label_names", "rehearsal_rows", "teacher",
    "unlabelled_weight", "vectors",
)  # fmt: skip
# The number of seeds: those that the generators of both PyTorch and NumPy accept.
SEEDS: Final = 2**63


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainConfig:
    """A training run. Each field but the last three is an option, in the order of `textcls train --help`.

    Values are checked and normalised: `ngrams="3,5"` becomes (3, 5). Values of None are decided by
    `textcls_training.config.resolve`.

    Attributes:
        model: the whole model, in place of `mixing`, `attention`, `embedding`, `values` and `dim`.
        optim: batch size and rates.
        given: names of options chosen explicitly, even if equal to the default: when a training continues an earlier
            one, the others are those of the earlier training.
    """

    mixing: str = option(Choice(MIXINGS), "none", "Layer that mixes the tokens of a text.")
    mixing_rate: float | None = option(Number(0, above=True), None, "Learning rate of the mixing layer.", unset="0.001")
    attention: Attention = option(Choice(get_args(Attention)), "norm", "Kind of attention.")
    embedding: EmbeddingKind = option(
        Choice(get_args(EmbeddingKind)),
        "rows",
        "Where a token's vector comes from: rows of a table, or the bits of its hash (words only, tens of kilobytes).",
    )
    values: Values = option(Choice(get_args(Values)), "token", "What attention sums: token vectors, or mixed ones.")
    ngrams: tuple[int, ...] | None = option(
        NgramSizes(),
        None,
        "Sizes of character n-grams, such as 3,5; none is faster and less accurate.",
        unset="auto",
        metavar="SIZES",
    )
    bigrams: bool = option(Flag(), True, "Use pairs of neighbouring words, and triples where letters are words.")
    dim: int | None = option(
        Integer(1, 1024), None, "Width of a token's vector.", unset="32; 64 for more than 32 labels"
    )
    epochs: int | None = option(
        Integer(1), None, "Most passes over the training rows.", unset="depends on the number of rows"
    )
    table_rate: float | None = option(
        Number(0, above=True), None, "Learning rate of the vectors of tokens.", unset="depends on the number of rows"
    )
    head_rate: float | None = option(
        Number(0, above=True),
        None,
        "Learning rate of attention and head.",
        unset="0.003; 0.009 for fewer than 1,500 rows",
    )
    max_tokens: int = option(Integer(1, MOST_TOKENS), MAX_TOKENS, "Read this many tokens of each text.")
    class_weight: ClassWeight = option(
        ClassWeights(),
        "auto",
        "Weight of each label: none weighs all rows the same, balanced raises rare labels, auto less so, and only "
        'those of few rows; or a JSON file of weights such as {"billing": 2}.',
        metavar="auto|none|balanced|FILE",
    )
    target_precision: float | None = option(
        Number(0, above=True, most=1),
        None,
        "With several labels per text: choose each label's threshold for this precision, for example 0.95.",
        unset="for F1",
    )
    target_recall: float | None = option(
        Number(0, above=True, most=1),
        None,
        "With several labels per text: choose each label's threshold for this recall.",
        unset="for F1",
    )
    size: Size = option(
        Choice(get_args(Size)),
        "default",
        "Size limit of the model file: 300 KB, 1 MB, 3 MB plus 0.1 MB for each label above 10, or none.",
    )
    vectors: Path | Literal["none", "english"] | None = option(
        FileName(("auto", "none", "english")),
        None,
        "Word vectors: a file made by textcls vectors, or english, which comes with the package.",
        unset="english for English rows, if validation rows gain",
    )
    label_names: Path | Literal["none"] | None = option(
        FileName(("auto", "none")),
        None,
        "Also learn what labels mean: a table of texts about them, with the columns text and label.",
        unset="their own words, where rows are few",
    )
    head: Head = option(
        Choice(get_args(Head)),
        "linear",
        "How labels are represented: learned weights, or prototypes, to which textcls teach can add labels later.",
    )
    keep_texts: bool = option(
        Flag(), False, "Keep the texts behind each prototype in the model file, to show them in explanations."
    )
    example: str | None = option(
        ExampleText(),
        None,
        "An example text for the page of textcls serve and web to start with; it is kept in the model file.",
        unset="none",
    )
    rationale_weight: float = option(Number(0), 10.0, "How strongly attention is drawn to the rationales.")
    teacher: str | None = option(
        Name(),
        None,
        "Teacher that labels the unlabelled texts: the folder or name of a sentence-transformers model.",
        unset="the model itself",
        metavar="MODEL",
    )
    tune_teacher: bool = option(
        Flag(),
        False,
        "Train all weights of the teacher on the labelled rows first, which takes minutes to hours without a GPU.",
    )
    unlabelled_rows: int = option(Integer(1), 20_000, "Most unlabelled texts to use.")
    unlabelled_weight: float | None = option(
        Number(0),
        None,
        "Weight of an unlabelled text, relative to a labelled one.",
        unset="0 or 1, whichever held-out rows prefer",
    )
    seed: int = option(Integer(0, SEEDS - 1), 0, "Random seed; the same seed and rows give the same file.")
    device: Device = option(
        Choice(get_args(Device)),
        "auto",
        "Device to train on; auto uses a GPU, if there is one, when PyTorch trains.",
    )
    impl: Impl = option(
        Choice(get_args(Impl)),
        "auto",
        "Implementation: compiled loops, for models without mixing; with several labels per text, one linear support "
        "vector machine per label; or the PyTorch reference. auto takes the reference if it must, and of the others "
        "what held-out rows prefer.",
    )
    batch_size: int | None = option(
        Integer(1),
        None,
        "Texts of a step; in larger steps the learning rates grow with the square root, on a GPU that of rows less.",
        unset="32; 16 for less than 8,000 rows; on a GPU up to 512",
    )
    rehearsal_rows: int = option(
        Integer(0),
        20_000,
        "How many rows, with their texts, a state keeps to rehearse when training continues; 0 for none.",
    )
    max_memory: int | None = option(
        Bytes(10**9),
        None,
        "About how much memory training may take: rows that need more lie in files beside the output, or where TMPDIR "
        "says. The model is the same.",
        unset="half of what there is",
        metavar="SIZE",
    )
    model: "ModelConfig | None" = None
    optim: "OptimConfig | None" = None
    given: frozenset[str] = field(default=frozenset(), compare=False)

    def __post_init__(self) -> None:
        check_options(self)
        changed = [name for name in _OF_THE_MODEL if getattr(self, name) != OPTIONS[name].default]
        if self.model is not None and changed:
            raise ConfigError(f"Both a whole model and {changed[0]} are given; leave one of them out.")
        model = self.model or self
        if model.embedding == "bits" and self.ngrams:
            raise ConfigError("The bits embedding reads words only; leave out n-grams, or use embedding rows.")
        if self.target_precision is not None and self.target_recall is not None:
            raise ConfigError("target_precision and target_recall both choose the thresholds; use only one of them.")
        if self.head == "prototypes" and (wrong := self._beside_prototypes()) is not None:
            raise ConfigError(f"Prototypes cannot be combined with {wrong}; leave one of the two out.")
        if self.keep_texts and self.head != "prototypes":
            raise ConfigError("keep_texts is only for a head of prototypes; no other model file holds texts.")
        if self.tune_teacher and self.teacher is None:
            raise ConfigError("tune_teacher tunes the teacher, and none is given; name one, or leave it out.")
        if model is self and self.mixing == "none" and self.values == "mixed":
            raise ConfigError("values 'mixed' are those of a mixing layer, and there is none; choose a mixing as well.")
        if self.batch_size is not None and self.optim is not None:
            raise ConfigError("Both all rates and batch_size are given; leave one of them out.")
        beside = self.beside_vectors()
        if self.vectors not in (None, "none") and beside is not None:
            raise ConfigError(f"Word vectors cannot be combined with {beside}; leave one of the two out.")

    def beside_vectors(self) -> str | None:
        """Return what vectors cannot be combined with: in a saved model they are folded into values of labels."""
        model = self.model or self
        for name, value, fits in (
            ("mixing", model.mixing, model.mixing == "none"),
            ("attention", model.attention, model.attention not in NONLINEAR_SCORES),
            ("embedding", model.embedding, model.embedding == "rows"),
        ):
            if not fits:
                return f"{name} {value!r}"
        return None

    def _beside_prototypes(self) -> str | None:
        """Return what prototypes cannot be combined with: the vectors of a text are sums of rows, one per view."""
        beside = self.beside_vectors()
        return "several seeds" if beside is None and self.model is not None and self.model.seeds > 1 else beside

    def chosen(self) -> dict[str, Any]:
        """Return the options that a model names because they differ from the default, as JSON values."""
        values = {name: getattr(self, name) for name in OPTIONS if name not in _NOT_NAMED}
        return {name: value for name, value in values.items() if value != OPTIONS[name].default}


OPTIONS: Final[Mapping[str, Option]] = options_of(TrainConfig)
_OF_THE_MODEL: Final = ("mixing", "attention", "embedding", "values", "dim")


def from_options(options: Mapping[str, object]) -> TrainConfig:
    """Return the configuration for options, named as on the command line, with an underscore for each hyphen.

    Raises:
        ConfigError: there is no such option, or it does not allow the value.
    """
    for name in options:
        if why := gone("train", name):
            raise ConfigError(f"Training has no option {name!r} any more: {why}")
        if name not in OPTIONS:
            close = get_close_matches(name, OPTIONS, 1)
            meant = f"did you mean {close[0]!r}?" if close else f"there are {', '.join(sorted(OPTIONS))}."
            raise ConfigError(f"Training has no option {name!r}; {meant}")
    given: dict[str, Any] = dict(options)
    return TrainConfig(**given, given=frozenset(given))


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelConfig:
    """The components of the model. The names of the fields are in the metadata of saved models.

    Attributes:
        dim: width D of a token's vector.
        mixing: name of the mixing layer, see `textcls_torch.models.mixing.MIXERS`.
        attention: how scores become weights. `norm` (`ops.norm_weights`) and `softmax` weigh scalar products s . x_t,
            or metric scores; `metric` is the softmax of metric scores; `cosine` the softmax of `ops.cosine_scores`,
            `kernel` that of `ops.kernel_scores`.
        embedding: how a token gets its vector: from `rows` of a table (`textcls_torch.models.hashed_embedding`), or
            from the `bits` of its hash (`textcls_torch.models.bit_embedding`).
        metric: whether `norm` and `softmax` weigh metric scores, see `SeedAttention`; None is decided before training
            (`textcls_training.config.resolve`), and means no until then.
        values: what the attention sums, the token's own vector or the mixed one.
        seeds: number S of learned queries.
        dropout: the share of the pooled vector's entries dropped in training.
        seed_dropout: chance that a whole seed is dropped in training; needs at least two seeds.
        gate: initial value of the mixing layer's gate.
    """

    dim: int = 32
    mixing: str = OPTIONS["mixing"].default
    attention: Attention = OPTIONS["attention"].default
    embedding: EmbeddingKind = OPTIONS["embedding"].default
    metric: bool = False
    values: Values = OPTIONS["values"].default
    seeds: int = 1
    dropout: float = 0.0
    seed_dropout: float = 0.0
    gate: float = 0.1

    def __post_init__(self) -> None:
        for name in _OF_THE_MODEL:
            OPTIONS[name].kind.checked(name, getattr(self, name))
        Integer(1, 64).checked("seeds", self.seeds)
        for name, rate in (("dropout", self.dropout), ("seed_dropout", self.seed_dropout)):
            if not 0 <= rate < 1:
                raise ConfigError(f"{name} must be a share from 0 and below 1, not {rate}.")
        if not math.isfinite(self.gate):
            raise ConfigError(f"gate must be a finite number, not {self.gate}.")
        if self.seed_dropout and self.seeds == 1:
            raise ConfigError("seed_dropout drops whole seeds, so it needs at least two of them.")

    def of_vectors(self, dim: int) -> "ModelConfig":
        """Return the configuration of the view by vectors beside this model, whose attention it shares.

        Its own scores are scalar products without a metric.
        """
        attention: Attention = "norm" if self.attention == "norm" else "softmax"
        return replace(self, dim=dim, mixing="none", values="token", attention=attention, metric=False)

    @property
    def metric_scores(self) -> bool:
        """Return whether the scores are s M x_t / sqrt(D), see `SeedAttention`."""
        return self.attention == "metric" or (self.metric and self.linear_scores)

    @property
    def linear_scores(self) -> bool:
        """Return whether scores are linear in what is scored."""
        return self.attention not in NONLINEAR_SCORES

    @property
    def linear(self) -> bool:
        """Return whether scores and values are linear in the token vectors."""
        return self.mixing == "none" and self.linear_scores

    @property
    def draws_while_training(self) -> bool:
        """Return whether steps draw from PyTorch's global generator, as dropout does."""
        return bool(self.dropout or self.seed_dropout)


@dataclass(frozen=True, slots=True, kw_only=True)
class OptimConfig:
    """Rates and sizes of the training loop. The names of the fields are in the metadata of saved models.

    Attributes:
        batch_size: texts per step.
        table_rate: learning rate of the hashed rows (row-wise Adagrad).
        table_accumulator: initial value of Adagrad's accumulator.
        table_std: standard deviation of new rows.
        rate: learning rate of attention and head (AdamW).
        head_decay: weight decay of the head; nothing else decays.
        mixing_rate: learning rate of the mixing layer; a low one, since otherwise mixing costs accuracy.
        bits_rate: learning rate of the matrix of the embedding by bits (AdamW).
        warmup: share of the steps in which rates rise; after it they fall linearly to zero.
    """

    batch_size: int = 32
    table_rate: float = 0.1
    table_accumulator: float = 1e-3
    table_std: float = 0.005
    rate: float = 3e-3
    head_decay: float = 0.1
    mixing_rate: float = 1e-3
    bits_rate: float = 1e-2
    warmup: float = 0.02

    def __post_init__(self) -> None:
        Integer(1).checked("batch_size", self.batch_size)
        for name in ("table_rate", "rate", "mixing_rate", "bits_rate"):
            Number(0, above=True).checked(name, getattr(self, name))
