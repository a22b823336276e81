"""What a training begins with: labelled texts that are counted, split and encoded, and how to train on them."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np

from textcls._util.spill import Spill
from textcls.display.text import plural
from textcls.errors import ConfigError, InputError
from textcls.evaluation import metrics
from textcls.model.labels import label_problem
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
from textcls_training.data.label_names import FEW_ROWS_A_LABEL, read_about_labels, texts_of_names
from textcls_training.data.labelled_texts import LabelledTexts
from textcls_training.data.split import masks_of
from textcls_training.data.unlabelled import UnlabelledTexts
from textcls_training.export.support_rows import check_support_rows
from textcls_training.fit.callbacks import Callback
from textcls_training.fit.device import on_gpu
from textcls_training.fit.interrupt import Stop
from textcls_training.pipeline.continuing import Continuation
from textcls_training.state.rehearsal import NO_PART
from textcls_training.vectors.file import load
from textcls_training.vectors.word_vectors import WordVectors

# With columns, up to so many rows are all held out in turn: what columns add is fitted on held-out rows alone.
MOST_HELD_OUT_FOR_COLUMNS: Final = 50_000
# Of fewer rows, with so many tokens and so many rows times labels at most, a fit takes a second: then all rows are held
# out in turn. Measured: training/README.md.
QUICK_ROWS: Final = 8_000
QUICK_TOKENS: Final = 500_000
QUICK_CELLS: Final = 100_000
# Measured on 90 labels: average precision 69 without, 52 with.
BALANCED: Final = (
    "Balanced weights rank rare labels worse where a text may have several: leave class_weight out, unless held-out "
    "rows say otherwise."
)
NAMES_TEACH: Final = "Rows are few, so the names of the labels teach as well; to train without: --label-names none."
CUT: Final = "Of {}, {:,} tokens are read and no more: split them, or raise max_tokens."
PAIRS_ALONE: Final = (
    "This state does not hold all rows, and counts letters and pairs only: the model does without the triples of "
    "letters that models of this script read. Raise rehearsal_rows, or train without a state."
)


class Task(NamedTuple):
    """What a run was told, as of `run`.

    Attributes:
        earlier: what it goes on from, whose rows are then part of `given`.
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

    @property
    def learned(self) -> Continuation | None:
        """The training before, if what it has learned is begun with."""
        return None if self.earlier is None or self.earlier.anew else self.earlier

    @property
    def rows(self) -> int:
        """How many rows there ever were."""
        return len(self.given.texts) if self.earlier is None else self.earlier.rows

    @property
    def keeps_fits(self) -> bool:
        """Whether a state holds what fits have learned: where it does not hold all rows."""
        return self.learned is not None or len(self.given.texts) > self.config.rehearsal_rows


class Prepared(NamedTuple):
    """What a training begins with.

    Attributes:
        names: the labels, in the order of their numbers.
        dataset: all rows.
        taught: what is learned: all rows, and texts about labels, which no split holds out.
        splits: the train-valid splits.
        part: which of these holds out each row.
        resolved: how it is trained.
        machines: how machines of one label against the rest are; None where they are not tried.
    """

    names: Sequence[str]
    dataset: Dataset
    taught: Dataset
    splits: Sequence[Split]
    part: Int64
    resolved: ResolvedConfig
    machines: ResolvedConfig | None = None

    @property
    def about_labels(self) -> int:
        """How many texts about labels there are."""
        return len(self.taught.labels) - len(self.dataset.labels)


def prepare(task: Task, *, keeps_fits: bool = False) -> Prepared:
    """Count, split and resolve; machines are not tried where a state keeps what fits have learned."""
    given, config, learned = task.given, task.config, task.learned
    if given.label_sets is not None:
        metrics.require()
        if config.class_weight == "balanced":
            task.callback.note(BALANCED)
    if config.head == "prototypes" and given.label_sets is not None:
        raise ConfigError("Prototypes need one label per text, and these rows have several; train with a linear head.")
    _check_columns(task)
    names = given.label_names() if learned is None else learned.names
    about = _about_labels(task, names)
    names = sorted({*names, *(label for label, _ in about)}) if about else names
    if config.head == "prototypes":
        check_support_rows(given.labels)
    spill = spill_of(config.max_memory, task.output)
    if learned is None:
        dataset = Dataset.of(given, names, config.max_tokens, spill)
        if not len(dataset.corpus.token):
            raise InputError("No training text contains a word or symbol; is this the right text column?")
        taught = Dataset.of(given.followed_by(about), names, config.max_tokens, spill) if about else dataset
        machines = not keeps_fits and _machines_suit(task, dataset, names)
        every = machines or _every_part(task, dataset, names)
        splits, part = _splits(dataset, taught, task.valid, names, config.max_tokens, spill, every=every)
    else:
        dataset, splits, part = learned.datasets(task.valid, spill)
        taught, machines = dataset, False
    if config.impl == "one-vs-rest" and not machines:
        raise ConfigError(
            "impl one-vs-rest needs a state that holds all rows; raise rehearsal_rows, or leave impl out."
        )
    _tell_of_tokens(dataset.corpus, config.max_tokens, task.callback)
    resolved = _resolved(config, given, dataset, names)
    if keeps_fits and resolved.features.trigrams:
        task.callback.note(PAIRS_ALONE)
        resolved = replace(resolved, features=replace(resolved.features, trigrams=False))
    if learned is not None:
        resolved = learned.resolved(resolved, dataset)
    of_machines = one_vs_rest(resolved, config, len(names)) if machines else None
    return Prepared(names, dataset, taught, splits, part, resolved, of_machines)


def _check_columns(task: Task) -> None:
    """Refuse columns beside the text where they are not read."""
    given, config = task.given, task.config
    if not given.columns:
        return
    if config.head == "prototypes":
        raise ConfigError("Prototypes read texts alone; leave the columns out, or train with a linear head.")
    if task.earlier is not None:
        raise ConfigError("A training that goes on from another reads texts alone; train anew with the columns.")
    if task.valid is not None and task.valid.columns != given.columns:
        raise ConfigError("The validation rows need the columns of the training rows.")


def _every_part(task: Task, dataset: Dataset, names: Sequence[str]) -> bool:
    """Return whether each part of the rows is held out in turn, however many rows there are: where it is asked for, for
    columns, and where fits are quick, since a tenth of the rows tells little.
    """
    rows, config = len(dataset.labels), task.config
    if task.every_part or (task.given.columns and rows <= MOST_HELD_OUT_FOR_COLUMNS):
        return True
    quick = rows < QUICK_ROWS and rows * len(names) <= QUICK_CELLS and len(dataset.corpus.token) <= QUICK_TOKENS
    compiled = chosen_impl(config, rationales=dataset.rationale is not None) == "compiled"
    return quick and compiled and task.unlabelled is None and not dataset.several


def _machines_suit(task: Task, dataset: Dataset, names: Sequence[str]) -> bool:
    """Return whether machines of one label against the rest are to be tried.

    Raises:
        ConfigError: they are asked for, and cannot be had.
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


def _about_labels(task: Task, names: Sequence[str]) -> list[tuple[str, str]]:
    """Return texts about labels that are to teach, each behind its label."""
    config, rows = task.config, len(task.given.texts)
    if isinstance(config.label_names, Path):
        if task.learned is not None or config.head == "prototypes":
            raise ConfigError(
                "label_names cannot be combined with prototypes, nor with a state that does not hold all rows; leave "
                "one of the two out, or add the texts to the rows."
            )
        found = read_about_labels(config.label_names)
        for label, _ in found:
            if why := label_problem(label):
                raise InputError(f"{config.label_names}: the label {label[:20]!r} {why}.")
        if alone := sorted({label for label, _ in found} - {*names}):
            more = f" and {len(alone) - 1:,} more labels have" if len(alone) > 1 else " has"
            task.callback.note(f"{alone[0]!r}{more} no row: only texts of label_names teach them.")
        return found
    if config.label_names == "none" or config.head == "prototypes" or rows > FEW_ROWS_A_LABEL * len(names):
        return []
    if found := texts_of_names(names):
        task.callback.note(NAMES_TEACH)
    return found


def _splits(
    dataset: Dataset,
    taught: Dataset,
    valid: LabelledTexts | None,
    names: Sequence[str],
    max_tokens: int,
    spill: Spill,
    *,
    every: bool,
) -> tuple[list[Split], Int64]:
    """Return the train-valid splits, and which of them holds out each row: one with `valid`, or else parts of the
    training rows, `every` one of them in turn or as their number says.
    """
    part = np.full(len(dataset.labels), NO_PART)
    if valid is not None:
        return [Split(taught, Dataset.of(valid, names, max_tokens, spill))], part
    masks = list(masks_of(dataset.corpus.hash, dataset.labels, few=every or None, sets=dataset.sets))
    for i, mask in enumerate(masks):
        part[mask] = i
    more = np.zeros(len(taught.labels) - len(dataset.labels), np.bool_)
    return [taught.split(np.concatenate([mask, more])) for mask in masks], part


def _tell_of_tokens(corpus: Corpus, max_tokens: int, callback: Callback) -> None:
    """Say how many texts are cut, and what is approximate where there are very many different tokens."""
    if cut := int(corpus.full.sum()):
        callback.note(CUT.format(plural(cut, "text"), max_tokens))
    if corpus.has_rare:
        lost = corpus.type_counts()[0] / len(corpus.token)
        callback.note(
            f"There are more than {MOST_TYPES:,} different tokens. The {len(corpus.types) - 1:,} most frequent are "
            f"learned; the others, {lost:.1%} of all tokens, are passed over."
        )


def _resolved(config: TrainConfig, given: LabelledTexts, dataset: Dataset, names: Sequence[str]) -> ResolvedConfig:
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
    return replace(resolved, vectors_on_trial=config.vectors is None and vectors is not None)


def _vectors(config: TrainConfig, dataset: Dataset, labels: int) -> WordVectors | None:
    """Return the vectors that are asked for; unasked, those that suit the rows."""
    match config.vectors:
        case Path() as path:
            return load(path)
        case "english":
            return english()
        case None if config.beside_vectors() is None:
            return english_unasked(dataset.corpus, labels)
        case _:
            return None
