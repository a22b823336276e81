"""The training loop: judge on rows held out, choose the epoch and the temperature there, then fit on all rows.

Same data, seed and configuration give the same bytes at any number of threads: sums over many elements and the
gradient of a layer norm depend on how many threads share them, so each training keeps to one.
"""

import math
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from textcls.errors import SurroundingsError
from textcls_training import calibration
from textcls_training.config import ClassWeight, Device, OptimConfig, Plan
from textcls_training.encoding import Batch, Corpus, Encoded, FeatureSpace, epoch_batches, plain_batches
from textcls_training.model import HashEmbedding, TextClassifier
from textcls_training.optim import TableOptimizer

Int64 = NDArray[np.int64]
Float32 = NDArray[np.float32]


class EpochScore(NamedTuple):
    """How an epoch did on the judging rows; of equal accuracies the lower loss is better."""

    accuracy: float
    negative_loss: float

    @classmethod
    def of(cls, logits: Float32, labels: Int64) -> "EpochScore":
        """Score the logits [rows, labels] of judging rows."""
        return cls(float((logits.argmax(1) == labels).mean()), -calibration.log_loss(logits, labels))


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

    def compact(self, max_rows: int) -> "Fitted":
        """Make the table small for saving; beyond `max_rows` rows, forget those that occur once in training.

        Such rows were needed in training, where they take up what is peculiar to one text. They carry about a tenth of
        a percent of the accuracy and are two thirds of a large table.
        """
        space, old = self.space.compact(min_count=2 if len(self.space.count) > max_rows else 1)
        keep = torch.from_numpy(old)
        embedding = HashEmbedding(self.embedding.table_VD.cpu()[keep], self.embedding.weight_V.cpu()[keep])
        return Fitted(space, embedding, self.model)


class Rows(NamedTuple):
    """Texts with the number of each one's label."""

    corpus: Corpus
    labels: Int64

    def split(self, judging: NDArray[np.bool_]) -> "Fold":
        """Return the rows `judging` as judges, and the others to learn from."""
        learn, judge = np.flatnonzero(~judging), np.flatnonzero(judging)
        return Fold(
            Rows(self.corpus.select(learn), self.labels[learn]), Rows(self.corpus.select(judge), self.labels[judge])
        )


class Fold(NamedTuple):
    """Rows to learn from, and rows that judge."""

    train: Rows
    judges: Rows


@dataclass(frozen=True, slots=True)
class Chosen:
    """What the judging rows decided: how many epochs, and the temperature for these logits and labels."""

    epochs: int
    temperature: float
    logits: Float32
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
    if name == "cuda" and not torch.cuda.is_available():
        raise SurroundingsError("PyTorch finds no GPU for --device cuda; choose cpu or auto, or install a CUDA build.")
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
        self.stopped = False

    def train_epoch(self, number: int, watcher: Watcher | None) -> None:
        """Pass once over all rows, or until `stopped` is set."""
        self.fitted.model.train()
        rng = np.random.default_rng([self.plan.seed, number])
        for which in epoch_batches(self.encoded.lengths(), self.plan.optim.batch_size, rng):
            if self.stopped:
                return
            loss = self._step(
                self.encoded.batch(which).to(self.device), torch.from_numpy(self.labels[which]).to(self.device)
            )
            if watcher:
                watcher.step(len(which), loss.item())

    def _step(self, batch: Batch, label_B: Tensor) -> Tensor:
        factor = _schedule(self.step_number, self.steps, self.plan.optim.warmup)
        for group in self.dense.param_groups:
            group["lr"] = group["full_rate"] * factor
        unit_UD, energy_U1 = self.fitted.embedding.units(batch)
        logits_BC = self.fitted.model(batch.spread(unit_UD), batch.spread(energy_U1), batch.mask_BT)
        # Summed, not averaged, so that a row learns the same from a text however many texts share the step.
        loss = (F.cross_entropy(logits_BC, label_B, reduction="none") * self.label_weight[label_B]).sum()
        self.dense.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        if unit_UD.grad is not None:
            self.table.step(batch, unit_UD.grad, self.plan.optim.table_rate * factor)
        self.dense.step()
        self.step_number += 1
        return loss.detach() / len(label_B)


@torch.no_grad()
def predict_logits(fitted: Fitted, encoded: Encoded, batch_size: int = 256) -> Float32:
    """Return the logits [texts, labels]."""
    fitted.model.eval()
    device = fitted.embedding.table_VD.device
    logits = np.zeros((len(encoded), fitted.model.head.out_features), np.float32)
    for which in plain_batches(encoded.lengths(), batch_size):
        batch = encoded.batch(which).to(device)
        unit_UD, energy_U1 = fitted.embedding.units(batch)
        logits[which] = fitted.model(batch.spread(unit_UD), batch.spread(energy_U1), batch.mask_BT).cpu()
    return logits


def judge(fold: Fold, classes: int, plan: Plan, watcher: Watcher | None, name: str) -> list[Float32]:
    """Train on a fold; return the logits of its judging rows after each epoch."""
    trainer = Trainer(fold.train, classes, plan)
    judges = trainer.fitted.space.encode(fold.judges.corpus)
    if watcher:
        watcher.phase(name, plan.epochs * len(fold.train.labels))
    logits = []
    for number in range(1, plan.epochs + 1):
        trainer.train_epoch(number, watcher)
        logits.append(predict_logits(trainer.fitted, judges))
        if watcher:
            watcher.epoch(number, EpochScore.of(logits[-1], fold.judges.labels) if len(judges) else None)
    return logits


def choose(folds: Sequence[Fold], classes: int, plan: Plan, watcher: Watcher | None) -> Chosen:
    """Let judging rows choose the epoch at which to stop, and fit the temperature to their logits there.

    Of several folds all judging rows decide together. Without any (very small data) the last epoch is taken.
    """
    names = ["choosing"] if len(folds) == 1 else [f"choosing {i + 1}/{len(folds)}" for i in range(len(folds))]
    by_fold = [judge(fold, classes, plan, watcher, name) for fold, name in zip(folds, names, strict=True)]
    labels = np.concatenate([fold.judges.labels for fold in folds])
    by_epoch = [np.concatenate(parts) for parts in zip(*by_fold, strict=True)]
    number = (
        best_epoch([EpochScore.of(logits, labels) for logits in by_epoch], len(labels)) if len(labels) else plan.epochs
    )
    logits = by_epoch[number - 1]
    return Chosen(number, calibration.fit_temperature(logits, labels), logits, labels)


def best_epoch(scores: Sequence[EpochScore], rows: int) -> int:
    """Return the number (from 1) of the epoch to stop at.

    That is the last one, where all rates have fallen to zero, unless another beats it by more than one standard error.
    """
    best = max(scores)
    error = math.sqrt(best.accuracy * (1 - best.accuracy) / rows)
    return scores.index(best) + 1 if best.accuracy - scores[-1].accuracy > error else len(scores)


def fit(rows: Rows, classes: int, plan: Plan, stop_after: int, watcher: Watcher | None) -> Fitted:
    """Train on all rows, with the schedule of `plan.epochs` epochs cut after `stop_after`."""
    return _run(Trainer(rows, classes, plan), stop_after, watcher)


def choose_and_fit(
    rows: Rows, folds: Sequence[Fold], classes: int, plan: Plan, watcher: Watcher | None
) -> tuple[Chosen, Fitted]:
    """`choose`, and `fit` beside it in a second thread, which is right whenever the last epoch is chosen.

    The two share nothing: the result is the same bytes as one after the other. Only dropout would draw from the one
    generator of both; with it they do run one after the other.
    """
    if plan.model.dropout or plan.model.seed_dropout:
        chosen = choose(folds, classes, plan, watcher)
        return chosen, fit(rows, classes, plan, chosen.epochs, watcher)
    trainer = Trainer(rows, classes, plan)
    with ThreadPoolExecutor(1) as pool:
        fitting = pool.submit(_run, trainer, plan.epochs, None)
        try:
            chosen = choose(folds, classes, plan, watcher)
        except BaseException:
            trainer.stopped = True
            raise
        fitted = fitting.result()
    return chosen, fitted if chosen.epochs == plan.epochs else fit(rows, classes, plan, chosen.epochs, watcher)


def _run(trainer: Trainer, epochs: int, watcher: Watcher | None) -> Fitted:
    if watcher:
        watcher.phase("training", epochs * len(trainer.labels))
    for number in range(1, epochs + 1):
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
    return torch.optim.AdamW(groups, lr=config.rate, weight_decay=0.0, fused=True)


def _label_weight(labels: Int64, classes: int, kind: ClassWeight) -> Tensor:
    if kind == "none":
        return torch.ones(classes)
    count = np.bincount(labels, minlength=classes)
    return torch.from_numpy(len(labels) / (classes * np.maximum(count, 1))).float()


def _schedule(step: int, steps: int, warmup: float) -> float:
    """Rise linearly for a share `warmup` of the steps, then fall linearly to zero."""
    rising = max(1.0, warmup * steps)
    return min((step + 1) / rising, (steps - step) / max(1.0, steps - rising), 1.0)
