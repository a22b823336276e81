"""Trials: train on some rows with a configuration, and measure the model on rows that it has not seen.

Ablations and tuning are made of these; `textcls.jobs` does them, in this process, in several or on
a cluster. A training has the same bytes wherever it runs, so a trial has the same result.

Shapes: R rows.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, Generic, TypeVar

import numpy as np

from textcls.errors import InputError
from textcls.jobs import Crew, Failed
from textcls.model.classifier import Classifier
from textcls_training.config.settings import TrainConfig
from textcls_training.data.arrays import Int64
from textcls_training.data.labelled_texts import LabelledTexts
from textcls_training.data.split import part_of_rows
from textcls_training.pipeline import training as pipeline
from textcls_training.pipeline.training import TrainingRun

Result = TypeVar("Result")

# This many parts of the rows judge in turn a model of the others; from this many rows on only the first of `PARTS`
# does, and suffices.
ROUNDS: Final = 3
MANY_ROWS, PARTS = 10_000, 5


@dataclass(frozen=True, slots=True)
class Fold:
    """Which rows are learned from, and which are held out, by their numbers."""

    train: Int64
    held_out: Int64


@dataclass(frozen=True, slots=True)
class Trial:
    """A training to be measured.

    Attributes:
        name: a readable name that is unique among trials.
        config: its configuration.
        fold: the number of its fold.
    """

    name: str
    config: TrainConfig
    fold: int = 0

    def __str__(self) -> str:
        """Return the name."""
        return self.name


@dataclass(frozen=True, slots=True)
class Trained:
    """A trial that was trained.

    Attributes:
        trial: the trial.
        run: the findings of the training.
        classifier: the saved model, loaded.
        train: the rows that it has learned from.
        held_out: the others.
        content: the content of the model file.
        seconds: the time that the training took.
        cpu_seconds: the seconds of the processor, over all its threads.
    """

    trial: Trial
    run: TrainingRun
    classifier: Classifier
    train: LabelledTexts
    held_out: LabelledTexts
    content: bytes
    seconds: float
    cpu_seconds: float


@dataclass(frozen=True, slots=True)
class Trials(Generic[Result]):
    """What workers do with each trial.

    Attributes:
        given: all rows.
        folds: the folds of these.
        measure: returns the wanted result of a trained one; a module-level function, as it goes to other processes.
    """

    given: LabelledTexts
    folds: Sequence[Fold]
    measure: Callable[[Trained], Result]

    def ready(self) -> Callable[[Trial], Result]:
        """Return a function that trains and measures."""
        return self._result

    def _result(self, trial: Trial) -> Result:
        fold = self.folds[trial.fold]
        train, held_out = self.given.only(fold.train.tolist()), self.given.only(fold.held_out.tolist())
        with TemporaryDirectory(prefix="textcls-trial-") as folder:
            path = Path(folder) / "model.onnx"
            start, start_cpu = time.perf_counter(), time.process_time()
            run = pipeline.run(train, path, trial.config)
            seconds, cpu_seconds = time.perf_counter() - start, time.process_time() - start_cpu
            content, classifier = path.read_bytes(), Classifier.load(path)
        return self.measure(Trained(trial, run, classifier, train, held_out, content, seconds, cpu_seconds))


def results(crew: Crew[Trial, Result], trials: Sequence[Trial]) -> Iterator[tuple[Trial, Result]]:
    """Yield each trial with its result, in the order of completion.

    Raises:
        TextclsError: a training failed; that of the trial.
    """
    for outcome in crew(trials):
        if isinstance(outcome, Failed):
            if isinstance(outcome.error, InputError):
                raise InputError(f"Some of the rows alone cannot be trained on: {outcome.error}") from outcome.error
            raise outcome.error
        yield outcome.job, outcome.result


def folds_of(given: LabelledTexts, parts: int, within: Int64 | None = None) -> list[Fold]:
    """Return folds that hold out each row once: within a label parts are alike, and copies of a text are in one part
    unless texts recur.

    Args:
        given: all rows.
        parts: the number of parts.
        within: the numbers of the rows to use; all by default.
    """
    within_R = np.arange(len(given.texts)) if within is None else within
    part_R = part_of_rows(given.only(within_R.tolist()), parts)
    return [Fold(within_R[part_R != part], within_R[part_R == part]) for part in range(parts)]


def judging_folds(given: LabelledTexts, rounds: int | None = None) -> list[Fold]:
    """Return folds that hold out rows to evaluate models of the others.

    Args:
        given: all rows.
        rounds: how many parts are held out in turn; 1 for only one fifth. None for a number that suits the rows.
    """
    number = rounds or (1 if len(given.texts) >= MANY_ROWS else ROUNDS)
    return folds_of(given, PARTS)[:1] if number == 1 else folds_of(given, number)


def answered_labels(trained: Trained) -> list[str]:
    """Return a model's answers to its held-out rows, with one label each."""
    return [answer.label for answer in trained.classifier.predict(trained.held_out.texts)]


def answered_sets(trained: Trained) -> list[tuple[str, ...]]:
    """Return a multi-label model's answers to its held-out rows: the labels that each is assigned, sorted."""
    return [tuple(sorted(answer.assigned)) for answer in trained.classifier.predict(trained.held_out.texts)]
