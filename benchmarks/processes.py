"""Steps of PyTorch shared by the processes of torchrun: what a step takes of each, and what each sends.

    python benchmarks/processes.py DATA/ag_news DATA/imdb

Each folder holds train.csv. A cell trains a fresh model of its rows for some steps, without shards, with 8 of them, and
with these shared by two processes, on a CPU. Told are the least processor milliseconds of a step, as other work on the
machine only adds to them, of one process, and how many bytes it sends to each other one.
"""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Final

import click
import numpy as np
from common import ROOT, about, headline

from textcls.data import read_labelled
from textcls_torch.fit.trainer import Trainer
from textcls_torch.studies.runner import CommandError, last_words, markdown_table
from textcls_training.config.resolve import resolve
from textcls_training.config.settings import from_options
from textcls_training.data.dataset import Dataset
from textcls_training.data.labelled_texts import LabelledTexts
from textcls_training.fit.processes import joined

PACKAGES: Final = ("textcls", "torch", "numpy")
# Mixing layer, texts a step.
CASES: Final = (("lambda", 32), ("lambda", 256), ("gmlp", 32), ("gmlp", 256), ("softmax", 64))
# Shards, processes.
SHARED: Final = ((1, 1), (8, 1), (8, 2))
ROWS: Final = 5000
MAX_TOKENS: Final = 2048
# Steps that are not counted, as they warm up.
WARM: Final = 3


def measured(folder: Path, mixing: str, size: int, shards: int, steps: int) -> dict[str, Any]:
    """Return the figures of some steps, in the process that there is or one of several."""
    from torch import distributed

    rows = read_labelled(folder / "train.csv", ["text"], "label")
    texts, labels = rows.texts[:ROWS], rows.labels[:ROWS]
    given = LabelledTexts(texts=texts, labels=labels)
    names = given.label_names()
    dataset = Dataset.of(given, names, MAX_TOKENS)
    told = {"mixing": mixing, "batch_size": size, "shards": shards, "vectors": "none", "device": "cpu"}
    config = resolve(from_options(told), texts, len(dataset.corpus.token), len(names))
    sent, gather = [0], distributed.all_gather

    def counted(every: Any, own: Any) -> None:
        sent[0] += own.numel() * own.element_size()
        gather(every, own)

    distributed.all_gather = counted  # type: ignore[assignment]
    with joined() as processes:
        trainer = Trainer(dataset, len(names), config)
        batches = list(trainer.batches(1))[: WARM + steps]
        took = []
        for number, text_B in enumerate(batches):
            if number == WARM:
                sent[0] = 0
            start = time.process_time()
            trainer._step(text_B)
            took.append(1e3 * (time.process_time() - start))
    tokens = float(np.mean(dataset.corpus.lengths()))
    return {
        "ms": min(took[WARM:]),
        "mb": sent[0] / len(took[WARM:]) / 1e6,
        "tokens": round(tokens),
        "rank": processes.rank,
    }


def cell(folder: Path, mixing: str, size: int, steps: int) -> dict[str, Any]:
    """Return the figures of a layer and a size of a step, without shards, with them, and shared by processes."""
    found: dict[str, Any] = {"set": folder.name, "mixing": mixing, "size": size}
    for shards, processes in SHARED:
        given = json.dumps([str(folder), mixing, size, shards, steps])
        launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(processes)]
        command = [sys.executable, *(launcher if processes > 1 else []), __file__, "--as-process", given, str(folder)]
        done = subprocess.run(command, capture_output=True, text=True, env=os.environ | {"OMP_NUM_THREADS": "1"})
        if done.returncode:
            raise CommandError(last_words(done.stderr, done.returncode))
        found[f"{shards} x {processes}"] = json.loads(done.stdout.splitlines()[-1])
    return found


def table(report: dict[str, Any]) -> str:
    """Return the report as Markdown."""
    heads = ("set", "tokens a text", "mixing", "texts a step", "without shards", "8 shards", "8 shards, each of two",
             "MB sent")  # fmt: skip
    lines = []
    for one in report["cells"]:
        figures = [one[f"{shards} x {processes}"] for shards, processes in SHARED]
        times = [f"{figure['ms']:.1f}" for figure in figures]
        lines.append(
            [one["set"], str(figures[0]["tokens"]), one["mixing"], str(one["size"]), *times, f"{figures[-1]['mb']:.2f}"]
        )
    what = "Processor milliseconds of a step of one process, the least of some steps."
    return (
        "\n".join(
            ["# Steps shared by processes", "", *markdown_table(heads, lines), "", what, "", headline(report["about"])]
        )
        + "\n"
    )


@click.command(help=__doc__)
@click.argument("data", nargs=-1, required=True, type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("-o", "--output", type=click.Path(path_type=Path), default=ROOT / "benchmarks" / "processes.md")
@click.option("--steps", type=click.IntRange(1), default=15, show_default=True, help="Steps of a cell.")
@click.option("--as-process", hidden=True, help="A cell for one of the processes.")
def main(data: tuple[Path, ...], output: Path, steps: int, as_process: str | None) -> None:
    """Measure all sets."""
    if as_process is not None:
        folder, mixing, size, shards, number = json.loads(as_process)
        found = measured(Path(folder), mixing, size, shards, number)
        if found.pop("rank") == 0:
            print(json.dumps(found))
        return
    report: dict[str, Any] = {"about": about(packages=PACKAGES), "cells": []}
    for folder in data:
        for mixing, size in CASES:
            found = cell(folder, mixing, size, steps)
            click.echo(json.dumps(found))
            report["cells"].append(found)
            output.with_suffix(".json").write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
            output.write_text(table(report), encoding="utf-8")


if __name__ == "__main__":
    main()
