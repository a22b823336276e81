"""The training loop: fit on one part, choose the epoch and the temperature on the rest, then fit on all rows.

Same data, seed and configuration give the same bytes at any number of threads: sums over many elements and the
gradient of a layer norm depend on how many threads share them, so everything runs on one.
"""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from textcls_training import calibration
from textcls_training.config import ClassWeight, Device, OptimConfig, Plan
from textcls_training.encoding import Batch, Corpus, Encoded, FeatureSpace, epoch_batches, plain_batches
from textcls_training.model import HashEmbedding, TextClassifier
from textcls_training.optim import TableOptimizer

Int64 = NDArray[np.int64]
State = dict[str, dict[str, Tensor]]


class EpochScore(NamedTuple):
    """How an epoch did on the held-out rows; of equal accuracies the lower loss is better."""

    accuracy: float
    negative_loss: float

    @classmethod
    def of(cls, logits: NDArray[np.float32], labels: Int64) -> "EpochScore":
        """Score the logits [rows, labels] of held-out rows."""
        return cls(float((logits.argmax(1) == labels).mean()), -calibration.log_loss(logits, labels))


class Best(NamedTuple):
    """The best epoch so far, with its weights."""

    number: int
    score: EpochScore
    logits: NDArray[np.float32]
    state: State

    def clearly_beats(self, last: EpochScore, rows: int) -> bool:
        """Whether it beats the last epoch, at which all rates have fallen to zero, by more than one standard error."""
        p = self.score.accuracy
        return p - last.accuracy > math.sqrt(p * (1 - p) / rows)


class Watcher(Protocol):
    """Who wants to know how training goes."""

    def phase(self, name: str, rows: int) -> None:
        """A new pass begins: `rows` rows over all its epochs."""

    def step(self, rows: int, loss: float) -> None:
        """A step was taken."""

    def epoch(self, number: int, score: EpochScore | None) -> None:
        """An epoch is over."""


@dataclass(slots=True)
class Fitted:
    """A trained model with the features it knows."""

    space: FeatureSpace
    embedding: HashEmbedding
    model: TextClassifier

    def pruned(self, max_rows: int) -> "Fitted":
        """Forget the rows that occur once in training, if there are more than `max_rows` rows.

        They carry a third of a percent of the accuracy at most (they were needed in training, where they take up what
        is peculiar to one text) and are two thirds of a model's size.
        """
        if len(self.space.count) <= max_rows:
            return self
        drop = self.space.count == 1
        keep = torch.from_numpy(~drop)
        embedding = HashEmbedding(self.embedding.table_VD.cpu()[keep], self.embedding.weight_V.cpu()[keep])
        return Fitted(self.space.without(drop), embedding, self.model)

    def snapshot(self) -> State:
        """Copy all weights."""
        parts: dict[str, nn.Module] = {"embedding": self.embedding, "model": self.model}
        return {name: {k: v.clone() for k, v in part.state_dict().items()} for name, part in parts.items()}

    def restore(self, state: State) -> None:
        """Take back the weights of `snapshot`."""
        self.embedding.load_state_dict(state["embedding"])
        self.model.load_state_dict(state["model"])


class Rows(NamedTuple):
    """Texts with the number of each one's label."""

    corpus: Corpus
    labels: Int64


@dataclass(frozen=True, slots=True)
class Chosen:
    """What the held-out rows decided: how many epochs, and the temperature for these logits and labels."""

    epochs: int
    temperature: float
    logits: NDArray[np.float32]
    labels: Int64


@contextmanager
def reproducible(seed: int) -> Iterator[None]:
    """One thread and seeded generators inside; everything as before outside."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            yield
    finally:
        torch.set_num_threads(threads)


def resolve_device(name: Device) -> torch.device:
    """Return the device called `name`; `auto` is a GPU where there is one."""
    return torch.device(("cuda" if torch.cuda.is_available() else "cpu") if name == "auto" else name)


class Trainer:
    """One fit: a feature space, a fresh model, and the steps that train it."""

    def __init__(self, rows: Rows, classes: int, plan: Plan) -> None:
        self.plan, self.labels = plan, rows.labels
        self.device = resolve_device(plan.device)
        space = FeatureSpace.fit(rows.corpus, plan.features)
        self.encoded = space.encode(rows.corpus)
        torch.manual_seed(plan.seed)
        embedding = HashEmbedding.fresh(torch.from_numpy(space.weight), plan.model.dim, plan.optim.table_std)
        model = TextClassifier(plan.model, classes)
        self.fitted = Fitted(space, embedding.to(self.device), model.to(self.device))
        self.table = TableOptimizer(self.fitted.embedding, plan.optim.table_accumulator)
        self.dense = _dense_optimizer(model, plan.optim)
        self.label_weight = _label_weight(rows.labels, classes, plan.class_weight).to(self.device)
        self.steps = plan.epochs * -(-len(rows.labels) // plan.optim.batch_size)
        self.step_number = 0

    def train_epoch(self, number: int, watcher: Watcher | None) -> None:
        """Pass once over all rows."""
        self.fitted.model.train()
        rng = np.random.default_rng([self.plan.seed, number])
        for which in epoch_batches(self.encoded.lengths(), self.plan.optim.batch_size, rng):
            loss = self._step(
                self.encoded.batch(which).to(self.device), torch.from_numpy(self.labels[which]).to(self.device)
            )
            if watcher:
                watcher.step(len(which), loss.item())

    def _step(self, batch: Batch, label_B: Tensor) -> Tensor:
        factor = _schedule(self.step_number, self.steps, self.plan.optim.warmup)
        for group in self.dense.param_groups:
            group["lr"] = group["full_rate"] * factor
        unit_UD, energy_U1 = self.table.units(batch)
        logits_BC = self.fitted.model(batch.spread(unit_UD), batch.spread(energy_U1), batch.mask_BT)
        # Summed, not averaged: Adagrad sees the evidence of each text at its own size, however many share a batch.
        loss = F.cross_entropy(logits_BC, label_B, self.label_weight, reduction="none").sum()
        self.dense.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        if unit_UD.grad is not None:
            self.table.step(batch, unit_UD.grad, self.plan.optim.table_rate * factor)
        self.dense.step()
        self.step_number += 1
        return loss.detach() / len(label_B)


@torch.no_grad()
def predict_logits(fitted: Fitted, encoded: Encoded, batch_size: int = 256) -> NDArray[np.float32]:
    """Return the logits [texts, labels]."""
    fitted.model.eval()
    device = fitted.embedding.table_VD.device
    table = TableOptimizer(fitted.embedding, 0.0)
    logits = np.zeros((len(encoded), fitted.model.head.out_features), np.float32)
    for which in plain_batches(encoded.lengths(), batch_size):
        batch = encoded.batch(which).to(device)
        unit_UD, energy_U1 = table.units(batch)
        logits[which] = fitted.model(batch.spread(unit_UD), batch.spread(energy_U1), batch.mask_BT).cpu()
    return logits


def choose(train: Rows, judges: Rows, classes: int, plan: Plan, watcher: Watcher | None) -> tuple[Chosen, Fitted]:
    """Train on `train`; let `judges` choose the epoch (`Best`) and the temperature.

    Without judges (very small data) the last epoch is kept, uncalibrated.
    """
    trainer = Trainer(train, classes, plan)
    held = trainer.fitted.space.encode(judges.corpus)
    if watcher:
        watcher.phase("choosing", plan.epochs * len(train.labels))
    best: Best | None = None
    logits = np.zeros((0, classes), np.float32)
    for number in range(1, plan.epochs + 1):
        trainer.train_epoch(number, watcher)
        score = None
        if len(judges.labels):
            logits = predict_logits(trainer.fitted, held)
            score = EpochScore.of(logits, judges.labels)
            if best is None or score > best.score:
                best = Best(number, score, logits, trainer.fitted.snapshot())
        if watcher:
            watcher.epoch(number, score)
    number = plan.epochs
    if best is not None and score is not None and best.clearly_beats(score, len(judges.labels)):
        number, logits = best.number, best.logits
        trainer.fitted.restore(best.state)
    temperature = calibration.fit_temperature(logits, judges.labels)
    return Chosen(number, temperature, logits, judges.labels), trainer.fitted


def fit(rows: Rows, classes: int, plan: Plan, stop_after: int, watcher: Watcher | None) -> Fitted:
    """Train on all rows, with the schedule of `plan.epochs` epochs cut after `stop_after`."""
    trainer = Trainer(rows, classes, plan)
    if watcher:
        watcher.phase("training", stop_after * len(rows.labels))
    for number in range(1, stop_after + 1):
        trainer.train_epoch(number, watcher)
        if watcher:
            watcher.epoch(number, None)
    return trainer.fitted


def _dense_optimizer(model: TextClassifier, config: OptimConfig) -> torch.optim.AdamW:
    groups: list[dict[str, Any]] = [
        {"params": model.attention.parameters(), "full_rate": config.rate},
        {"params": [model.head.bias], "full_rate": config.rate},
        {"params": [model.head.weight], "full_rate": config.rate, "weight_decay": config.head_decay},
    ]
    if model.mixing:
        groups.append({"params": model.mixing.parameters(), "full_rate": config.mixing_rate})
    return torch.optim.AdamW(groups, lr=config.rate, weight_decay=0.0)


def _label_weight(labels: Int64, classes: int, kind: ClassWeight) -> Tensor:
    if kind == "none":
        return torch.ones(classes)
    count = np.bincount(labels, minlength=classes)
    return torch.from_numpy(len(labels) / (classes * np.maximum(count, 1))).float()


def _schedule(step: int, steps: int, warmup: float) -> float:
    """Rise linearly for a share `warmup` of the steps, then fall linearly to zero."""
    rising = max(1.0, warmup * steps)
    return min((step + 1) / rising, (steps - step) / max(1.0, steps - rising), 1.0)
