"""The interface of all trainers: one fit, a fresh model and the passes over the rows that train it.

There are three: `textcls_torch.fit.trainer`, the reference, in PyTorch; `textcls_training.fit.compiled`, the compiled
trainer; and `textcls_training.fit.one_vs_rest`, support vector machines. Which of the first two is used is decided
before training (`textcls_training.config.resolve`); the third may be tried beside the second.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from textcls.errors import ConfigError
from textcls_training.config.resolve import ResolvedConfig
from textcls_training.data.arrays import Float32, Int64
from textcls_training.data.batches import epoch_batches
from textcls_training.data.corpus import Corpus
from textcls_training.data.dataset import Dataset, Split
from textcls_training.fit.callbacks import NOBODY, Callback
from textcls_training.fit.interrupt import Stop
from textcls_training.fit.split_parts import SplitParts
from textcls_training.models.ensemble import TrainedModel
from textcls_training.state.arrays_file import Arrays
from textcls_training.state.checkpoints import NOWHERE, Checkpoint, FitState, Learned

STEPS_TAKEN = "steps_taken"


def _nobody() -> None:
    """Keep nothing."""


class AnyTrainer(ABC):
    """One fit: a fresh model, and the passes that train it. Shapes: V views, R texts of a prediction, C labels.

    Attributes:
        stop: checked at every step, or every few, to decide whether training continues.
        epochs: how many whole epochs have been completed.
        step_number: how many steps have been taken.
        steps: how many there are in all epochs, over which rates rise and fall.
        keep: called between steps from time to time, to keep the state of the fit.
    """

    def __init__(self, dataset: Dataset, classes: int, config: ResolvedConfig, stop: Stop | None = None) -> None:
        self.config, self.dataset, self.classes, self.stop = config, dataset, classes, stop or Stop()
        self.steps_an_epoch = -(-len(dataset.labels) // config.optim.batch_size)
        self.steps = config.epochs * self.steps_an_epoch
        self.step_number = self.epochs = 0
        self.keep: Callable[[], None] = _nobody
        self._resumed_at = 0

    def train(self, epochs: int, callback: Callback = NOBODY, checkpoint: Checkpoint = NOWHERE) -> None:
        """Train for `epochs` epochs, or until a stop is requested, from the start or from a checkpoint.

        Raises:
            ConfigError: the loss is not finite.
        """
        callback.phase("training", epochs * len(self.dataset.labels))
        self.begin(checkpoint, callback)
        with self.keeping(lambda: checkpoint.offer(self.state)), self.at_work():
            for number in range(self.epochs + 1, epochs + 1):
                self.train_epoch(number, callback)
                if self.stop.requested:
                    return
                callback.epoch(number, None)
        checkpoint.finish(lambda: self.with_spaces(self.state()))

    @contextmanager
    def keeping(self, keep: Callable[[], None]) -> Iterator[None]:
        """Call `keep` between steps during the block, and drop the reference to it afterwards.

        It refers to the trainer, and a reference cycle of the two would stay in memory until the garbage collector
        runs, which counts objects, not the size of tables.
        """
        self.keep = keep
        try:
            yield
        finally:
            self.keep = _nobody

    def at_work(self) -> AbstractContextManager[object]:
        """Provide what epochs need besides the trainer's own data during a block: by default nothing."""
        return nullcontext()

    def batches(self, number: int) -> Iterator[Int64]:
        """Yield the batches of an epoch, in an order that depends only on seed and epoch; when resuming, the rest."""
        rng = np.random.default_rng([self.config.seed, number])
        taken, self._resumed_at = max(0, self._resumed_at - (number - 1) * self.steps_an_epoch), 0
        batches = epoch_batches(self.dataset.corpus.lengths(), self.config.optim.batch_size, rng)
        return islice(batches, taken, None)

    def state(self) -> FitState:
        """Return all that later steps depend on; the arrays are those that training continues with."""
        epochs, within = divmod(self.step_number, max(1, self.steps_an_epoch))
        where = f"in epoch {epochs + 1}" if within else f"after epoch {epochs}"
        arrays = {STEPS_TAKEN: np.array(self.step_number), **self.arrays()}
        return FitState(arrays, f"{where} of {self.config.epochs}", self.step_number >= self.steps)

    def with_spaces(self, state: FitState) -> FitState:
        """Return the final state of a fit with what another training needs to begin with it."""
        return replace(state, arrays={**state.arrays, **self.spaces()})

    def begin(self, checkpoint: Checkpoint, callback: Callback = NOBODY) -> Arrays | None:
        """Begin with what an earlier training has learned, if there was one, or resume from the checkpoint, if any;
        return its arrays.
        """
        learned, arrays = checkpoint.learned(), checkpoint.load()
        if learned is not None:
            self.begin_with(learned)
        if arrays is not None:
            self.resume(arrays, callback)
        return arrays

    def resume(self, arrays: Arrays, callback: Callback = NOBODY) -> None:
        """Resume from the arrays of a state.

        Raises:
            ValueError: they are of another model.
        """
        own = self.arrays()
        if any(name not in arrays or arrays[name].shape != array.shape for name, array in own.items()):
            raise ValueError("the state is of another model")
        for name, array in own.items():
            array[...] = arrays[name]
        self.step_number = self._resumed_at = int(arrays[STEPS_TAKEN])
        self.epochs, within = divmod(self.step_number, max(1, self.steps_an_epoch))
        rows = len(self.dataset.labels)
        batch_size = self.config.optim.batch_size
        callback.step(self.epochs * rows + within * batch_size)

    @abstractmethod
    def train_epoch(self, number: int, callback: Callback = NOBODY) -> None:
        """Pass once over all rows, or until a stop is requested.

        Raises:
            ConfigError: the loss is not finite.
        """

    @abstractmethod
    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return all arrays that steps change, by name: the arrays themselves, not copies."""

    @abstractmethod
    def spaces(self) -> dict[str, NDArray[Any]]:
        """Return which features the rows stand for, by the names of the views."""

    @abstractmethod
    def begin_with(self, learned: Learned) -> None:
        """Begin with what an earlier training has learned of features and labels, in the place of chance.

        Raises:
            NotImplementedError: models of this kind cannot.
        """

    @property
    @abstractmethod
    def views(self) -> int:
        """How many views there are."""

    @abstractmethod
    def leave_out(self, view: int) -> None:
        """Go on without a view: the others do not know of it."""

    @abstractmethod
    def encode(self, corpus: Corpus) -> list[Any]:
        """Prepare texts for each view."""

    @abstractmethod
    def predict(self, encoded_V: Sequence[Any]) -> Float32:
        """Return the logits [V, R, C] of each view, of what `encode` has made of texts.

        Raises:
            ConfigError: they are not finite.
        """

    def split_parts(self, split: Split, encoded_V: Sequence[Any]) -> SplitParts:
        """Return the vectors of the rows of a split, of which prototypes are made.

        Args:
            split: the rows; the fit is on those to train on.
            encoded_V: what `encode` has made of the validation rows.

        Raises:
            NotImplementedError: models of this kind have none.
        """
        raise NotImplementedError("prototypes are for the reference")

    @abstractmethod
    def trained_model(self, ensemble_weights: tuple[float, ...]) -> TrainedModel:
        """Return what has been learned, with the weights that validation rows gave to the views."""


def diverged(what: str) -> ConfigError:
    """Return the error of a training whose numbers are not finite."""
    return ConfigError(f"Training diverged{what}; lower the learning rate.")
