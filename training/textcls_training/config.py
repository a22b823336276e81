"""What a training run is told, and the defaults that follow from the data.

Every default is a stated rule of what can be counted in the training rows: their number, their labels, their scripts.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from difflib import get_close_matches
from importlib.util import find_spec
from typing import Any, Final, get_args

import torch

from textcls.errors import ConfigError, SurroundingsError
from textcls.features import MAX_TOKENS, FeatureConfig
from textcls_training.choices import ClassWeight, Device, Size
from textcls_training.model import ModelConfig

# How many seeds there are: those that the generators of PyTorch and NumPy both take.
SEEDS: Final = 2**63


@dataclass(frozen=True, slots=True, kw_only=True)
class OptimConfig:
    """Rates and sizes of the training loop.

    Attributes:
        batch_size: texts a step.
        table_rate: learning rate of the hashed rows (row-wise Adagrad).
        table_accumulator: start of Adagrad's accumulator.
        table_std: standard deviation of fresh rows.
        rate: learning rate of attention and head (AdamW).
        head_decay: weight decay of the head; nothing else decays.
        mixing_rate: learning rate of the mixing layer; a slow one, else mixing costs accuracy.
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
        if self.batch_size < 1:
            raise ConfigError(f"batch_size must be at least 1, not {self.batch_size}.")
        for name in ("table_rate", "rate", "mixing_rate", "bits_rate"):
            _check_rate(name, getattr(self, name))


def _check_rate(name: str, rate: float) -> None:
    if not 0 < rate < math.inf:
        raise ConfigError(f"{name} must be a finite number above 0, not {rate}.")


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainConfig:
    """A training run. What is None is decided by `resolve`.

    Attributes:
        ngram_sizes: character n-grams of a token, empty for none; None decides by script (`default_ngrams`).
        bigrams: whether pairs of neighbouring tokens have rows of their own. Without rows neither counts.
        model: what the model is made of.
        optim: rates and sizes of the loop.
        mixing_rate: learning rate of the mixing layer, in the place of that of `optim`.
        epochs: most passes over the data; early stopping may keep fewer.
        max_tokens: tokens of a text that are read; the rest is cut, and answers say so.
        class_weight: `balanced` weighs each row by rows / (labels x rows of its label).
        rationale_weight: how much it counts, beside the label, that attention rests on what people have marked.
        size: how large the saved model may be, see `textcls_training.lexicon.budget`.
        seed: of everything random.
        device: `auto` takes a GPU where there is one.
    """

    ngram_sizes: tuple[int, ...] | None = None
    bigrams: bool = True
    model: ModelConfig | None = None
    optim: OptimConfig | None = None
    mixing_rate: float | None = None
    epochs: int | None = None
    max_tokens: int = MAX_TOKENS
    class_weight: ClassWeight = "none"
    rationale_weight: float = 10.0
    size: Size = "default"
    seed: int = 0
    device: Device = "auto"

    def __post_init__(self) -> None:
        if self.epochs is not None and self.epochs < 1:
            raise ConfigError(f"epochs must be at least 1, not {self.epochs}.")
        if self.mixing_rate is not None:
            _check_rate("mixing_rate", self.mixing_rate)
        if self.model is not None and self.model.embedding == "bits" and self.ngram_sizes:
            raise ConfigError("The embedding by bits reads words alone; leave n-grams out, or take rows.")
        if self.max_tokens < 1:
            raise ConfigError(f"max_tokens must be at least 1, not {self.max_tokens}.")
        if not 0 <= self.rationale_weight < math.inf:
            raise ConfigError(f"rationale_weight must be a number from 0, not {self.rationale_weight}.")
        if not 0 <= self.seed < SEEDS:
            raise ConfigError(f"seed must be 0 to {SEEDS - 1}, not {self.seed}.")


_OF_THE_MODEL = ("mixing", "attention", "embedding", "values", "dim")
_CHOICES: Mapping[str, object] = {"class_weight": ClassWeight, "size": Size, "device": Device}


def from_options(labels: int, options: Mapping[str, Any]) -> TrainConfig:
    """Return the configuration that options mean, named as on the command line; what is missing has its default.

    Args:
        labels: number of distinct labels, by which the width is chosen where `dim` is missing or None.
        options: `epochs`, `dim`, `ngrams`, ... with an underscore for each hyphen.

    Raises:
        ConfigError: there is no such option, or it has no such value.
    """
    own = {field.name for field in fields(TrainConfig)} - {"model", "optim", "ngram_sizes"}
    known = sorted({*own, *_OF_THE_MODEL, "ngrams"})
    for name, value in options.items():
        if name not in known:
            close = get_close_matches(name, known, 1)
            meant = f"did you mean {close[0]!r}?" if close else f"there are {', '.join(known)}."
            raise ConfigError(f"Training has no option {name!r}; {meant}")
        choices = get_args(_CHOICES.get(name))
        if choices and value not in choices:
            raise ConfigError(f"{name} is one of {', '.join(map(repr, choices))}, not {value!r}.")
    model = {name: options[name] for name in _OF_THE_MODEL if options.get(name) is not None}
    more = {name: value for name, value in options.items() if name in own}
    return TrainConfig(
        model=ModelConfig(**{"dim": default_dim(labels), **model}), ngram_sizes=options.get("ngrams"), **more
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A training run with nothing left open. Fields as in `TrainConfig`; `features` joins those on rows."""

    features: FeatureConfig
    model: ModelConfig
    optim: OptimConfig
    epochs: int
    max_tokens: int
    class_weight: ClassWeight
    rationale_weight: float
    size: Size
    seed: int
    device: Device


def resolve(config: TrainConfig, texts: Sequence[str], tokens: int, labels: int) -> Plan:
    """Decide what `config` leaves open, by rules of the training rows alone: `tokens` in all, and distinct `labels`."""
    epochs = config.epochs or default_epochs(len(texts), labels)
    model = default_metric(config.model or ModelConfig(dim=default_dim(labels)), config.device)
    optim = config.optim or default_optim(len(texts), tokens / max(1, len(texts)), epochs)
    return Plan(
        features=FeatureConfig(bigrams=False) if model.embedding == "bits" else _row_features(config, texts),
        model=model,
        optim=optim if config.mixing_rate is None else replace(optim, mixing_rate=config.mixing_rate),
        epochs=epochs,
        max_tokens=config.max_tokens,
        class_weight=config.class_weight,
        rationale_weight=config.rationale_weight,
        size=config.size,
        seed=config.seed,
        device=config.device,
    )


def _row_features(config: TrainConfig, texts: Sequence[str]) -> FeatureConfig:
    sizes = default_ngrams(texts) if config.ngram_sizes is None else config.ngram_sizes
    return FeatureConfig(bigrams=config.bigrams, ngram_sizes=sizes)


def resolve_device(name: Device) -> torch.device:
    """Return the device called `name`; `auto` is a GPU where there is one."""
    if name == "cuda" and not torch.cuda.is_available():
        raise SurroundingsError("PyTorch finds no GPU for --device cuda; choose cpu or auto, or install a CUDA build.")
    return torch.device(("cuda" if torch.cuda.is_available() else "cpu") if name == "auto" else name)


def default_metric(model: ModelConfig, device: Device) -> ModelConfig:
    """Let scores be metric scores on a GPU with Triton, where one fused kernel gives them and pools."""
    if model.metric is not None:
        return model
    fused = resolve_device(device).type == "cuda" and find_spec("triton") is not None
    return replace(model, metric=fused and model.linear_scores)


def default_epochs(rows: int, labels: int) -> int:
    """Few rows a label need many passes, many need few: 155 * sqrt(labels / rows), from 1 to 40."""
    return min(40, max(1, round(155 * math.sqrt(labels / max(1, rows)))))


def default_dim(labels: int) -> int:
    """Return 32; 64 for more than 32 labels, which do not fit into fewer dimensions."""
    return 64 if labels > 32 else 32


def default_batch_size(rows: int) -> int:
    """Small data need more steps than their rows give at the usual batch."""
    return 16 if rows < 8000 else 32


def default_optim(rows: int, tokens_a_text: float, epochs: int) -> OptimConfig:
    """Return rates for so many rows of so many tokens in the mean.

    In a long text each row gets a smaller gradient, and is to learn from it all the same: Adagrad's accumulator starts
    at 0.1 / tokens^2. Of few rows, below 4,000, the table learns more slowly, with the square root of their number.
    Where rows are many, which is where passes are few, decay shrinks the head by e^2 in all.
    """
    batch_size = default_batch_size(rows)
    optim = OptimConfig(
        batch_size=batch_size,
        table_rate=0.1 * max(0.3, math.sqrt(min(1.0, rows / 4000))),
        table_accumulator=min(1e-2, max(1e-7, 0.1 / max(1.0, tokens_a_text) ** 2)),
    )
    steps = max(1.0, epochs * rows / batch_size)
    return replace(optim, head_decay=min(10.0, 4 / (optim.rate * steps))) if epochs <= 2 else optim


def default_ngrams(texts: Sequence[str]) -> tuple[int, ...]:
    """Return 3 and 5 characters; 2 and 3 where most letters are Hangul syllables.

    A syllable block holds two or three letters, and particles are glued to words.
    """
    hangul = letters = 0
    for text in texts[:: max(1, len(texts) // 2000)]:
        found = [c for c in text if c.isalpha()]
        letters += len(found)
        hangul += sum("\uac00" <= c <= "\ud7a3" for c in found)
    return (2, 3) if 2 * hangul > letters else (3, 5)
