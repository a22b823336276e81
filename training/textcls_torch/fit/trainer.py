"""The reference trainer, in PyTorch: one fit of any model, and the steps that train it.

Shapes: B texts of a batch, T tokens of the longest one, N tokens of all, V views, C labels, D width, S seeds, R
predicted texts.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import replace
from functools import cached_property
from threading import Lock
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from textcls_torch.fit.device_step import DeviceStep, suits
from textcls_torch.fit.loss import make_loss
from textcls_torch.fit.optim import dense_groups
from textcls_torch.fit.pending_losses import STEPS_ON_A_GPU, PendingLosses
from textcls_torch.fit.spelling import spelling
from textcls_torch.fit.view_learner import ViewBatch, ViewLearner
from textcls_torch.models.hashed_embedding import HashedEmbedding
from textcls_torch.models.sending import sent
from textcls_training.config.resolve import ResolvedConfig
from textcls_training.data.arrays import Float32, Int64
from textcls_training.data.batches import plain_batches
from textcls_training.data.corpus import Corpus
from textcls_training.data.dataset import Dataset, Split
from textcls_training.fit.any_trainer import AnyTrainer, diverged
from textcls_training.fit.callbacks import NOBODY, Callback
from textcls_training.fit.interrupt import Stop
from textcls_training.fit.label_weights import log_odds
from textcls_training.fit.schedule import rate_factor
from textcls_training.fit.split_parts import SplitParts
from textcls_training.models.ensemble import VECTORS, TrainedModel
from textcls_training.state.checkpoints import Learned

# Fresh weights come from PyTorch's global generator: two threads must not draw at once.
_DRAWING = Lock()
# How many texts are predicted at once.
PREDICTION_BATCH = 256
# How many rows support rows are made from in a split; the more labels, the more.
MOST_ROWS = 20_000


class Trainer(AnyTrainer):
    """One fit of any model, in PyTorch: the reference.

    Attributes:
        losses_at_once: the number of steps whose losses are read together.
        device_step: takes a step in one piece, while epochs run on a device.
    """

    # Whether the loss depends only on targets, so that a step can be done on a device in one piece.
    of_targets: ClassVar[bool] = True

    def __init__(self, dataset: Dataset, classes: int, config: ResolvedConfig, stop: Stop | None = None) -> None:
        super().__init__(dataset, classes, config, stop)
        with _DRAWING:
            torch.manual_seed(config.seed)
            self.learners = ViewLearner.every(dataset.corpus, classes, config)
        self.device = self.learners[0].device
        self.losses_at_once = STEPS_ON_A_GPU if self.device.type == "cuda" else 1
        embeddings = [weight for learner in self.learners for weight in learner.embedding.dense]
        classifiers = [learner.classifier for learner in self.learners]
        self.dense = []
        if config.vectors is not None:
            slower = replace(config.optim, rate=config.vectors_rate)
            self.dense += dense_groups([classifiers.pop(VECTORS)], [], slower)
        self.dense += dense_groups(classifiers, embeddings, config.optim)
        self._label_loss = make_loss(dataset, classes, config.class_weight, self.device)
        self.device_step: DeviceStep | None = None
        if dataset.several:
            self._begin_at_log_odds()

    @torch.no_grad()
    def _begin_at_log_odds(self) -> None:
        for learner in self.learners:
            learner.classifier.head.bias.copy_(torch.from_numpy(log_odds(self.dataset)))

    @property
    def views(self) -> int:
        """The number of views."""
        return len(self.learners)

    def leave_out(self, view: int) -> None:
        """Continue without a view; the others do not depend on it."""
        del self.learners[view]
        if "encoded" in vars(self):
            del self.encoded[view]

    @cached_property
    def encoded(self) -> list[Any]:
        """Return the training texts as encoded by each view, for steps that are taken view by view."""
        return self.encode(self.dataset.corpus)

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """Take steps in one piece for as long as the block lasts, if possible."""
        self.device_step = self.whole_step()
        try:
            yield
        finally:
            self.device_step = None

    def whole_step(self) -> DeviceStep | None:
        """Return what takes a step of all views in one piece, if nothing needs the middle of a step.

        Raises:
            SurroundingsError: the device has no room for it.
        """
        whole = self.of_targets and self.dataset.rationale is None
        if not (whole and suits(self.learners)):
            return None
        return DeviceStep(self.learners, self.dataset, self._label_loss, self.dense, self.config.optim.table_rate)

    def encode(self, corpus: Corpus) -> list[Any]:
        """Prepare texts for the embedding of each view."""
        return [learner.embedding.encode(corpus) for learner in self.learners]

    def train_epoch(self, number: int, callback: Callback = NOBODY) -> None:
        """Pass once over all rows, or until a stop is requested.

        Raises:
            ConfigError: the loss is not finite.
        """
        for learner in self.learners:
            learner.classifier.train()
        losses = PendingLosses(callback, self.losses_at_once)
        for text_B in self.batches(number):
            if self.stop.requested:
                losses.read()
                return
            loss = self._step(text_B)
            losses.add(self.step_number, len(text_B), loss, len(text_B) * self.views)
            self.keep()
        losses.read()
        self.epochs = number

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return all arrays that steps change, by name."""
        found: dict[str, NDArray[Any]] = {}
        for i, learner in enumerate(self.learners):
            found |= {f"{i}.{name}": array for name, array in learner.embedding.arrays().items()}
        for i, group in enumerate(self.dense):
            found |= {f"dense.{i}.{name}": tensor.detach().cpu().numpy() for name, tensor in group.tensors().items()}
        return found

    def spaces(self) -> dict[str, NDArray[Any]]:
        """Return no arrays: no other training begins with what this one has learned."""
        return {}

    def begin_with(self, learned: Learned) -> None:
        """Refuse: only compiled trainers do this."""
        raise NotImplementedError

    def _step(self, text_B: Int64) -> Tensor:
        """Learn from a batch; return its loss, summed over texts and views."""
        factor = rate_factor(self.step_number, self.steps, self.config.optim.warmup)
        loss = self._view_by_view(text_B, factor) if self.device_step is None else self.device_step(text_B, factor)
        self.step_number += 1
        return loss

    def _view_by_view(self, text_B: Int64, factor: float) -> Tensor:
        """Update tables and dense weights; return the loss."""
        loss = self._move(text_B, self.config.optim.table_rate * factor)
        for group in self.dense:
            group.step(factor)
        return loss

    def _move(self, text_B: Int64, rate: float) -> Tensor:
        """Update the tables, and give the dense weights the gradient of a batch; return its loss."""
        views = self._read(text_B)
        loss = self._loss(text_B, views)
        loss.backward()  # type: ignore[no-untyped-call]
        for learner, given in zip(self.learners, views, strict=True):
            learner.update(given, rate)
        return loss.detach()

    def _read(self, text_B: Int64) -> list[ViewBatch]:
        """Read a batch in each view; token vectors of embeddings that learn have a gradient."""
        views = []
        for learner, encoded in zip(self.learners, self.encoded, strict=True):
            given = learner.read(encoded, text_B)
            given.x_BTD.requires_grad_(learner.embedding.learns)
            views.append(given)
        return views

    def _loss(self, text_B: Int64, views: Sequence[ViewBatch]) -> Tensor:
        """Return the loss of the targets and, if there are human rationales, that of the attention."""
        pairs = list(zip(self.learners, views, strict=True))
        logits_VBC = torch.stack([learner.logits(given) for learner, given in pairs])
        targets = (sent(array, self.device) for array in self._label_loss.targets(text_B))
        loss = self._label_loss(logits_VBC, *targets)
        if self.dataset.rationale is None:
            return loss
        rationale_BT = self.dataset.rationale_mask(text_B, views[0].mask_BT.cpu().numpy())
        if rationale_BT is not None:
            for learner, given in pairs:
                distance = learner.rationale_loss(given, torch.from_numpy(rationale_BT))
                loss = loss + self.config.rationale_weight * distance
        return loss

    @torch.no_grad()
    def predict(self, encoded_V: Sequence[Any], batch_size: int = PREDICTION_BATCH) -> Float32:
        """Return the logits [V, R, C] of each view for texts that `encode` has prepared.

        Raises:
            ConfigError: the logits are not finite.
        """
        corpus = encoded_V[0].corpus
        logits_VRC = np.zeros((len(self.learners), len(corpus), self.classes), np.float32)
        batches = [*plain_batches(corpus.lengths(), batch_size)]
        for learner, encoded, logits_RC in zip(self.learners, encoded_V, logits_VRC, strict=True):
            learner.classifier.eval()
            for text_B in batches:
                logits_RC[text_B] = learner.logits(learner.read(encoded, text_B)).cpu()
        if not np.isfinite(logits_VRC).all():
            raise diverged(": answers are not finite")
        return logits_VRC

    @torch.no_grad()
    def pooled(self, encoded_V: Sequence[Any], batch_size: int = PREDICTION_BATCH) -> list[Float32]:
        """Return the sums of each view's attention [R, D] for texts that `encode` has prepared."""
        corpus, found = encoded_V[0].corpus, []
        for learner, encoded in zip(self.learners, encoded_V, strict=True):
            pooled_RD = np.zeros((len(corpus), learner.classifier.config.dim), np.float32)
            learner.classifier.eval()
            for text_B in plain_batches(corpus.lengths(), batch_size):
                pooled_RD[text_B] = learner.pooled(learner.read(encoded, text_B)).cpu()
            found.append(pooled_RD)
        return found

    def split_parts(self, split: Split, encoded_V: Sequence[Any]) -> SplitParts:
        """Return the vectors of the rows of a split, as in `AnyTrainer.split_parts`; at most `MOST_ROWS` to train on.

        Raises:
            TypeError: the first view has no rows.
        """
        embedding = self.learners[0].embedding
        if not isinstance(embedding, HashedEmbedding):
            raise TypeError("the first view has rows")
        sure = np.arange(len(split.train.labels))
        if split.train.probability_RC is not None:
            sure = np.flatnonzero(split.train.probability_RC.max(1) == 1)
        some = sure[np.unique(np.linspace(0, len(sure) - 1, MOST_ROWS).astype(np.int64))]
        corpus = split.train.corpus.select(some)
        train = [*self.pooled(self.encode(corpus)), spelling(embedding.space, corpus)]
        valid = [*self.pooled(encoded_V), spelling(embedding.space, split.valid.corpus)]
        return SplitParts(train, split.train.labels[some], valid)

    def trained_model(self, ensemble_weights: tuple[float, ...]) -> TrainedModel:
        """Return what has been learned, with the weights that validation rows gave to the views."""
        views = [learner.embedding.view(deepcopy(learner.classifier).cpu().eval()) for learner in self.learners]
        return TrainedModel(self.dataset.corpus.types, views, ensemble_weights)
