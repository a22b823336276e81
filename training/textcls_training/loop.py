"""The training loop: judge on rows held out, choose the epoch and the temperature there, then fit on all rows.

Same data, seed and configuration give the same bytes at any number of threads: sums over many elements and the
gradient of a layer norm depend on how many threads share them, so each training keeps to one.
"""

import math
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Lock
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from textcls.errors import ConfigError
from textcls.features import FeatureConfig
from textcls_training import calibration, ops
from textcls_training.arrays import Bools, Float32, Int64
from textcls_training.calibration import Calibration
from textcls_training.choices import ClassWeight
from textcls_training.config import OptimConfig, Plan, resolve_device
from textcls_training.embedding import make_embedding
from textcls_training.encoding import Corpus, epoch_batches, plain_batches
from textcls_training.model import TextClassifier
from textcls_training.optim import Group
from textcls_training.views import Fitted

# Fresh weights come from PyTorch's one generator: two threads must not draw at once.
_DRAWING = Lock()


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


class Rows(NamedTuple):
    """Texts with the number of each one's label, and which of their tokens people have marked as its reasons.

    `marked` is one flag a token of `corpus`, or None where nobody has marked any.
    """

    corpus: Corpus
    labels: Int64
    marked: Bools | None = None

    def select(self, which: Int64) -> "Rows":
        """Return the rows `which`."""
        marked = None if self.marked is None else self.marked[self.corpus.places(which)]
        return Rows(self.corpus.select(which), self.labels[which], marked)

    def split(self, judging: Bools) -> "Fold":
        """Return the rows `judging` as judges, and the others to learn from."""
        return Fold(self.select(np.flatnonzero(~judging)), self.select(np.flatnonzero(judging)))

    def marks(self, text_B: Int64, mask_BT: Tensor) -> Tensor | None:
        """Return which tokens of a padded batch are marked [B, T]; None if none are."""
        marked = None if self.marked is None else self.marked[self.corpus.places(text_B)]
        if marked is None or not marked.any():
            return None
        marked_BT = torch.zeros_like(mask_BT)
        marked_BT[mask_BT] = torch.from_numpy(marked)
        return marked_BT


class Fold(NamedTuple):
    """Rows to learn from, and rows that judge."""

    train: Rows
    judges: Rows


@dataclass(frozen=True, slots=True)
class Chosen:
    """What the judging rows decided: how many epochs, and the calibration of these logits [rows, labels] to labels.

    `interrupted` says that nobody has chosen: somebody has ended the training, and it had come so far.
    """

    epochs: int
    calibration: Calibration
    logits: Float32
    labels: Int64
    interrupted: bool = False


@dataclass(slots=True)
class Stop:
    """How somebody ends a training early and keeps what has been learned.

    Attributes:
        asked: set by whoever wants it to end; every step looks here.
        kept: the training that will be kept, and its rows: that of the first judging rows, once it has judged an
            epoch. Before, nothing is worth keeping, and a training can only be broken off.
    """

    asked: bool = False
    kept: "tuple[Trainer, Fold] | None" = None


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


def judge(
    fold: Fold,
    classes: int,
    plan: Plan,
    watcher: Watcher | None,
    name: str,
    stop: Stop | None = None,
    *,
    keep: bool = False,
) -> list[Float32]:
    """Train on a fold; return the logits [V, rows, C] of its judging rows after each epoch, of as many as there were.

    With `keep`, this is the training to keep if somebody asks to stop.
    """
    stop = stop or Stop()
    trainer = Trainer(fold.train, classes, plan, stop)
    judges = trainer.encode(fold.judges.corpus)
    if watcher:
        watcher.phase(name, plan.epochs * len(fold.train.labels))
    logits = []
    for number in range(1, plan.epochs + 1):
        trainer.train_epoch(number, watcher)
        if stop.asked:
            break
        logits.append(trainer.predict(judges))
        if keep and len(fold.judges.labels):
            stop.kept = trainer, fold
        if watcher:
            labels = fold.judges.labels
            watcher.epoch(number, EpochScore.of(logits[-1].mean(0), labels) if len(labels) else None)
    return logits


def choose(folds: Sequence[Fold], by_fold: Sequence[Sequence[Float32]]) -> Chosen:
    """Let judging rows choose the epoch at which to stop, and calibrate their logits there.

    Of several folds all judging rows decide together. Without any (very small data) the last epoch is taken.

    Args:
        folds: the rows.
        by_fold: of each fold what `judge` has returned.
    """
    labels = np.concatenate([fold.judges.labels for fold in folds])
    by_epoch = [np.concatenate(parts, axis=1) for parts in zip(*by_fold, strict=True)]
    fits = [calibration.fit(logits, labels) for logits in by_epoch]
    combined = [found.combine(logits) for found, logits in zip(fits, by_epoch, strict=True)]
    scores = [EpochScore.of(logits, labels) for logits in combined] if len(labels) else []
    number = best_epoch(scores, len(labels)) if scores else len(by_epoch)
    return Chosen(number, fits[number - 1], combined[number - 1], labels)


def best_epoch(scores: Sequence[EpochScore], rows: int) -> int:
    """Return the number (from 1) of the epoch to stop at.

    That is the last one, where all rates have fallen to zero, unless another beats it by more than one standard error.
    """
    best = max(scores)
    error = math.sqrt(best.accuracy * (1 - best.accuracy) / rows)
    return scores.index(best) + 1 if best.accuracy - scores[-1].accuracy > error else len(scores)


def fit(
    rows: Rows, classes: int, plan: Plan, stop_after: int, watcher: Watcher | None, stop: Stop | None = None
) -> Trainer:
    """Train on all rows, with the schedule of `plan.epochs` epochs cut after `stop_after`."""
    return _run(Trainer(rows, classes, plan, stop), stop_after, watcher)


def choose_and_fit(
    rows: Rows,
    folds: Sequence[Fold],
    classes: int,
    plan: Plan,
    watcher: Watcher | None,
    stop: Stop | None = None,
) -> tuple[Chosen, Fitted]:
    """Judge the folds and `choose`; beside it, in a second thread, fit on all rows, and judge every other fold.

    Trainings share nothing, so the result is the same bytes as one after the other. That fit is the right one whenever
    the last epoch is chosen; else, or if dropout would draw from the one generator of both, it comes afterwards.

    If `stop` is asked for meanwhile, the model is the one of the first fold as it stands, judged and calibrated once
    more: what is said of it is then measured on itself, and on rows that it has not learned from.
    """
    stop = stop or Stop()
    names = ["choosing"] if len(folds) == 1 else [f"choosing {i + 1}/{len(folds)}" for i in range(len(folds))]
    alone = bool(plan.model.dropout or plan.model.seed_dropout)
    here, there = range(0, len(folds), 1 if alone else 2), range(1, len(folds), 2)
    trainer = Trainer(rows, classes, plan, stop)
    with ThreadPoolExecutor(1) as pool:
        working = [] if alone else [pool.submit(_run, trainer, plan.epochs, None)]
        judging = {} if alone else {i: pool.submit(judge, folds[i], classes, plan, None, names[i], stop) for i in there}
        try:
            by_fold = {i: judge(folds[i], classes, plan, watcher, names[i], stop, keep=i == 0) for i in here}
            by_fold |= {i: future.result() for i, future in judging.items()}
        except BaseException:
            trainer.stopped = stop.asked = True
            for future in judging.values():
                future.cancel()
            raise
        for fitting in working:
            fitting.result()
    if not stop.asked:
        chosen = choose(folds, [by_fold[i] for i in range(len(folds))])
        if alone or chosen.epochs != plan.epochs:
            trainer = fit(rows, classes, plan, chosen.epochs, watcher, stop)
    if stop.asked:
        trainer, chosen = _as_it_stands(stop)
    stop.kept = None  # From here on it would only take memory.
    return chosen, trainer.fitted(chosen.calibration.shares)


def _as_it_stands(stop: Stop) -> tuple[Trainer, Chosen]:
    if stop.kept is None:  # asked for by other means than `kept` allows
        raise KeyboardInterrupt
    trainer, fold = stop.kept
    labels = fold.judges.labels
    logits = trainer.predict(trainer.encode(fold.judges.corpus))
    found = calibration.fit(logits, labels)
    return trainer, Chosen(trainer.epochs, found, found.combine(logits), labels, interrupted=True)


def _run(trainer: Trainer, epochs: int, watcher: Watcher | None) -> Trainer:
    if watcher:
        watcher.phase("training", epochs * len(trainer.rows.labels))
    for number in range(1, epochs + 1):
        trainer.train_epoch(number, watcher)
        if trainer.stop.asked:
            break
        if watcher:
            watcher.epoch(number, None)
    return trainer


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
