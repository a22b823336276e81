"""The training loop: fit and validate on train-valid splits, select the epoch there, then train on all rows; with very
many rows (`ResolvedConfig.refit`) the validated fit is kept.

Fits share nothing, so two may run side by side: the result has the same bytes as running one after the other.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial

import numpy as np

from textcls_training.config.resolve import ResolvedConfig
from textcls_training.data.arrays import Float32
from textcls_training.data.compiling import compiling_told
from textcls_training.data.dataset import Dataset, Split
from textcls_training.fit.any_trainer import AnyTrainer
from textcls_training.fit.callbacks import NOBODY, Callback
from textcls_training.fit.compiled.ahead import compiling_ahead
from textcls_training.fit.course import Course
from textcls_training.fit.interrupt import Stop
from textcls_training.fit.selection import SelectionResult, better, end_to_end, select
from textcls_training.fit.split_parts import SplitParts
from textcls_training.fit.threads import in_second_thread
from textcls_training.fit.validation import Validation, validation_of
from textcls_training.models.ensemble import VECTORS, TrainedModel
from textcls_training.state.checkpoints import NOWHERE, Checkpoint, FitState
from textcls_training.torch_parts import torch_part

COMPILING = "Compiling the training loops for this machine; this happens once and takes up to half a minute."
# The name under which the state of the fit on all rows is kept.
ALL_ROWS = "all rows"
# By how many standard errors validation rows must prefer vectors on trial, if they are fewer than this share of all
# rows.
VECTORS_ERRORS = 0.5
FEW_VALIDATION = 0.2
# The most numbers kept of the logits of validation rows over all epochs: 400 MB.
MOST_LOGITS = 100_000_000
# Names in the state of a fit: the number of validated epochs, and the logits of those that are kept.
_VALIDATED, _LOGITS = "validated", "logits"


def split_name(number: int, splits: int) -> str:
    """Return the name under which the state of the fit of a split, numbered from 0, is kept."""
    return f"split {number + 1} of {splits}"


def all_rows_to(epochs: int, config: ResolvedConfig) -> str:
    """Return the name of the fit whose model is saved: on all rows, or those of the one split, for `epochs` epochs."""
    if epochs != config.epochs:
        return f"{ALL_ROWS} to epoch {epochs}"
    return ALL_ROWS if config.refit else split_name(0, 1)


def make_trainer(dataset: Dataset, classes: int, config: ResolvedConfig, stop: Stop | None = None) -> AnyTrainer:
    """Return the trainer that the configuration names, with a fresh model."""
    if config.impl == "compiled":
        from textcls_training.fit.compiled.trainer import CompiledTrainer

        return CompiledTrainer(dataset, classes, config, stop)
    if config.impl == "one-vs-rest":
        from textcls_training.fit.one_vs_rest.trainer import OneVsRestTrainer

        return OneVsRestTrainer(dataset, classes, config, stop)
    trainer: AnyTrainer = torch_part("fit.trainer").Trainer(dataset, classes, config, stop)
    return trainer


class ValidatedFit:
    """A fit on the training rows of a split, validated after each epoch, or after the last one alone where no other can
    be chosen, as of several labels.

    Attributes:
        trainer: the fit.
        logits: those of the validation rows [V, rows, C], after each epoch that was validated; after the last of these
            alone where all would take more than `MOST_LOGITS` numbers.
        parts: the parts of the vectors of all rows after the last epoch; None unless labels are to be prototypes.
    """

    def __init__(self, split: Split, classes: int, config: ResolvedConfig, stop: Stop) -> None:
        self.trainer = make_trainer(split.train, classes, config, stop)
        self.logits: list[Float32] = []
        self.parts: SplitParts | None = None
        self._validated = 0
        self._split = split
        self._validation = validation_of([split.valid], config.goal)
        self._encoded = self.trainer.encode(split.valid.corpus)
        an_epoch = self.trainer.views * len(split.valid.labels) * classes
        self._keeps_all = an_epoch * config.epochs <= MOST_LOGITS
        self._first_validated = config.epochs if split.valid.several else 1

    def run(
        self, name: str, callback: Callback = NOBODY, checkpoint: Checkpoint = NOWHERE, *, keep: bool = False
    ) -> None:
        """Train for all epochs, or until a stop is requested, and validate each whole one.

        Args:
            name: the name for the callback.
            callback: notified of progress.
            checkpoint: where the state of the fit is kept, and where it resumes from.
            keep: whether this is the fit that is kept on a stop, which its first validation makes possible.
        """
        trainer = self.trainer
        callback.phase(name, trainer.config.epochs * len(trainer.dataset.labels))
        self._begin(checkpoint, callback)
        trainer.stop.possible |= keep and len(self._validation) > 0 and self._validated > 0
        with trainer.keeping(lambda: checkpoint.offer(self._state)), trainer.at_work():
            for number in range(self._validated + 1, trainer.config.epochs + 1):
                trainer.train_epoch(number, callback)
                if trainer.stop.requested:
                    return
                self._validated = number
                trainer.stop.possible |= keep and len(self._validation) > 0
                if number < self._first_validated:
                    callback.epoch(number, None)
                    continue
                if not self._keeps_all:
                    self.logits.clear()
                self.logits.append(trainer.predict(self._encoded))
                callback.epoch(number, self._score())
        if trainer.config.head == "prototypes":
            self.parts = self._parts()
        checkpoint.finish(lambda: trainer.with_spaces(self._state()))

    def _state(self) -> FitState:
        """Return the state of the fit, with what has been validated."""
        state = self.trainer.state()
        arrays = {**state.arrays, _VALIDATED: np.array(self._validated)}
        arrays |= {f"{_LOGITS}.{i}": logits_VRC for i, logits_VRC in enumerate(self.logits)}
        return replace(state, arrays=arrays)

    def _begin(self, checkpoint: Checkpoint, callback: Callback) -> None:
        arrays = self.trainer.begin(checkpoint, callback)
        if arrays is not None:
            self._validated = int(arrays[_VALIDATED])
            kept = sum(name.startswith(_LOGITS) for name in arrays)
            self.logits += [arrays[f"{_LOGITS}.{i}"] for i in range(kept)]

    def _score(self) -> float | None:
        """Score the last epoch, each view alike."""
        return self._validation.right(self.logits[-1].mean(0)).share if len(self._validation) else None

    def as_it_stands(self) -> SelectionResult:
        """Validate and calibrate the fit once more, even in the middle of an epoch."""
        logits_VRC = self.trainer.predict(self._encoded)
        found = self._validation.calibrate(logits_VRC)
        combined_RC = found.combine(logits_VRC)
        parts = [self._parts()] if self.trainer.config.head == "prototypes" else []
        return SelectionResult(self.trainer.epochs, found, combined_RC, self._validation, interrupted=True, parts=parts)

    def _parts(self) -> SplitParts:
        return self.trainer.split_parts(self._split, self._encoded)


class CrossFit:
    """Fits on each split, and one on all rows, run either one after the other or in two threads.

    Attributes:
        logits: the logits of the validation rows of each split, after each epoch.
        parts: likewise `ValidatedFit.parts`.
        final: the fit on all rows, once there is one.
        kept: the fit of the first split, which is kept on a stop.
    """

    def __init__(
        self,
        dataset: Dataset,
        splits: Sequence[Split],
        classes: int,
        config: ResolvedConfig,
        course: Course,
    ) -> None:
        self.dataset, self.splits, self.classes, self.config, self.course = dataset, splits, classes, config, course
        self.logits: list[list[Float32]] = [[] for _ in splits]
        self.parts: list[SplitParts | None] = [None] * len(splits)
        self.final: AnyTrainer | None = None
        self.kept: ValidatedFit | None = None

    def run(self) -> tuple[SelectionResult, AnyTrainer]:
        """Return the selection on the validation rows, and the fit to keep.

        Raises:
            KeyboardInterrupt: a stop was requested before it was possible.
        """
        if self.config.model.draws_while_training or not self.config.refit or self.config.on_gpu:
            self._fit_one_after_the_other()
        else:
            self._fit_in_two_threads()
        if self.course.stop.requested:
            return self._as_it_stands()
        if self.kept is not None and not self.config.refit:
            self.final = self.kept.trainer
        selected = self._select(validation_of([split.valid for split in self.splits], self.config.goal))
        selected = replace(selected, parts=[parts for parts in self.parts if parts is not None])
        if self.final is None or selected.epochs != self.config.epochs:
            learned = self.dataset if self.config.refit else self.splits[0].train
            name = all_rows_to(selected.epochs, self.config)
            self.final = fit(learned, self.classes, self.config, selected.epochs, self.course, name)
        return self._as_it_stands() if self.course.stop.requested else (selected, self.final)

    def _select(self, validation: Validation) -> SelectionResult:
        """Select the epoch, and whether vectors on trial stay: where validation rows do not prefer them, all goes on
        as if they had never been there.
        """
        by_epoch = end_to_end(self.logits)
        if not self.config.vectors_on_trial:
            return select(validation, by_epoch, self.config.epochs)
        others = [np.delete(logits_VRC, VECTORS, axis=0) for logits_VRC in by_epoch]
        with ThreadPoolExecutor(1) as beside:
            left_out = beside.submit(select, validation, others, self.config.epochs)
            selected = select(validation, by_epoch, self.config.epochs)
            without = left_out.result()
        # A tenth of the rows says little, and with many rows vectors help more often than not.
        few = len(validation) < FEW_VALIDATION * len(self.dataset.labels)
        if better(selected, without, VECTORS_ERRORS if few else 1.0):
            return selected
        self.config = self.config.after_trial(has_vectors=False)
        if self.final is not None:
            self.final.leave_out(VECTORS)
        for parts in self.parts:
            if parts is not None:
                parts.drop(VECTORS)
        return without

    def _fit_one_after_the_other(self) -> None:
        """Fit each split: two threads would draw dropout from the one generator of both, and on a GPU one thread at a
        time records a step.
        """
        for i in range(len(self.splits)):
            self._fit_split(i, self.course.callback)

    def _fit_in_two_threads(self) -> None:
        """Fit every other split here; beside it, in a second thread, all rows for all epochs, and the other splits.

        The fit on all rows is the right one if the last epoch is selected.
        """
        jobs: list[Callable[[], None]] = [self._fit_all]
        for i in range(1, len(self.splits), 2):
            jobs.append(partial(self._fit_split, i))
        with in_second_thread(jobs, self._cancel):
            for i in range(0, len(self.splits), 2):
                self._fit_split(i, self.course.callback)

    def _fit_all(self) -> None:
        final = make_trainer(self.dataset, self.classes, self.config, self.course.stop)
        final.train(self.config.epochs, checkpoint=self.course.checkpoints.of(ALL_ROWS))
        self.final = final

    def _fit_split(self, i: int, callback: Callback = NOBODY) -> None:
        found = ValidatedFit(self.splits[i], self.classes, self.config, self.course.stop)
        if i == 0:
            self.kept = found
        name = "choosing" if len(self.splits) == 1 else f"choosing {i + 1}/{len(self.splits)}"
        checkpoint = self.course.checkpoints.of(split_name(i, len(self.splits)))
        found.run(name, callback, checkpoint, keep=i == 0)
        self.logits[i], self.parts[i] = found.logits, found.parts

    def _cancel(self) -> None:
        self.course.stop.requested = True

    def _as_it_stands(self) -> tuple[SelectionResult, AnyTrainer]:
        """Return the fit of the first split: what is reported is measured on this fit, on rows that it has not seen."""
        if self.kept is None or not self.course.stop.possible:  # requested by other means than `possible` allows
            raise KeyboardInterrupt
        return self.kept.as_it_stands(), self.kept.trainer


def cross_fit(
    dataset: Dataset,
    splits: Sequence[Split],
    classes: int,
    config: ResolvedConfig,
    course: Course | None = None,
) -> tuple[SelectionResult, TrainedModel]:
    """Let the validation rows of all splits together select the epoch, and return it with the model of all rows.

    If a stop is requested meanwhile, the model is that of the first split as it stands, validated and calibrated once
    more.

    Raises:
        ConfigError: training diverged.
        KeyboardInterrupt: a stop was requested before it was possible.
    """
    course = course or Course()

    def compiling() -> None:
        course.callback.note(COMPILING)
        if config.impl != "reference":
            compile_ahead()

    with compiling_ahead() as compile_ahead, compiling_told(compiling):
        selected, trainer = CrossFit(dataset, splits, classes, config, course).run()
    return selected, trainer.trained_model(selected.calibration.ensemble_weights)


def fit(
    dataset: Dataset,
    classes: int,
    config: ResolvedConfig,
    epochs: int,
    course: Course | None = None,
    name: str = ALL_ROWS,
) -> AnyTrainer:
    """Train on all rows, with the schedule of `config.epochs` epochs cut after `epochs`"""
    course = course or Course()
    trainer = make_trainer(dataset, classes, config, course.stop)
    trainer.train(epochs, course.callback, course.checkpoints.of(name))
    return trainer
