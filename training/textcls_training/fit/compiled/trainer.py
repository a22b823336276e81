"""One fit by compiled loops: the learners of all views, their batches, and the schedule of their rates.

Shapes: B texts of a batch, K batches at once, V views, R texts of a prediction, C labels.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import islice
from typing import Any, Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from textcls_training.config.resolve import ResolvedConfig
from textcls_training.data.arrays import Float32, Int64, starts
from textcls_training.data.corpus import Corpus
from textcls_training.data.dataset import Dataset
from textcls_training.data.feature_space import FeatureSpace
from textcls_training.data.label_matrix import LabelMatrix
from textcls_training.fit.any_trainer import AnyTrainer, diverged
from textcls_training.fit.callbacks import NOBODY, Callback
from textcls_training.fit.compiled.arrays import Losses, Targets
from textcls_training.fit.compiled.learner import Encoded, Learner
from textcls_training.fit.interrupt import Stop
from textcls_training.fit.label_weights import FOCUS, class_weights, label_set_weights, log_odds
from textcls_training.fit.one_vs_rest.beside import joined, trained_beside
from textcls_training.fit.one_vs_rest.features import Features
from textcls_training.fit.one_vs_rest.trainer import View
from textcls_training.fit.schedule import rate_factor
from textcls_training.models.ensemble import VECTORS, HashedView, TrainedModel
from textcls_training.state.arrays_file import Arrays
from textcls_training.state.checkpoints import Learned

# Steps that are taken before progress is reported, and before a stop is noticed: some milliseconds.
STEPS_AT_ONCE: Final = 32

Result = TypeVar("Result")


class CompiledTrainer(AnyTrainer):
    """One fit of the default model; see `textcls_training.fit.compiled`.

    Attributes:
        learners: the learners of each view, in the order of `TrainedModel.views`.
        machines: support vector machines beside the last of them, last in the ensemble; None without any.
    """

    def __init__(self, dataset: Dataset, classes: int, config: ResolvedConfig, stop: Stop | None = None) -> None:
        super().__init__(dataset, classes, config, stop)
        self.learners = _fresh_learners(dataset.corpus, classes, config)
        if dataset.several:
            bias_C = log_odds(dataset)
            for learner in self.learners:
                learner.weights.bias_C[:] = bias_C
        self._targets = targets_of(dataset, classes, config)
        self._encoded = [learner.encode(dataset.corpus) for learner in self.learners]
        pairs = zip(self.learners, self._encoded, strict=True)
        self._threads = ThreadPoolExecutor(max(1, len(self.learners) - 1))
        self._scratch = [learner.scratch(encoded, config.optim.batch_size) for learner, encoded in pairs]
        self.machines: View | None = None
        space = self.learners[-1].space
        if config.machines_beside and isinstance(space, FeatureSpace):
            texts = self._encoded[-1].texts
            self.machines = trained_beside(space, texts, dataset, classes, config, self.stop)

    @property
    def views(self) -> int:
        """The number of views, support vector machines included."""
        return len(self.learners) + (self.machines is not None)

    def leave_out(self, view: int) -> None:
        """Continue without a view, which the others do not depend on."""
        for of_views in (self.learners, self._encoded, self._scratch):
            del of_views[view]

    def encode(self, corpus: Corpus) -> list[Encoded | Features]:
        """Prepare texts for each view."""
        found = [learner.encode(corpus) for learner in self.learners]
        return [*found] if self.machines is None else [*found, self.machines.features_of(found[-1].texts)]

    def train_epoch(self, number: int, callback: Callback = NOBODY) -> None:
        """Pass once over all rows, or until a stop is requested, which is noticed every few steps.

        Raises:
            ConfigError: the loss is not finite.
        """
        for batches in _some(self.batches(number)):
            if self.stop.requested:
                return
            for text_B, loss in zip(batches, self._train(batches), strict=True):
                callback.step(len(text_B), loss)
            self.keep()
        self.epochs = number

    def _train(self, batches: Sequence[Int64]) -> list[float]:
        """Take a step for each batch; return the mean loss of each batch per text and view."""
        first, warmup = self.step_number, self.config.optim.warmup
        factor_K = np.array([rate_factor(first + k, self.steps, warmup) for k in range(len(batches))], np.float32)
        size_K = np.array([len(text_B) for text_B in batches], np.int64)
        loss_K = np.sum(list(self._side_by_side(self._steps(batches, size_K, factor_K))), axis=0)
        self.step_number += len(batches)
        means: list[float] = (loss_K / (len(self.learners) * size_K)).tolist()
        for k, mean in enumerate(means, 1):
            if not math.isfinite(mean):
                raise diverged(f" at step {first + k}: the loss is not finite")
        return means

    def _steps(self, batches: Sequence[Int64], size_K: Int64, factor_K: Float32) -> list[Callable[[], Losses]]:
        """Return functions that take the steps of each view."""
        flat = np.concatenate(batches), starts(size_K)
        return [
            partial(learner.train, encoded, self._targets, scratch, flat, factor_K)
            for learner, encoded, scratch in zip(self.learners, self._encoded, self._scratch, strict=True)
        ]

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return all arrays that steps change, by name."""
        return _of_views({learner.name: learner.arrays() for learner in self.learners})

    def spaces(self) -> dict[str, NDArray[Any]]:
        """Return which features the rows are of, by the names of the views."""
        return _of_views({learner.name: learner.buckets() for learner in self.learners})

    def begin_with(self, learned: Learned) -> None:
        """Begin with what an earlier training has learned about features and labels, rather than at random."""
        earlier = self.dataset.corpus.earlier
        assert earlier is not None
        for learner in self.learners:
            of_view = {
                name: learned.arrays[f"{learner.name}.{name}"] for name in (*learner.arrays(), *learner.buckets())
            }
            learner.begin_with(of_view, learned.label_C, earlier)

    def resume(self, arrays: Arrays, callback: Callback = NOBODY) -> None:
        """Resume from the arrays of a state."""
        super().resume(arrays, callback)
        for learner in self.learners:
            learner.steps = self.step_number

    def _side_by_side(self, jobs: Sequence[Callable[[], Result]]) -> Iterator[Result]:
        """Yield the results of independent jobs, one per view: all run at once, the first one in this thread."""
        others = [self._threads.submit(job) for job in jobs[1:]]
        yield jobs[0]()
        for other in others:
            yield other.result()

    def predict(self, encoded_V: Sequence[Any]) -> Float32:
        """Return the logits [V, R, C] of each view, of what `encode` has made of texts.

        Raises:
            ConfigError: they are not finite.
        """
        views: list[Any] = [*self.learners, *([] if self.machines is None else [self.machines])]
        jobs = [partial(view.predict, encoded) for view, encoded in zip(views, encoded_V, strict=True)]
        logits_VRC = np.stack(list(self._side_by_side(jobs)))
        if not np.isfinite(logits_VRC).all():
            raise diverged(": answers are not finite")
        return logits_VRC

    def trained_model(self, ensemble_weights: tuple[float, ...]) -> TrainedModel:
        """Return what has been learned, with the weights that validation rows gave to the views."""
        views = [learner.view() for learner in self.learners]
        last = views[-1]
        if self.machines is not None and isinstance(last, HashedView):
            *others, own, weight = ensemble_weights
            views[-1], ensemble_weights = joined(last, self.machines, own, weight), (*others, own + weight)
        return TrainedModel(self.dataset.corpus.types, views, ensemble_weights)


def _fresh_learners(corpus: Corpus, classes: int, config: ResolvedConfig) -> list[Learner]:
    """Return a fresh learner of each view. Each has its own random draws, so none depends on which others there are."""
    learners = []
    for number, features in enumerate(config.features.views()):
        rng = np.random.default_rng([config.seed, number])
        learners.append(Learner.of_features(corpus, features, classes, config, rng))
    if config.vectors is not None:
        learners.insert(VECTORS, Learner.of_vectors(config.vectors, classes, config))
    return learners


def targets_of(dataset: Dataset, classes: int, config: ResolvedConfig) -> Targets:
    """Return the targets of the texts of a dataset."""
    rows = len(dataset.labels)
    weight_N = np.ones(rows, np.float32) if dataset.weight_R is None else dataset.weight_R
    if dataset.several:
        sets = dataset.label_matrix
        weights = label_set_weights(dataset, config.class_weight)
        return Targets(sets.start, sets.label, sets.probability, weight_N, *weights, FOCUS)
    present_C = class_weights(dataset.label_mass(classes), config.class_weight)
    weights = present_C, np.zeros(0, np.float32)
    if dataset.probability_RC is None:
        label = dataset.labels.astype(np.int32)
        return Targets(np.arange(rows + 1), label, np.ones(rows, np.float32), weight_N, *weights, FOCUS)
    soft = LabelMatrix.of_dense(dataset.probability_RC)
    return Targets(soft.start, soft.label, soft.probability, weight_N, *weights, FOCUS)


def _of_views(found: Mapping[str, Mapping[str, NDArray[Any]]]) -> dict[str, NDArray[Any]]:
    return {f"{view}.{name}": array for view, arrays in found.items() for name, array in arrays.items()}


def _some(batches: Iterator[Int64]) -> Iterator[list[Int64]]:
    """Yield batches, some at a time."""
    while some := list(islice(batches, STEPS_AT_ONCE)):
        yield some
