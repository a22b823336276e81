"""What a training run is not told, decided by rules of what can be counted in the training rows.

That is their number, their labels, their tokens, their scripts.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from textcls.features import FeatureConfig
from textcls_training.config.settings import ClassWeight, Device, ModelConfig, OptimConfig, Size, TrainConfig
from textcls_training.vectors.word_vectors import WordVectors

# A script is told from so many texts.
SCRIPT_TEXTS = 2000
# Rows are few below this number: they are cross-fitted (`textcls_training.data.split`), and what is measured in
# training/README.md is another: how attention begins, and the learning rate of attention and head.
FEW_ROWS: Final = 1500
EVEN_ATTENTION_RATE: Final = 9e-3
# How many buckets there are for features at least, and of few rows.
LEAST_BUCKETS: Final = 2**12
FEW_ROWS_BUCKETS: Final = 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedConfig:
    """A training run with nothing left open.

    Fields as in `TrainConfig`; `features` joins those on rows, and `vectors` are what the file of that name holds.

    Attributes:
        even_attention: whether the attention of hashed views begins with all tokens alike, see `even_attention`.
        least_buckets: of the hashed features of a view, see `FeatureSpace.fit`.
    """

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
    vectors: WordVectors | None = None
    even_attention: bool = False
    least_buckets: int = LEAST_BUCKETS


def resolve(
    config: TrainConfig,
    texts: Sequence[str],
    tokens: int,
    labels: int,
    *,
    fused_metric: bool = False,
    vectors: WordVectors | None = None,
) -> ResolvedConfig:
    """Decide what `config` leaves open.

    Args:
        config: what was told.
        texts: the training texts.
        tokens: how many there are in all of them.
        labels: how many distinct labels there are.
        fused_metric: whether one fused kernel gives metric scores and pools: then scores are metric scores, which
            elsewhere would cost a product more a step, if they are linear at all.
        vectors: what the file `config.vectors` holds.
    """
    epochs = config.epochs or default_epochs(len(texts), labels)
    model = config.model or ModelConfig(
        dim=config.dim or default_dim(labels),
        mixing=config.mixing,
        attention=config.attention,
        embedding=config.embedding,
        values=config.values,
    )
    if model.metric is None:
        model = replace(model, metric=fused_metric and model.linear_scores)
    even = even_attention(model, len(texts))
    # Beside vectors, whose view begins even on all data, the rate stays the one that was measured for it.
    faster = even and vectors is None
    optim = config.optim or default_optim(len(texts), tokens / max(1, len(texts)), epochs, faster=faster)
    return ResolvedConfig(
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
        vectors=vectors,
        even_attention=even,
        least_buckets=FEW_ROWS_BUCKETS if len(texts) < FEW_ROWS else LEAST_BUCKETS,
    )


def _row_features(config: TrainConfig, texts: Sequence[str]) -> FeatureConfig:
    sizes = default_ngrams(texts) if config.ngrams is None else config.ngrams
    return FeatureConfig(bigrams=config.bigrams, ngram_sizes=sizes)


def default_epochs(rows: int, labels: int) -> int:
    """Few rows a label need many passes, many need few: 155 * sqrt(labels / rows), from 1 to 40."""
    return min(40, max(1, round(155 * math.sqrt(labels / max(1, rows)))))


def default_dim(labels: int) -> int:
    """Return 32; 64 for more than 32 labels, which do not fit into fewer dimensions."""
    return 64 if labels > 32 else 32


def default_batch_size(rows: int) -> int:
    """Small data need more steps than their rows give at the usual batch."""
    return 16 if rows < 8000 else 32


def even_attention(model: ModelConfig, rows: int) -> bool:
    """Return whether attention begins with all tokens alike: that of the default model, where rows are few.

    A random seed prefers the words of some labels to those of others before anything is known, and few rows do not
    teach it better.
    """
    usual = model.attention == "norm" and model.mixing == "none" and model.embedding == "rows" and model.seeds == 1
    return usual and rows < FEW_ROWS


def default_optim(rows: int, tokens_a_text: float, epochs: int, *, faster: bool = False) -> OptimConfig:
    """Return rates for so many rows of so many tokens in the mean.

    In a long text each row gets a smaller gradient, and is to learn from it all the same: Adagrad's accumulator starts
    at 0.1 / tokens^2. Of few rows, below 4,000, the table learns more slowly, with the square root of their number.
    Where rows are many, which is where passes are few, decay shrinks the head by e^2 in all. Attention that begins
    even and has few steps learns `faster`, and the head with it.
    """
    batch_size = default_batch_size(rows)
    optim = OptimConfig(
        batch_size=batch_size,
        table_rate=0.1 * max(0.3, math.sqrt(min(1.0, rows / 4000))),
        table_accumulator=min(1e-2, max(1e-7, 0.1 / max(1.0, tokens_a_text) ** 2)),
    )
    if faster:
        optim = replace(optim, rate=EVEN_ATTENTION_RATE)
    steps = max(1.0, epochs * rows / batch_size)
    return replace(optim, head_decay=min(10.0, 4 / (optim.rate * steps))) if epochs <= 2 else optim


def default_ngrams(texts: Sequence[str]) -> tuple[int, ...]:
    """Return 3 and 5 characters; 2 and 3 where most letters are Hangul syllables.

    A syllable block holds two or three letters, and particles are glued to words.
    """
    hangul = letters = 0
    for text in texts[:: max(1, len(texts) // SCRIPT_TEXTS)]:
        found = [c for c in text if c.isalpha()]
        letters += len(found)
        hangul += sum("\uac00" <= c <= "\ud7a3" for c in found)
    return (2, 3) if 2 * hangul > letters else (3, 5)
