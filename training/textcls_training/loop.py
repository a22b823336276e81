"""The training loop: judge on rows held out, choose the epoch and the temperature there, then fit on all rows.

Same data, seed and configuration give the same bytes at any number of threads: sums over many elements and the
gradient of a layer norm depend on how many threads share them, so each training keeps to one.
"""

import math
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import torch

from textcls_training import calibration
from textcls_training.arrays import Float32, Int64
from textcls_training.calibration import Calibration
from textcls_training.config import Plan
from textcls_training.rows import Fold, Rows
from textcls_training.trainer import Trainer
from textcls_training.views import Fitted
from textcls_training.watching import EpochScore, Stop, Watcher


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
