"""One fit by dual coordinate descent: a linear support vector machine per label, in each hashed view.

Shapes: V views, N texts, F features of a view, C labels, R texts of a prediction.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from textcls_training.config.resolve import ResolvedConfig
from textcls_training.data.arrays import Float32, Int64
from textcls_training.data.corpus import Corpus
from textcls_training.data.dataset import Dataset
from textcls_training.data.feature_space import FeatureSpace
from textcls_training.fit.any_trainer import AnyTrainer, diverged
from textcls_training.fit.callbacks import NOBODY, Callback
from textcls_training.fit.compiled.arrays import Texts
from textcls_training.fit.compiled.learner import encode, uses_of
from textcls_training.fit.interrupt import Stop
from textcls_training.fit.label_weights import label_set_weights
from textcls_training.fit.one_vs_rest.features import Features, features_of
from textcls_training.fit.one_vs_rest.solver import answers, descend
from textcls_training.models.ensemble import HashedView, TrainedModel
from textcls_training.models.linear_classifier import LinearClassifier
from textcls_training.state.checkpoints import Learned

# The cost of a mistake, with rows of length 1. Measured: training/README.md.
COST: Final = 1.0
# The number of texts that are visited before a stop is noticed.
TEXTS_AT_ONCE: Final = 2048


class View:
    """The support vector machines of a view.

    Attributes:
        space: its features.
        weight_FC: the weights of the machines.
        bias_C: their biases.
        dual_NC: the weight of each training text in each machine.
    """

    def __init__(self, space: FeatureSpace, texts: Texts, classes: int) -> None:
        self.space = space
        self.features = self.features_of(texts)
        self.weight_FC = np.zeros((len(self.space.weight), classes), np.float32)
        self.bias_C = np.zeros(classes, np.float32)
        self.dual_NC = np.zeros((len(texts.start) - 1, classes), np.float32)

    def encode(self, corpus: Corpus) -> Features:
        """Return the features of texts."""
        return self.features_of(encode(self.space, corpus))

    def features_of(self, texts: Texts) -> Features:
        """Return the features of texts, as the view reads them."""
        return features_of(texts, self.space.weight, uses_of(texts))

    def train(self, text_B: Int64, cost_NC: Float32) -> float:
        """Visit some texts once; return the loss before, summed over them."""
        return descend(self.features, text_B, cost_NC, self.dual_NC, self.weight_FC, self.bias_C)

    def predict(self, features: Features) -> Float32:
        """Return the margins [R, C] of texts."""
        margin_RC = np.empty((len(features.start) - 1, len(self.bias_C)), np.float32)
        answers(features, self.weight_FC, self.bias_C, margin_RC)
        return margin_RC

    def forget_rows(self) -> None:
        """Keep only the machines, which are not trained any more."""
        self.features = Features(np.zeros(1, np.int64), np.zeros(0, np.int32), np.zeros(0, np.float32))
        self.dual_NC = np.zeros((0, len(self.bias_C)), np.float32)

    def learned(self, config: ResolvedConfig) -> HashedView:
        """Return the trained view: the vector of a token has an entry for each label."""
        labels = len(self.bias_C)
        head_CX, query_SD = np.eye(labels, dtype=np.float32), np.zeros((1, labels), np.float32)
        classifier = LinearClassifier(config.model, query_SD, head_CX, self.bias_C.copy(), labels)
        return HashedView(self.space, self.weight_FC, classifier, distinct=(True,))


class OneVsRestTrainer(AnyTrainer):
    """One fit of support vector machines; see `textcls_training.fit.one_vs_rest`.

    An uncertain target counts as the likelier of yes and no, weighted by how much likelier it is.

    Attributes:
        machines: the machines of each view, in the order of `TrainedModel.views`.
    """

    def __init__(self, dataset: Dataset, classes: int, config: ResolvedConfig, stop: Stop | None = None) -> None:
        super().__init__(dataset, classes, config, stop)
        corpus, views = dataset.corpus, config.features.views()
        spaces = [FeatureSpace.fit(corpus, features, config.least_buckets) for features in views]
        self.machines = [View(space, encode(space, corpus), classes) for space in spaces]
        self._cost_NC = costs_of(dataset, config)
        self._threads = ThreadPoolExecutor(len(self.machines))

    @property
    def views(self) -> int:
        """How many views there are."""
        return len(self.machines)

    def leave_out(self, view: int) -> None:
        """Continue without a view, which the others do not depend on."""
        del self.machines[view]

    def encode(self, corpus: Corpus) -> list[Features]:
        """Prepare texts for each view."""
        return self._side_by_side([partial(view.encode, corpus) for view in self.machines])

    def train_epoch(self, number: int, callback: Callback = NOBODY) -> None:
        """Visit all texts once, or until a stop is requested, which is noticed every few thousand.

        Raises:
            ConfigError: the loss is not finite.
        """
        if number <= self.epochs:
            return  # The checkpoint that training goes on from is of the end of this pass.
        for text_B in some_texts(number, len(self.dataset.labels), self.config.seed):
            if self.stop.requested:
                return
            losses = self._side_by_side([partial(view.train, text_B, self._cost_NC) for view in self.machines])
            loss = sum(losses) / (self.views * len(text_B))
            if not math.isfinite(loss):
                raise diverged(f" in pass {number}: the loss is not finite")
            callback.step(len(text_B), loss)
        self.step_number += self.steps_an_epoch
        self.epochs = number
        self.keep()

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return all arrays that passes change, by name."""
        found: dict[str, NDArray[Any]] = {}
        for view in self.machines:
            found |= {
                f"{view.space.name}.weight": view.weight_FC,
                f"{view.space.name}.bias": view.bias_C,
                f"{view.space.name}.dual": view.dual_NC,
            }
        return found

    def spaces(self) -> dict[str, NDArray[Any]]:
        """Return nothing: no other training begins with support vector machines."""
        return {}

    def begin_with(self, learned: Learned) -> None:
        """Refuse: the coordinates of rows that are no longer present are not known."""
        raise NotImplementedError("machines begin anew")

    def predict(self, encoded_V: Sequence[Features]) -> Float32:
        """Return the margins [V, R, C] of each view, of what `encode` has made of texts."""
        jobs = [partial(view.predict, features) for view, features in zip(self.machines, encoded_V, strict=True)]
        return np.stack(self._side_by_side(jobs))

    def trained_model(self, ensemble_weights: tuple[float, ...]) -> TrainedModel:
        """Return what has been learned, with the weights that validation rows gave to the views."""
        views = [view.learned(self.config) for view in self.machines]
        return TrainedModel(self.dataset.corpus.types, views, ensemble_weights)

    def _side_by_side(self, jobs: Sequence[Callable[[], Any]]) -> list[Any]:
        """Return the results of independent jobs, one per view, run all at once."""
        return [job.result() for job in [self._threads.submit(job) for job in jobs]]


def some_texts(number: int, rows: int, seed: int) -> Iterator[Int64]:
    """Yield the rows in the order in which a pass, numbered from 1, visits them, a few thousand at a time."""
    order = np.random.default_rng([seed, number]).permutation(rows)
    for first in range(0, rows, TEXTS_AT_ONCE):
        yield order[first : first + TEXTS_AT_ONCE]


def costs_of(dataset: Dataset, config: ResolvedConfig) -> Float32:
    """Return the cost of a mistake for each row and label [N, C], below 0 if the row does not have the label."""
    present_C, absent_C = label_set_weights(dataset, config.class_weight)
    sure_NC = 2 * dataset.target(len(present_C)) - 1
    cost_NC = np.float32(COST) * np.where(sure_NC > 0, present_C, absent_C) * sure_NC
    return cost_NC if dataset.weight_R is None else cost_NC * dataset.weight_R[:, None]
