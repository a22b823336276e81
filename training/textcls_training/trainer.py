"""One fit: a fresh model, and the steps that train it.

Shapes: B texts, T tokens, V views, C labels, D width, S seeds; R rows of a table or of texts, as said.
"""

import math
from collections.abc import Sequence
from threading import Lock
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from textcls.errors import ConfigError
from textcls.features import FeatureConfig
from textcls_training import ops
from textcls_training.arrays import Float32, Int64
from textcls_training.choices import ClassWeight
from textcls_training.config import OptimConfig, Plan, resolve_device
from textcls_training.embedding import make_embedding
from textcls_training.encoding import Corpus, epoch_batches, plain_batches
from textcls_training.model import TextClassifier
from textcls_training.optim import Group
from textcls_training.rows import Rows
from textcls_training.views import Fitted
from textcls_training.watching import Stop, Watcher

# Fresh weights come from PyTorch's one generator: two threads must not draw at once.
_DRAWING = Lock()


class Learner:
    """One view in training: its embedding and its classifier."""

    def __init__(self, corpus: Corpus, features: FeatureConfig, classes: int, plan: Plan) -> None:
        self.embedding = make_embedding(corpus, features, plan)
        self.classifier = TextClassifier(plan.model, classes).to(resolve_device(plan.device))
        self.device = self.classifier.head.bias.device

    def logits(self, x_BTD: Tensor, energy_BT1: Tensor, mask_BT: Tensor) -> Tensor:
        """Return the logits [B, C] on the classifier's device, of what the embedding says of a batch."""
        logits_BC: Tensor = self.classifier(*(tensor.to(self.device) for tensor in (x_BTD, energy_BT1, mask_BT)))
        return logits_BC

    def rationale_loss(self, x_BTD: Tensor, energy_BT1: Tensor, mask_BT: Tensor, marked_BT: Tensor) -> Tensor:
        """Return how far attention is from what people have marked, summed over the texts of a batch."""
        given = [tensor.to(self.device) for tensor in (x_BTD, energy_BT1, mask_BT)]
        share_BTS, _, _ = self.classifier.attend(*given)
        return ops.rationale_loss(share_BTS, marked_BT.to(self.device)).sum()


class Trainer:
    """One fit: a fresh model, and the steps that train it."""

    def __init__(self, rows: Rows, classes: int, plan: Plan, stop: Stop | None = None) -> None:
        self.plan, self.rows, self.classes, self.stop = plan, rows, classes, stop or Stop()
        with _DRAWING:
            torch.manual_seed(plan.seed)
            self.learners = [Learner(rows.corpus, features, classes, plan) for features in plan.features.views()]
        self.encoded = self.encode(rows.corpus)
        self.device = self.learners[0].device
        self.dense = _dense_groups(self.learners, plan.optim)
        self.label_weight = _label_weight(rows.labels, classes, plan.class_weight).to(self.device)
        self.steps = plan.epochs * -(-len(rows.labels) // plan.optim.batch_size)
        self.step_number = self.epochs = 0
        self.stopped = False

    def encode(self, corpus: Corpus) -> list[Any]:
        """Prepare texts for the embedding of each view."""
        return [learner.embedding.encode(corpus) for learner in self.learners]

    def train_epoch(self, number: int, watcher: Watcher | None) -> None:
        """Pass once over all rows, or until `stopped` is set, or somebody asks for it.

        Raises:
            ConfigError: the loss is not finite.
        """
        for learner in self.learners:
            learner.classifier.train()
        rng = np.random.default_rng([self.plan.seed, number])
        for text_B in epoch_batches(self.rows.corpus.lengths(), self.plan.optim.batch_size, rng):
            if self.stopped or self.stop.asked:
                return
            loss = self._step(text_B)
            if watcher:
                watcher.step(len(text_B), loss)
        self.epochs = number

    def _step(self, text_B: Int64) -> float:
        factor = _schedule(self.step_number, self.steps, self.plan.optim.warmup)
        label_B = torch.from_numpy(self.rows.labels[text_B]).to(self.device)
        given = zip(self.learners, self.encoded, strict=True)
        batches = [learner.embedding.batch(encoded, text_B) for learner, encoded in given]
        read = [learner.embedding.read(batch) for learner, batch in zip(self.learners, batches, strict=True)]
        logits_VBC = torch.stack(
            [
                learner.logits(x_BTD.requires_grad_(), energy_BT1, batch.mask_BT)
                for learner, batch, (x_BTD, energy_BT1) in zip(self.learners, batches, read, strict=True)
            ]
        )
        # Each view learns by itself. Summed, not averaged, so that a row learns the same from a text however many
        # texts share the step.
        loss_VB = F.cross_entropy(logits_VBC.movedim(2, 1), label_B.expand(len(logits_VBC), -1), reduction="none")
        loss = (loss_VB * self.label_weight[label_B]).sum()
        marked_BT = self.rows.marks(text_B, batches[0].mask_BT)
        if marked_BT is not None:
            for learner, batch, (x_BTD, energy_BT1) in zip(self.learners, batches, read, strict=True):
                distance = learner.rationale_loss(x_BTD, energy_BT1, batch.mask_BT, marked_BT)
                loss = loss + self.plan.rationale_weight * distance
        loss.backward()  # type: ignore[no-untyped-call]
        for learner, batch, (x_BTD, _) in zip(self.learners, batches, read, strict=True):
            if x_BTD.grad is not None:
                learner.embedding.update(batch, x_BTD.grad, self.plan.optim.table_rate * factor)
        for group in self.dense:
            group.step(factor)
        self.step_number += 1
        mean = float(loss.detach()) / loss_VB.numel()
        if not math.isfinite(mean):
            raise ConfigError(
                f"Training diverged at step {self.step_number}: the loss is not finite; lower the learning rate."
            )
        return mean

    @torch.no_grad()
    def predict(self, encoded_V: Sequence[Any], batch_size: int = 256) -> Float32:
        """Return the logits [V, texts, C] of each view, of what `encode` has made of texts.

        Raises:
            ConfigError: they are not finite.
        """
        corpus = encoded_V[0].corpus
        logits = np.zeros((len(self.learners), len(corpus), self.classes), np.float32)
        for learner, encoded, logits_RC in zip(self.learners, encoded_V, logits, strict=True):
            learner.classifier.eval()
            for text_B in plain_batches(corpus.lengths(), batch_size):
                batch = learner.embedding.batch(encoded, text_B)
                logits_RC[text_B] = learner.logits(*learner.embedding.read(batch), batch.mask_BT).cpu()
        if not np.isfinite(logits).all():
            raise ConfigError("Training diverged: answers are not finite; lower the learning rate.")
        return logits

    def fitted(self, shares: tuple[float, ...]) -> Fitted:
        """Return what has been learned, with the shares that judging rows gave to the views."""
        views = [learner.embedding.view(learner.classifier.cpu().eval()) for learner in self.learners]
        return Fitted(self.rows.corpus.types, views, shares)


def _dense_groups(learners: Sequence[Learner], config: OptimConfig) -> list[Group]:
    models = [learner.classifier for learner in learners]
    embeddings = [weight for learner in learners for weight in learner.embedding.dense]
    heads = [model.head.weight for model in models]
    mixing = [p for model in models if model.mixing for p in model.mixing.parameters()]
    others = [p for model in models for p in (*model.attention.parameters(), model.head.bias)]
    groups = [Group(others, config.rate), Group(heads, config.rate, config.head_decay)]
    more = ((mixing, config.mixing_rate), (embeddings, config.bits_rate))
    return [*groups, *(Group(weights, rate) for weights, rate in more if weights)]


def _label_weight(labels: Int64, classes: int, kind: ClassWeight) -> Tensor:
    if kind == "none":
        return torch.ones(classes)
    count = np.bincount(labels, minlength=classes)
    return torch.from_numpy(len(labels) / (classes * np.maximum(count, 1))).float()


def _schedule(step: int, steps: int, warmup: float) -> float:
    """Rise linearly for a share `warmup` of the steps, then fall linearly to zero."""
    rising = max(1.0, warmup * steps)
    return min((step + 1) / rising, (steps - step) / max(1.0, steps - rising), 1.0)
