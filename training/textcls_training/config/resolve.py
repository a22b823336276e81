"""What is left open in a training run, decided by rules based on what can be counted in the training rows.

That is, their number, labels, tokens and scripts.
"""

import math
import random
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, Self

from textcls.errors import ConfigError
from textcls.evaluation.label_thresholds import Goal
from textcls.model import tokenizer
from textcls.model.features import FeatureConfig
from textcls_training.config.settings import ClassWeight, Device, Head, ModelConfig, OptimConfig, Size, TrainConfig
from textcls_training.torch_parts import look_for_torch
from textcls_training.vectors.word_vectors import WordVectors

# The weight of the rows of each label: a rule, or one number per label, in the order of the labels.
LabelWeights = Literal["none", "tempered", "balanced"] | tuple[float, ...]

# The trainer: `textcls_training.fit.compiled`, `textcls_training.fit.one_vs_rest`, or `textcls_torch.fit.trainer`.
Trainers = Literal["compiled", "one-vs-rest", "reference"]
# Vectors that are compared with each other need to contain more than labels require.
PROTOTYPE_DIM: Final = 64

_HANGUL: Final = re.compile("[\uac00-\ud7a3]")
# Thai, Lao, Burmese and Khmer.
_SOUNDS: Final = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff]")
# How many texts determine the script.
SCRIPT_TEXTS = 2000
# Below this number rows are few: they are cross-fitted (`textcls_training.data.split`), and other values measured in
# training/README.md apply: how attention begins, and the learning rate of attention and head.
FEW_ROWS: Final = 1500
EVEN_ATTENTION_RATE: Final = 9e-3
# From this many rows on, or rows times labels, the model judged on validation rows is the one that is saved: it only
# lacks these rows, and training another one on all rows would take as long again, and as much memory.
MANY_ROWS: Final = 500_000
MANY_CELLS: Final = 1_000_000_000
# The least number of buckets for features, in general and with few rows.
LEAST_BUCKETS: Final = 2**12
FEW_ROWS_BUCKETS: Final = 2**20
# From this many labels on a training goes through the head a block of texts at a time; with this many rows it also
# takes fewer passes.
MANY_LABELS: Final = 256
ROWS_OF_MANY_LABELS: Final = 8000
# For texts that may have several labels.
SEVERAL_BATCH: Final = 32
# Options of gradient steps, and of the models that only these train.
OF_GRADIENTS: Final = (
    "mixing", "mixing_rate", "attention", "embedding", "values", "dim", "table_rate", "head_rate", "batch_size", "head",
    "model", "optim",
)  # fmt: skip
# One-vs-rest support vector machines are tried up to this many labels, each of which is a column of every table, and
# this many tokens, which have about eight features each; they take this many passes.
MOST_MACHINES: Final = 128
MOST_MACHINE_TOKENS: Final = 8_000_000
# If a text has one label, they accompany the view of pieces up to this many labels, and tokens times labels: beyond
# that they bring nothing and take space.
MOST_LABELS_BESIDE: Final = 50
MOST_CELLS_BESIDE: Final = 100_000_000
MACHINE_PASSES: Final = 8
# On a GPU a step takes about as long for many texts as for few, so batches are as large as possible while leaving this
# many steps, but, because of memory, of at most this many tokens on average.
LEAST_GPU_STEPS: Final = 128
LEAST_GPU_STEPS_OF_SEVERAL: Final = 256
MOST_GPU_BATCH: Final = 512
MOST_GPU_TOKENS: Final = 2**16
# For large batches: the power of their growth by which the table's rate grows, and the share of the steps in which
# rates rise. Measured: benchmarks/batches.md.
LARGE_TABLE_POWER: Final = 0.125
LARGE_WARMUP: Final = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedConfig:
    """A training run with nothing left open.

    Fields as in `TrainConfig`; `features` joins those on rows, and `vectors` are the contents of the file of that name.
    Vectors on trial were not asked for, and validation rows decide whether they stay.

    Attributes:
        even_attention: whether attention of hashed views begins with equal weights, see `even_attention`.
        least_buckets: the fewest buckets for the hashed features of a view, see `FeatureSpace.fit`.
        vectors_rate: learning rate of attention and head of the view by vectors.
        goal: what the thresholds for several labels aim at; None for a high F1.
        impl: the trainer, see `chosen_impl`.
        on_gpu: whether steps are taken on a GPU.
        refit: whether the saved model is retrained on all rows, including validation rows, see `MANY_ROWS`.
        machines_beside: whether one-vs-rest support vector machines accompany the view of pieces.
    """

    features: FeatureConfig
    model: ModelConfig
    optim: OptimConfig
    epochs: int
    max_tokens: int
    class_weight: LabelWeights
    rationale_weight: float
    size: Size
    seed: int
    device: Device
    vectors: WordVectors | None = None
    even_attention: bool = False
    least_buckets: int = LEAST_BUCKETS
    vectors_on_trial: bool = False
    vectors_rate: float = OptimConfig().rate
    goal: Goal | None = None
    impl: Trainers = "reference"
    head: Head = "linear"
    on_gpu: bool = False
    refit: bool = True
    machines_beside: bool = False

    def after_trial(self, *, has_vectors: bool) -> Self:
        """Return the configuration after the decision whether a model has the vectors that were on trial."""
        return replace(self, vectors=self.vectors if has_vectors else None, vectors_on_trial=False)


def resolve(
    config: TrainConfig,
    texts: Sequence[str],
    tokens: int,
    labels: int,
    *,
    label_rows: float | None = None,
    on_gpu: bool = False,
    vectors: WordVectors | None = None,
    names: Sequence[str] = (),
    impl: Trainers = "reference",
) -> ResolvedConfig:
    """Decide what `config` leaves open.

    Args:
        config: what was asked for.
        texts: the training texts.
        tokens: how many tokens they have in total.
        labels: how many distinct labels there are.
        label_rows: the median number of rows of a label, if a text may have several labels; None if it has one.
        on_gpu: whether steps are on a GPU, and so larger, with rates to match, if that is known not to cost accuracy
            (`large_batches`).
        vectors: the contents of the file `config.vectors`.
        names: the labels, needed for weights of labels.
        impl: the trainer.

    Raises:
        ConfigError: a label that does not exist has a weight, or thresholds are to be chosen although there are none.
    """
    several = label_rows is not None
    goal = Goal.of(config.target_precision, config.target_recall)
    if goal is not None and not several:
        raise ConfigError(
            f"A target {goal.measure} needs rows with several labels; for one label per text, textcls evaluate "
            "--target-precision chooses when to abstain."
        )
    usual = default_epochs(len(texts), labels) if label_rows is None else default_epochs_of_several(label_rows)
    epochs = config.epochs or usual
    model = config.model or ModelConfig(
        dim=config.dim or (PROTOTYPE_DIM if config.head == "prototypes" else default_dim(labels, several=several)),
        mixing=config.mixing,
        attention=config.attention,
        embedding=config.embedding,
        values=config.values,
    )
    even = even_attention(model, len(texts), several=several)
    few_rows = len(texts) < FEW_ROWS
    tokens_a_text = tokens / max(1, len(texts))
    optim = config.optim or default_optim(
        len(texts),
        tokens_a_text,
        epochs,
        several=several,
        many=not several and many_labels(len(texts), labels),
        faster=even and not several,
        batch_size=config.batch_size,
        on_gpu=on_gpu and large_batches(model),
    )
    features = FeatureConfig(bigrams=False) if model.embedding == "bits" else _row_features(config, texts, labels, impl)
    # Their features are those pooled by `norm` attention.
    suit = impl == "compiled" and not several and model.attention == "norm" and model.seeds == 1
    few = labels <= MOST_LABELS_BESIDE and tokens <= MOST_MACHINE_TOKENS and tokens * labels <= MOST_CELLS_BESIDE
    return ResolvedConfig(
        features=features,
        model=model,
        optim=replace(optim, **given_rates(config)),
        epochs=epochs,
        max_tokens=config.max_tokens,
        class_weight=label_weights(config.class_weight, names, several=several),
        rationale_weight=config.rationale_weight,
        size=config.size,
        seed=config.seed,
        device=config.device,
        vectors=vectors,
        even_attention=even,
        # The view by vectors begins with even attention on all data, and keeps the rate measured for it.
        vectors_rate=config.optim.rate if config.optim else OptimConfig().rate,
        least_buckets=FEW_ROWS_BUCKETS if few_rows else LEAST_BUCKETS,
        goal=goal,
        impl=impl,
        head=config.head,
        on_gpu=on_gpu,
        refit=len(texts) < MANY_ROWS and len(texts) * labels < MANY_CELLS,
        machines_beside=suit and few and bool(features.ngram_sizes),
    )


def one_vs_rest(found: ResolvedConfig, config: TrainConfig, labels: int) -> ResolvedConfig:
    """Return the configuration of one-vs-rest support vector machines: a token's vector has an entry for each label."""
    return replace(
        found,
        impl="one-vs-rest",
        model=ModelConfig(dim=labels),
        epochs=config.epochs or MACHINE_PASSES,
        vectors=None,
        vectors_on_trial=False,
    )


def no_machines(config: TrainConfig) -> str | None:
    """Return the first option that asks for gradient steps, or for what only these can train; None if there is none."""
    if config.impl in ("compiled", "reference"):
        return f"impl {config.impl}"
    if config.device == "cuda":
        return "device cuda"
    usual = TrainConfig()
    asked = (name for name in OF_GRADIENTS if getattr(config, name) != getattr(usual, name))
    return next(asked, None if config.vectors in (None, "none") else "vectors")


def given_rates(config: TrainConfig) -> dict[str, Any]:
    """Return the learning rates that were given, by their names in `OptimConfig`."""
    rates = {"table_rate": config.table_rate, "rate": config.head_rate, "mixing_rate": config.mixing_rate}
    return {name: rate for name, rate in rates.items() if rate is not None}


def chosen_impl(config: TrainConfig, *, rationales: bool = False) -> Trainers:
    """Return the trainer, from the options alone: the compiled one whenever possible, unless the reference is wanted.

    Args:
        config: what was asked for.
        rationales: whether rows have human rationales.

    Raises:
        ConfigError: the compiled trainer is wanted, but cannot train this.
        MissingExtraError: the reference is needed, and PyTorch is not installed.
    """
    needed = reference_needed(config, rationales=rationales)
    if config.impl == "compiled" and needed is not None:
        raise ConfigError(f"The compiled trainer does not support {needed}; choose impl reference, or leave it out.")
    if config.impl != "reference" and needed is None:
        return "compiled"
    if config.impl == "one-vs-rest":
        raise ConfigError(f"impl one-vs-rest cannot be combined with {needed}; leave one of the two out.")
    look_for_torch(f"Training with {needed or 'the reference trainer'}")
    return "reference"


def reference_needed(config: TrainConfig, *, rationales: bool = False) -> str | None:
    """Return what the compiled trainer cannot train, None if there is no such thing. Arguments as in `chosen_impl`."""
    model = config.model or ModelConfig(mixing=config.mixing, attention=config.attention, embedding=config.embedding)
    for what, there in (
        (f"mixing {model.mixing!r}", model.mixing != "none"),
        (f"attention {model.attention!r}", model.attention not in ("norm", "softmax")),
        ("metric scores", model.metric),
        (f"embedding {model.embedding!r}", model.embedding != "rows"),
        ("dropout", model.draws_while_training),
        ("a GPU", config.device == "cuda"),
        ("human rationales", rationales),
        ("prototypes", config.head == "prototypes"),
    ):
        if there:
            return what
    return None


def label_weights(given: ClassWeight, names: Sequence[str], *, several: bool) -> LabelWeights:
    """Return the weights of labels in the order of `names`; 1 for a label without one.

    Args:
        given: what was asked for.
        names: the labels.
        several: whether a text may have several: then all weigh the same if that is left open, and otherwise rare ones
            more. Measured: training/README.md.

    Raises:
        ConfigError: a label that is not in `names` has a weight, or all weights are 0.
    """
    if given == "auto":
        return "none" if several else "tempered"
    if isinstance(given, str):
        return given
    if strangers := sorted(set(given) - set(names)):
        raise ConfigError(f"class_weight has a weight for {strangers[0]!r}, which no training row has.")
    found = tuple(given.get(name, 1.0) for name in names)
    if not any(found):
        raise ConfigError("All weights of class_weight are 0; a label counts only with a weight above 0.")
    return found


def _row_features(config: TrainConfig, texts: Sequence[str], labels: int, impl: Trainers) -> FeatureConfig:
    sizes = default_ngrams(texts) if config.ngrams is None else config.ngrams
    # The kernels for a GPU only read pairs, and with PyTorch the machine must not decide what is read.
    trigrams = config.bigrams and impl != "reference" and unspaced(texts, labels)
    return FeatureConfig(bigrams=config.bigrams, ngram_sizes=sizes, trigrams=trigrams)


def default_epochs(rows: int, labels: int) -> int:
    """Return 155 * sqrt(labels / rows), from 1 to 40: few rows per label need many passes, many need few.

    Half of that if labels and rows are many: their heads learn at twice the rate.
    """
    passes = min(40.0, 155 * math.sqrt(labels / max(1, rows)))
    return max(1, round(passes / 2 if many_labels(rows, labels) else passes))


def many_labels(rows: int, labels: int) -> bool:
    """Return whether the head is so large that it learns fast and in few passes."""
    return labels >= MANY_LABELS and rows >= ROWS_OF_MANY_LABELS


def default_epochs_of_several(label_rows: float) -> int:
    """Return the epochs if each label is a separate question: 65 / sqrt(median rows per label), from 2 to 20."""
    return min(20, max(2, round(65 / math.sqrt(max(1.0, label_rows)))))


def default_dim(labels: int, *, several: bool = False) -> int:
    """Return 32; 64 for more than 32 labels, which do not fit into fewer dimensions.

    If each label is a separate question: 64 for more than 16 labels, 128 for more than 64.
    """
    if several:
        return 128 if labels > 64 else 64 if labels > 16 else 32
    return 64 if labels > 32 else 32


def default_batch_size(rows: int) -> int:
    """Return the texts per batch: small data need more steps than their rows give with the usual batch."""
    return 16 if rows < 8000 else 32


def even_attention(model: ModelConfig, rows: int, *, several: bool = False) -> bool:
    """Return whether attention begins with equal weights for all tokens: so in the default model with few rows.

    A random seed prefers the words of some labels to those of others before anything is known, and few rows do not
    correct it. With several labels per text the first steps are so long that it may stay at one token of each text for
    good: in one of seven trainings with 85 labels, which cost four points of micro-F1.
    """
    usual = model.attention == "norm" and model.mixing == "none" and model.embedding == "rows" and model.seeds == 1
    return usual and (several or rows < FEW_ROWS)


def large_batches(model: ModelConfig) -> bool:
    """Return whether large batches were measured to be as good as the usual ones: by rows without mixing."""
    return model.mixing == "none" and model.embedding == "rows"


def default_optim(
    rows: int,
    tokens_a_text: float,
    epochs: int,
    *,
    several: bool = False,
    many: bool = False,
    faster: bool = False,
    batch_size: int | None = None,
    on_gpu: bool = False,
) -> OptimConfig:
    """Return rates for a number of rows and of tokens per row on average.

    In a long text each row gets a smaller gradient, but has to learn from it all the same: Adagrad's accumulator starts
    at 0.1 / tokens^2. With few rows, below 4,000, the table learns more slowly, with the square root of their number.
    With many rows, and so few passes, decay shrinks the head by e^2 in total; but not if each label is a separate
    question, most answers being no: then batches are larger, too. In larger batches, then and if `batch_size` says so,
    the rates grow with the square root; on a GPU, where batches are larger still, as in `with_large_batch`. Attention
    that begins even and has few steps learns `faster`, and so does the head; both also do, a little less fast, if
    labels are `many`.
    """
    usual = OptimConfig().rate
    rates = OptimConfig(
        batch_size=default_batch_size(rows),
        table_rate=0.1 * max(0.3, math.sqrt(min(1.0, rows / 4000))),
        table_accumulator=min(1e-2, max(1e-7, 0.1 / max(1.0, tokens_a_text) ** 2)),
        rate=EVEN_ATTENTION_RATE if faster else 2 * usual if many else usual,
    )
    optim = _with_batch(rates, max(rates.batch_size, SEVERAL_BATCH)) if several else rates
    least = LEAST_GPU_STEPS_OF_SEVERAL if several else LEAST_GPU_STEPS
    of_gpu = gpu_batch_size(epochs * rows, tokens_a_text, optim.batch_size, least)
    # Rates do not grow for a step that the rows do not fill.
    given = batch_size and min(batch_size, max(rows, optim.batch_size))
    batch_size = given or (of_gpu if on_gpu else optim.batch_size)
    large = on_gpu and batch_size > optim.batch_size
    optim = with_large_batch(optim, batch_size) if large else _with_batch(rates, batch_size)
    return with_head_decay(optim, epochs * rows) if epochs <= 2 and not several else optim


def with_head_decay(optim: OptimConfig, texts: int) -> OptimConfig:
    """Return rates with which the head shrinks by e^2 in total, given the number of texts in all epochs together."""
    steps = max(1.0, texts / optim.batch_size)
    return replace(optim, head_decay=min(10.0, 4 / (optim.rate * steps)))


def _with_batch(optim: OptimConfig, batch_size: int) -> OptimConfig:
    """Return rates increased with the square root of the batch."""
    factor = math.sqrt(batch_size / optim.batch_size)
    return replace(optim, batch_size=batch_size, table_rate=factor * optim.table_rate, rate=factor * optim.rate)


def gpu_batch_size(texts: int, tokens_a_text: float, usual: int, least_steps: int, most: int = MOST_GPU_BATCH) -> int:
    """Return the largest power of two that leaves `least_steps` steps, with at most 2^16 tokens per batch.

    Args:
        texts: how many are read in all epochs together.
        tokens_a_text: the mean number of tokens per text.
        usual: the batch elsewhere, which is the minimum.
        least_steps: how many steps are left at least.
        most: the maximum number of texts in a batch.
    """
    fitting = min(most, MOST_GPU_TOKENS / max(1.0, tokens_a_text), texts / least_steps)
    return max(usual, 1 << math.floor(math.log2(max(1.0, fitting))))


def with_large_batch(
    optim: OptimConfig, batch_size: int, table_power: float = LARGE_TABLE_POWER, warmup: float = LARGE_WARMUP
) -> OptimConfig:
    """Return rates for a batch that is several times larger, with few steps.

    The rate of attention and head grows with the square root. That of the table grows less: most rows occur in one or
    two texts of a batch, however large, so their gradients are those of a small one. The rates rise for longer, since
    at first all rows are fresh.
    """
    growth = batch_size / optim.batch_size
    return replace(
        optim,
        batch_size=batch_size,
        table_rate=growth**table_power * optim.table_rate,
        rate=math.sqrt(growth) * optim.rate,
        warmup=warmup,
    )


def default_ngrams(texts: Sequence[str]) -> tuple[int, ...]:
    """Return 3 and 5 characters; 2 and 3 where most letters are Hangul syllables, and all of these where some are.

    A syllable block holds two or three letters, and particles are glued to words (measured: training/README.md).
    """
    hangul = _share(_HANGUL, texts)
    return (2, 3) if hangul > 1 / 2 else (2, 3, 5) if hangul > 1 / 50 else (3, 5)


def unspaced(texts: Sequence[str], labels: int) -> bool:
    """Return whether sequences of letters are to be read, as suits scripts without spaces, whose letters are tokens.

    They are if most letters belong to such scripts, or a sixth to those whose letters are sounds, which say less alone
    than Chinese characters; of many labels, the texts in other scripts would lose more (measured: training/README.md).
    """
    some_sounds = labels <= MOST_LABELS_BESIDE and _share(_SOUNDS, texts) > 1 / 6
    return some_sounds or _share(tokenizer.UNSPACED, texts) > 1 / 2


def _share(script: re.Pattern[str], texts: Sequence[str]) -> float:
    """Return how many characters of a script there are, as a share of all letters."""
    # A random sample, so that rows alternating between two languages do not matter.
    chosen = random.Random(0).sample(range(len(texts)), min(len(texts), SCRIPT_TEXTS))
    some = [texts[i] for i in chosen]
    found = sum(len(script.findall(text)) for text in some)
    return found / max(1, sum(c.isalpha() for text in some for c in text)) if found else 0.0
