"""What a trainer is, whatever it is made of: one fit, a fresh model and the passes over the rows that train it.

There are two: `textcls_training.fit.trainer`, the reference, in PyTorch, and `textcls_training.fit.compiled`, one
compiled loop for the default model. Which of them a training has is settled before it begins
(`textcls_training.config.resolve`).
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from textcls.errors import ConfigError
from textcls_training.config.resolve import ResolvedConfig
from textcls_training.data.arrays import Float32
from textcls_training.data.corpus import Corpus
from textcls_training.data.dataset import Dataset
from textcls_training.fit.callbacks import NOBODY, Callback
from textcls_training.fit.interrupt import Stop
from textcls_training.models.ensemble import TrainedModel


class AnyTrainer(ABC):
    """One fit: a fresh model, and the passes that train it. Shapes: V views, R texts of a prediction, C labels.

    Attributes:
        stop: where training looks whether to go on, at each step or every few.
        epochs: how many whole epochs there were.
        step_number: how many steps.
        steps: how many there are in all epochs, over which rates rise and fall.
    """

    def __init__(self, dataset: Dataset, classes: int, config: ResolvedConfig, stop: Stop | None = None) -> None:
        self.config, self.dataset, self.classes, self.stop = config, dataset, classes, stop or Stop()
        self.steps = config.epochs * -(-len(dataset.labels) // config.optim.batch_size)
        self.step_number = self.epochs = 0

    def train(self, epochs: int, callback: Callback = NOBODY) -> None:
        """Train for `epochs` epochs, or until a stop is requested.

        Raises:
            ConfigError: the loss is not finite.
        """
        callback.phase("training", epochs * len(self.dataset.labels))
        for number in range(1, epochs + 1):
            self.train_epoch(number, callback)
            if self.stop.requested:
                return
            callback.epoch(number, None)

    @abstractmethod
    def train_epoch(self, number: int, callback: Callback = NOBODY) -> None:
        """Pass once over all rows, or until a stop is requested.

        Raises:
            ConfigError: the loss is not finite.
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

    @abstractmethod
    def trained_model(self, ensemble_weights: tuple[float, ...]) -> TrainedModel:
        """Return what has been learned, with the weights that validation rows gave to the views."""


def diverged(what: str) -> ConfigError:
    """Return the error of a training whose numbers are not finite."""
    return ConfigError(f"Training diverged{what}; lower the learning rate.")
