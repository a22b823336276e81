"""Prepare a training: labelled texts that are counted, split and encoded, and the configuration for them."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np

from textcls._util.spill import Spill
from textcls.display.text import plural
from textcls.errors import ConfigError, InputError
from textcls.evaluation import metrics
from textcls.model.learned_texts import LearnedTexts
from textcls_training.config.memory import spill_of
from textcls_training.config.resolve import (
    MOST_MACHINE_TOKENS,
    MOST_MACHINES,
    ResolvedConfig,
    chosen_impl,
    no_machines,
    one_vs_rest,
    resolve,
)
from textcls_training.config.settings import TrainConfig
from textcls_training.data.arrays import Int64
from textcls_training.data.corpus import MOST_TYPES, Corpus
from textcls_training.data.dataset import Dataset, Split
from textcls_training.data.english import english, english_unasked
from textcls_training.data.labelled_texts import LabelledTexts
from textcls_training.data.split import masks_of
from textcls_training.data.unlabelled import UnlabelledTexts
from textcls_training.export.support_rows import check_support_rows
from textcls_training.fit.callbacks import Callback
from textcls_training.fit.device import on_gpu
from textcls_training.fit.interrupt import Stop
from textcls_training.pipeline.about_labels import texts_about_labels, without_copies
from textcls_training.pipeline.continuing import Continuation
from textcls_training.state.rehearsal import NO_PART
from textcls_training.vectors.file import load
from textcls_training.vectors.word_vectors import WordVectors

# With columns, up to this many rows are all held out in turn: what columns add is fitted on held-out rows only.
MOST_HELD_OUT_FOR_COLUMNS: Final = 50_000
# With fewer rows than this, and at most this many tokens and rows times labels, a fit takes a second: then all rows
# are held out in turn. Measured: training/README.md.
QUICK_ROWS: Final = 8_000
QUICK_TOKENS: Final = 500_000
QUICK_CELLS: Final = 100_000
# Measured on 90 labels: average precision 69 without, 52 with.
BALANCED: Final = (
    "Balanced weights rank rare labels worse where a text may have several: leave class_weight out, unless held-out "
    "rows say otherwise."
)
CUT: Final = "Of {}, {:,} tokens are read and no more: split them, or raise max_tokens."
PAIRS_ALONE: Final = (
    "This state does not hold all rows, and counts letters and pairs only: the model does without the triples of "
    "letters that models of this script read. Raise rehearsal_rows, or train without a state."
)


class Task(NamedTuple):
    """The task of a run, as in `run`.

    Attributes:
        earlier: the training it continues from, whose rows are then part of `given`.
    """

    given: LabelledTexts
    output: Path
    config: TrainConfig
    valid: LabelledTexts | None
    unlabelled: UnlabelledTexts | None
    callback: Callback
    stop: Stop
    earlier: Continuation | None
    every_part: bool = False
    new_labels: bool = True

    @property
    def learned(self) -> Continuation | None:
        """The earlier training, if this one begins with what it has learned."""
        return None if self.earlier is None or self.earlier.anew else self.earlier

    @property
    def rows(self) -> int:
        """How many rows there were in all trainings."""
        return len(self.given.texts) if self.earlier is None else self.earlier.rows

    def learned_texts(self, texts: Sequence[str]) -> LearnedTexts:
        """Return what is kept of all texts that were ever learned from, if these are at hand."""
        found = LearnedTexts.of(texts)
        return found if self.learned is None else found.joined(self.learned.learned_texts)

    @property
    def keeps_fits(self) -> bool:
        """Whether a state keeps what fits have learned: if it does not contain all rows."""
        return self.learned is not None or len(self.given.texts) > self.config.rehearsal_rows


class Prepared(NamedTuple):
    """The prepared input of a training.

    Attributes:
        names: the labels, in the order of their numbers.
        texts: the texts to learn: all rows, and texts about labels, which no split holds out.
        dataset: all rows, in the form that training counts them in.
        taught: `texts`, likewise.
        splits: the train-valid splits.
        part: which of these holds out each row of `taught`.
        resolved: the resolved configuration.
        machines: that of one-vs-rest support vector machines; None if they are not tried.
    """

    names: Sequence[str]
    texts: LabelledTexts
    dataset: Dataset
    taught: Dataset
    splits: Sequence[Split]
    part: Int64
    resolved: ResolvedConfig
    machines: ResolvedConfig | None = None

    @property
    def about_labels(self) -> int:
        """The number of texts about labels."""
        return len(self.taught.labels) - len(self.dataset.labels)


def prepare(task: Task, *, keeps_fits: bool = False) -> Prepared:
    """Count, split and resolve; support vector machines are not tried if a state keeps what fits have learned."""
    given, config, learned = task.given, task.config, task.learned
    if given.label_sets is not None:
        metrics.require()
        if config.class_weight == "balanced":
            task.callback.note(BALANCED)
    if config.head == "prototypes" and given.label_sets is not None:
        raise ConfigError("Prototypes need one label per text, and these rows have several; train with a linear head.")
    _check_columns(task)
    names = given.label_names() if learned is None else learned.names
    sampled = keeps_fits or learned is not None
    about = texts_about_labels(given, names, config, task.callback, sampled=sampled, new=task.new_labels)
    names = sorted({*names, *(label for label, _ in about)}) if about else names
    _check_answers(task.unlabelled, names)
    if config.head == "prototypes":
        check_support_rows(given.labels)
    spill = spill_of(config.max_memory, task.output)
    if learned is None:
        valid = None if task.valid is None else Dataset.of(task.valid, names, config.max_tokens, spill)
        texts, taught = _taught(given, about, names, valid, config.max_tokens, spill)
        dataset = taught.select(np.arange(len(given.texts))) if about else taught
        if not len(dataset.corpus.token):
            raise InputError("No training text contains a word or symbol; is this the right text column?")
        machines = not keeps_fits and _machines_suit(task, dataset, names)
        every = machines or _every_part(task, dataset, names)
        splits, part = _splits(dataset, taught, valid, every=every)
    else:
        dataset, splits, part = learned.datasets(task.valid, spill)
        texts, taught, machines = given, dataset, False
    if config.impl == "one-vs-rest" and not machines:
        raise ConfigError(
            "impl one-vs-rest needs a state that holds all rows; raise rehearsal_rows, or leave impl out."
        )
    _tell_of_tokens(dataset.corpus, config.max_tokens, task.callback)
    resolved = _resolved(config, given, dataset, names, splits=len(splits))
    if keeps_fits and resolved.features.trigrams:
        task.callback.note(PAIRS_ALONE)
        resolved = replace(resolved, features=replace(resolved.features, trigrams=False))
    if learned is not None:
        resolved = learned.resolved(resolved, dataset)
    of_machines = one_vs_rest(resolved, config, len(names)) if machines else None
    return Prepared(names, texts, dataset, taught, splits, part, resolved, of_machines)


def _taught(
    given: LabelledTexts,
    about: Sequence[tuple[str, str]],
    names: Sequence[str],
    valid: Dataset | None,
    max_tokens: int,
    spill: Spill,
) -> tuple[LabelledTexts, Dataset]:
    """Return the rows followed by texts about labels, and the dataset of both."""
    texts = given.followed_by(about) if about else given
    taught = Dataset.of(texts, names, max_tokens, spill)
    if not about:
        return texts, taught
    kept = without_copies(taught, [label for label, _ in about], given, valid)
    return (texts, taught) if len(kept) == len(texts.texts) else (texts.only(kept.tolist()), taught.select(kept))


def _check_answers(unlabelled: UnlabelledTexts | None, names: Sequence[str]) -> None:
    """Refuse probabilities of unlabelled texts that lack labels."""
    answers = None if unlabelled is None else unlabelled.probability_UC
    if answers is not None and answers.shape[1] < len(names):
        raise ConfigError("The probabilities of unlabelled texts lack labels that label_names brings; leave these out.")


def _check_columns(task: Task) -> None:
    """Refuse columns beside the text if they are not read."""
    given, config = task.given, task.config
    if not given.columns:
        return
    if config.head == "prototypes":
        raise ConfigError("Prototypes read texts alone; leave the columns out, or train with a linear head.")
    if task.earlier is not None:
        raise ConfigError("A training that continues another reads only texts; train again with the columns.")
    if task.valid is not None and task.valid.columns != given.columns:
        raise ConfigError("The validation rows need the columns of the training rows.")


def _every_part(task: Task, dataset: Dataset, names: Sequence[str]) -> bool:
    """Return whether each part of the rows is held out in turn, however many rows there are: if requested, for columns,
    and if fits are quick, since a tenth of the rows says little.
    """
    rows, config = len(dataset.labels), task.config
    if task.every_part or (task.given.columns and rows <= MOST_HELD_OUT_FOR_COLUMNS):
        return True
    quick = rows < QUICK_ROWS and rows * len(names) <= QUICK_CELLS and len(dataset.corpus.token) <= QUICK_TOKENS
    compiled = chosen_impl(config, rationales=dataset.rationale is not None) == "compiled"
    return quick and compiled and task.unlabelled is None and not dataset.several


def _machines_suit(task: Task, dataset: Dataset, names: Sequence[str]) -> bool:
    """Return whether one-vs-rest support vector machines are to be tried.

    Raises:
        ConfigError: they are requested, and not possible.
    """
    config = task.config
    why = no_machines(config)
    if not dataset.several:
        if config.impl == "one-vs-rest":
            raise ConfigError(
                "impl one-vs-rest is for texts with several labels, and these have one each; leave it out."
            )
        return False
    if len(names) > MOST_MACHINES or len(dataset.corpus.token) > MOST_MACHINE_TOKENS:
        why = f"more than {MOST_MACHINES} labels or {MOST_MACHINE_TOKENS:,} tokens"
    elif config.tune_teacher:
        why = "tune_teacher"  # which would be tuned as often as rows are held out
    elif dataset.rationale is not None:
        why = "rationales"
    if why is not None and config.impl == "one-vs-rest":
        raise ConfigError(f"impl one-vs-rest cannot be combined with {why}; leave one of the two out.")
    return why is None


def _splits(dataset: Dataset, taught: Dataset, valid: Dataset | None, *, every: bool) -> tuple[list[Split], Int64]:
    """Return the train-valid splits, and which of them holds out each row of `taught`: one with `valid`, or else parts
    of the training rows, `every` one of them in turn or as many as suit their number.
    """
    part = np.full(len(taught.labels), NO_PART)
    if valid is not None:
        return [Split(taught, valid)], part
    masks = list(masks_of(dataset.corpus.hash, dataset.labels, few=every or None, sets=dataset.sets))
    for i, mask in enumerate(masks):
        part[: len(mask)][mask] = i
    return [taught.split(part == i) for i in range(len(masks))], part


def _tell_of_tokens(corpus: Corpus, max_tokens: int, callback: Callback) -> None:
    """Report how many texts are cut, and what is approximate if there are very many different tokens."""
    if cut := int(corpus.full.sum()):
        callback.note(CUT.format(plural(cut, "text"), max_tokens))
    if corpus.has_rare:
        lost = corpus.type_counts()[0] / len(corpus.token)
        callback.note(
            f"There are more than {MOST_TYPES:,} different tokens. The {len(corpus.types) - 1:,} most frequent are "
            f"learned; the others, {lost:.1%} of all tokens, are passed over."
        )


def _resolved(
    config: TrainConfig, given: LabelledTexts, dataset: Dataset, names: Sequence[str], splits: int
) -> ResolvedConfig:
    vectors = _vectors(config, dataset, len(names))
    impl = chosen_impl(config, rationales=dataset.rationale is not None)
    resolved = resolve(
        config,
        given.texts,
        len(dataset.corpus.token),
        len(names),
        label_rows=float(np.median(dataset.label_mass(len(names)))) if dataset.several else None,
        on_gpu=on_gpu(impl, config.device),
        vectors=vectors,
        names=names,
        impl=impl,
    )
    # With several splits the fit of each lacks a fifth of the rows.
    refit = resolved.refit or splits > 1
    return replace(resolved, refit=refit, vectors_on_trial=config.vectors is None and vectors is not None)


def _vectors(config: TrainConfig, dataset: Dataset, labels: int) -> WordVectors | None:
    """Return the requested vectors, or by default those that suit the rows."""
    match config.vectors:
        case Path() as path:
            return load(path)
        case "english":
            return english()
        case None if config.beside_vectors() is None:
            return english_unasked(dataset.corpus, labels)
        case _:
            return None
