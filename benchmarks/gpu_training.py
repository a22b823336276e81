"""Training on a GPU beside training on the CPU: seconds and accuracy of whole trainings, and where a step's time goes.

    python benchmarks/gpu_training.py DATA/ag_news --work /large/disk
    python benchmarks/gpu_training.py --dry

DATA is a folder with train.csv and test.csv. Trained are its rows, and `--rows` that are made of them
(`scale_rows.py`), by the command as users have it: on the CPU by the compiled trainer, on the GPU by PyTorch and the
kernels. Accuracy is that of the saved file on the test rows. A first training on each side does not count: it compiles.

The steps are those of the trainer on the first rows. Their phases, each waited for, are those of a step that is taken
view by view, with the tables on the device and, as it was before there were such tables, on the CPU. The last columns
are means of an epoch that is left alone: view by view; in one piece for all views; and that piece as a CUDA graph.

A dry run needs no GPU and no DATA: a few rows that come along, the GPU's part by the reference on the CPU, the table on
the device by the kernels in Triton's interpreter, or by their twin where Triton is missing. It gives no times, which
would mean nothing, and compares what both tables have learned.
"""

import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, NamedTuple

import click
import numpy as np
import torch

from common import ROOT, about, headline, load_ours, read, train_ours, write
from runner import CommandError, markdown_table
from scale_rows import held_out_rows, made_rows, write_rows
from textcls.data import Labelled
from textcls_kernels.impl import Impl
from textcls_torch.fit.device import on_gpu
from textcls_torch.fit.recorded import MOST
from textcls_torch.fit.trainer import Trainer
from textcls_torch.models.device_table import DeviceTable
from textcls_torch.models.hashed_embedding import HashedEmbedding
from textcls_training.config.resolve import resolve
from textcls_training.config.settings import Device, TrainConfig
from textcls_training.data.corpus import Corpus
from textcls_training.data.dataset import Dataset
from textcls_training.fit.threads import reproducible

DEMO: Final = ROOT / "textcls" / "demo" / "support_tickets.csv"
PHASES: Final = ("read", "forward", "backward", "move rows", "dense weights")
ON_DEVICE, ON_CPU = "on the device", "on the CPU"
# How a step is taken; in one piece with tables on a device alone.
VIEW_BY_VIEW, IN_ONE_PIECE, RECORDED = WAYS = ("view by view", "in one piece", "recorded")
# What a dry run trains; the table of the steps, in the interpreter, has fewer.
DRY_ROWS, DRY_STEP_ROWS, DRY_TOKENS = 120, 6, 6
# Of the rows that steps are timed on; so many are waited for phase by phase, after as many that are not counted.
STEP_ROWS, STEPS = 20_000, 50


class Run(NamedTuple):
    """What is trained and timed: the options of both sides, and how much of it."""

    dry: bool
    sides: dict[str, tuple[str, ...]]
    device: Device
    step_rows: int
    steps: int
    tokens: int
    batch_size: int | None


REAL: Final = Run(False, {"CPU": ("--device", "cpu"), "GPU": ("--device", "cuda")}, "cuda", STEP_ROWS, STEPS, 256, None)
DRY: Final = Run(
    True,
    {"CPU": ("--epochs", "1"), "GPU, by the reference on the CPU": ("--epochs", "1", "--impl", "reference")},
    "cpu",
    DRY_STEP_ROWS,
    1,
    DRY_TOKENS,
    3,
)


@dataclass
class Clock:
    """Adds up the seconds of phases, and waits for the device at both ends of each."""

    device: torch.device

    def __post_init__(self) -> None:
        self.seconds = dict.fromkeys(PHASES, 0.0)

    def _wait(self) -> float:
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)
        return time.perf_counter()

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        start = self._wait()
        yield
        self.seconds[name] += self._wait() - start


# Whole trainings


def whole(name: str, data: Path, test: Labelled, run: Run, place: Path) -> list[dict[str, Any]]:
    """Train on a file on each side, and return what came of it."""
    found = []
    for side, options in run.sides.items():
        model = place / "model.onnx"
        try:
            seconds = train_ours(data, model, options).seconds
        except CommandError as error:
            found.append({"rows": name, "side": side, "failed": str(error)})
            continue
        labels = load_ours(model).predict(test.texts)
        accuracy = 100 * float(np.mean(np.array(labels) == np.array(test.labels)))
        found.append({"rows": name, "side": side, "accuracy": accuracy, "seconds": None if run.dry else seconds})
    return found


# Steps


def trainer_of(rows: Labelled, run: Run) -> Trainer:
    """Return a fresh trainer of the first rows, as the command has it."""
    texts, labels = rows.texts[: run.step_rows], rows.labels[: run.step_rows]
    names = sorted(set(labels))
    dataset = Dataset(Corpus.of(texts, run.tokens), np.array([names.index(label) for label in labels], np.int64))
    config = TrainConfig(epochs=2, device=run.device, impl="reference")
    tokens = len(dataset.corpus.token)
    resolved = resolve(config, texts, tokens, len(names), impl="reference", on_gpu=on_gpu(run.device))
    if run.batch_size is not None:
        resolved = replace(resolved, optim=replace(resolved.optim, batch_size=run.batch_size))
    return Trainer(dataset, len(names), resolved)


def put_tables(trainer: Trainer, where: str, run: Run) -> None:
    """Exchange the embeddings of a fresh trainer for fresh ones whose tables lie where it is said."""
    torch.manual_seed(0)
    optim, device = trainer.config.optim, trainer.device if where == ON_DEVICE else None
    for learner in trainer.learners:
        if not isinstance(learner.embedding, HashedEmbedding):
            raise TypeError("all views have tables here")
        space, dim = learner.embedding.space, trainer.config.model.dim
        learner.embedding = HashedEmbedding(space, dim, optim.table_std, optim.table_accumulator, device)
        if isinstance(learner.embedding.table, DeviceTable):
            learner.embedding.table.impl = _impl(run)
    trainer.device_step, trainer.encoded = None, trainer.encode(trainer.dataset.corpus)


def in_one_piece(trainer: Trainer, run: Run, *, recorded: bool) -> None:
    """Let a trainer whose tables are on a device take its steps in one piece."""
    trainer.device_step = trainer.whole_step()
    if trainer.device_step is None:
        raise TypeError("all tables are on the device here")
    trainer.device_step.table.impl = _impl(run)
    trainer.device_step.recorded.after, trainer.device_step.recorded.most = 1, MOST if recorded else 0


def _impl(run: Run) -> Impl:
    """The kernels, in a dry run in the interpreter, where Triton is there."""
    return "triton" if run.dry and find_spec("triton") is not None else "auto"


def waited_step(trainer: Trainer, text_B: Any, clock: Clock) -> None:
    """Take a step as `Trainer` does, phase by phase."""
    with clock.phase("read"):
        views = trainer._read(text_B)
    with clock.phase("forward"):
        loss = trainer._loss(text_B, views)
    with clock.phase("backward"):
        loss.backward()  # type: ignore[no-untyped-call]
    with clock.phase("move rows"):
        for learner, given in zip(trainer.learners, views, strict=True):
            learner.update(given, trainer.config.optim.table_rate)
    with clock.phase("dense weights"):
        for group in trainer.dense:
            group.step(1.0)


def steps(rows: Labelled, where: str, run: Run) -> tuple[dict[str, Any], list[Any]]:
    """Return the milliseconds of each phase and kind of a step, and the rows of the tables after all."""
    with reproducible(0):
        trainer = trainer_of(rows, run)
        put_tables(trainer, where, run)
        for learner in trainer.learners:
            learner.classifier.train()
        batches = [*trainer.batches(1)]
        _take(trainer, batches[: run.steps], Clock(trainer.device))
        clock = Clock(trainer.device)
        counted = _take(trainer, batches[run.steps : 2 * run.steps], clock)
        found = {name: seconds / counted for name, seconds in clock.seconds.items()}
        for way in WAYS:
            if way != VIEW_BY_VIEW and where == ON_DEVICE:
                in_one_piece(trainer, run, recorded=way == RECORDED)
            for _ in range(2):  # meets all shapes, which compiles what they run, then records them
                _epoch(trainer)
            found[way] = _seconds(partial(_epoch, trainer), trainer.device) / len(batches)
        tables = [array.copy() for learner in trainer.learners for array in learner.embedding.arrays().values()]
    told = {name: None if run.dry else 1000 * seconds for name, seconds in found.items()}
    if where == ON_CPU:
        told |= {IN_ONE_PIECE: None, RECORDED: None}
    return {"table": where, **told}, tables


def _epoch(trainer: Trainer) -> None:
    """Train for an epoch as the second and last one, whatever there was before."""
    trainer.step_number = trainer.steps_an_epoch
    trainer.train_epoch(2)


def _take(trainer: Trainer, batches: Sequence[Any], clock: Clock) -> int:
    for text_B in batches:
        waited_step(trainer, text_B, clock)
    return max(1, len(batches))


def _seconds(work: Callable[[], object], device: torch.device) -> float:
    clock = Clock(device)
    with clock.phase("read"):
        work()
    return clock.seconds["read"]


# The report


def markdown(report: dict[str, Any]) -> str:
    """Return the report as Markdown."""
    lines = [headline(report["about"]), "", *report["notes"], ""]
    lines += [*_table_of_wholes(report["whole"]), "", "Milliseconds of a step:", ""]
    names = ("table", *PHASES, *WAYS)
    lines += markdown_table(
        names, [[row["table"], *(_number(row[name]) for name in names[1:])] for row in report["steps"]]
    )
    lines += ["", f"Largest difference between the rows of both tables: {report['difference']:.1e}."]
    return "\n".join(lines) + "\n"


def _table_of_wholes(found: Sequence[dict[str, Any]]) -> list[str]:
    cells = [
        [each["rows"], each["side"], "failed", each["failed"]]
        if "failed" in each
        else [each["rows"], each["side"], f"{each['accuracy']:.2f}", _number(each["seconds"])]
        for each in found
    ]
    return markdown_table(("rows", "where", "accuracy", "seconds"), cells)


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3g}"


def measured(real: Labelled, test: Labelled, made: int, run: Run, place: Path) -> dict[str, Any]:
    """Train and time everything."""
    rows, pieces, held_out = place / "rows.csv", place / "made.csv", place / "test.csv"
    write(rows, real)
    write_rows(pieces, made_rows(real.texts, real.labels, made, seed=0))
    write_rows(held_out, held_out_rows(test.texts, test.labels, seed=1))
    if not run.dry:
        whole("compiling", rows, test, run, place)
    found = whole(f"{len(real.texts):,} real", rows, test, run, place)
    found += whole(f"{made:,} made", pieces, read(held_out), run, place)
    click.echo("\n".join(_table_of_wholes(found)))  # should the steps fail, this is not lost
    (device, learned), (cpu, wanted) = (steps(real, where, run) for where in (ON_DEVICE, ON_CPU))
    difference = max(float(np.abs(ours - theirs).max()) for ours, theirs in zip(learned, wanted, strict=True))
    return {"about": about(), "whole": found, "steps": [device, cpu], "difference": difference}


def notes_of(run: Run) -> list[str]:
    """Return what a reader has to know of the run."""
    if not run.dry:
        return [f"GPU: {torch.cuda.get_device_name()}."]
    by = "their twin: Triton is not installed"
    if find_spec("triton") is not None:
        by = "the kernels in Triton's interpreter"
    return [f"A dry run, without a GPU and without times. The table on the device: by {by}."]


@click.command(help=__doc__)
@click.argument("data", required=False, type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--rows", type=click.IntRange(1), default=1_000_000, show_default=True, help="How many rows are made.")
@click.option("--work", type=click.Path(exists=True, file_okay=False, path_type=Path), help="Where made rows lie.")
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Markdown; JSON beside it.  [default: none]")
@click.option("--dry", is_flag=True, help="Without a GPU and without times.")
def main(data: Path | None, rows: int, work: Path | None, output: Path | None, dry: bool) -> None:
    """Train and time."""
    if dry:
        if not torch.cuda.is_available():
            os.environ["TRITON_INTERPRET"] = "1"  # before Triton is imported
        given, run, rows = read(DEMO), DRY, DRY_ROWS
        real, test = (
            Labelled(given.texts[first : first + rows], given.labels[first : first + rows]) for first in (0, rows)
        )
    elif data is None:
        raise click.UsageError("DATA is missing: a folder with train.csv and test.csv, or --dry.")
    elif not torch.cuda.is_available():
        raise click.UsageError("PyTorch finds no GPU here; --dry runs without one.")
    else:
        real, test, run = read(data / "train.csv"), read(data / "test.csv"), REAL
    with tempfile.TemporaryDirectory(dir=work) as folder:
        report = measured(real, test, rows, run, Path(folder))
    report["notes"] = notes_of(run)
    if output is not None:
        output.with_suffix(".json").write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
        output.write_text(markdown(report), encoding="utf-8")
    click.echo(markdown(report))
    sys.exit(1 if any("failed" in each for each in report["whole"]) else 0)


if __name__ == "__main__":
    main()
