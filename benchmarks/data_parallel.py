"""Steps shared by workers: what a step takes and moves with one, two and four, and what shards and larger steps cost.

    python benchmarks/data_parallel.py DATA/ag_news
    python benchmarks/data_parallel.py DATA/ag_news --made 1000000 --batch-size 32 --no-accuracy

DATA/ag_news holds train.csv. Writes benchmarks/data_parallel.json and .md, or of --made rows, short ones made of the
real, benchmarks/data_parallel_made.json and .md. Each run takes the same steps from the same start, so that all with
shards must end in the same bytes. Starting workers is told apart. Ray makes its workers nice, by 15, and here it does
not.

Accuracy is that of rows of train.csv that are held out, of fits by other seeds; no test file is asked.
"""

import hashlib
import json
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import product
from pathlib import Path
from statistics import mean, stdev
from typing import Any, Final, NamedTuple

import click
import numpy as np
from cluster import NICENESS
from common import ROOT, about, headline
from scale_rows import made_rows

from textcls.data import read_labelled
from textcls_training.config.resolve import resolve
from textcls_training.config.settings import from_options
from textcls_training.data.dataset import Dataset
from textcls_training.data.labelled_texts import LabelledTexts
from textcls_training.fit.compiled.trainer import STEPS_AT_ONCE, CompiledTrainer

OUTPUT: Final = ROOT / "benchmarks" / "data_parallel"
PACKAGES: Final = ("textcls", "numba", "numpy", "ray")
HELD_OUT: Final = 10


class Rows(NamedTuple):
    """Rows as training counts them, and their texts."""

    dataset: Dataset
    texts: Sequence[str]
    labels: int


def rows_of(folder: Path, most: int, made: int) -> Rows:
    """Read the first rows of train.csv; if so many are to be made, make them of these."""
    found = read_labelled(folder / "train.csv", ["text"], "label")
    texts, labels = found.texts[:most], found.labels[:most]
    if made:
        texts, labels = zip(*made_rows(texts, labels, made, 0), strict=True)
    given = LabelledTexts(texts=texts, labels=labels)
    return Rows(Dataset.of(given, given.label_names(), 2048), texts, len(given.label_names()))


def trainer_of(rows: Rows, **told: Any) -> CompiledTrainer:
    """Return a fresh fit of some rows with some options."""
    config = from_options({"vectors": "none", **told})
    found = resolve(config, rows.texts, len(rows.dataset.corpus.token), rows.labels)
    return CompiledTrainer(rows.dataset, rows.labels, replace(found, impl="compiled"))


@contextmanager
def cluster(engines: Sequence[str]) -> Iterator[None]:
    """Have a cluster with a place for everybody, where one is asked for."""
    if "ray" not in engines:
        yield
        return
    os.environ |= NICENESS
    import ray

    # One of its own, also beside a cluster that runs on this machine.
    ray.init(address="local", num_cpus=8, log_to_driver=False, logging_level="ERROR", include_dashboard=False)
    yield
    ray.shutdown()


def measure(rows: Rows, steps: int, **told: Any) -> dict[str, Any]:
    """Take some steps, after as many that are not counted."""
    trainer = trainer_of(rows, **told)
    batches = list(trainer.batches(1))[: 2 * steps]
    begin = time.perf_counter()
    with trainer.at_work():
        started = time.perf_counter() - begin
        _take(trainer, batches[:steps])
        before = _moved(trainer)
        wall, cpu = time.perf_counter(), time.process_time()
        _take(trainer, batches[steps:])
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        sent, received = ((now - was) / steps / 1e6 for now, was in zip(_moved(trainer), before, strict=True))
    digest = hashlib.sha256(b"".join(array.tobytes() for array in trainer.arrays().values()))
    return {
        **told,
        "start_seconds": round(started, 2),
        "ms_per_step": round(wall / steps * 1e3, 3),
        "cpu_ms_per_step": round(cpu / steps * 1e3, 3),
        "mb_sent_per_step": round(sent, 3),
        "mb_received_per_step": round(received, 3),
        "sha256": digest.hexdigest(),
    }


def _take(trainer: CompiledTrainer, batches: Sequence[Any]) -> None:
    for first in range(0, len(batches), STEPS_AT_ONCE):
        trainer._train(batches[first : first + STEPS_AT_ONCE])


def _moved(trainer: CompiledTrainer) -> tuple[int, int]:
    counts = [(getattr(each, "sent", 0), getattr(each, "received", 0)) for each in trainer._workers]
    return sum(sent for sent, _ in counts), sum(received for _, received in counts)


def accuracy(rows: Rows, seed: int, **told: Any) -> float:
    """Return the share of right answers to held-out rows of a fit on the others; views count alike."""
    held = np.arange(len(rows.texts)) % HELD_OUT == seed % HELD_OUT
    split = rows.dataset.split(held)
    trainer = trainer_of(rows._replace(dataset=split.train), seed=seed, **told)
    trainer.train(trainer.config.epochs)
    logits_VRC = trainer.predict(trainer.encode(split.valid.corpus))
    return float((logits_VRC.sum(0).argmax(1) == split.valid.labels).mean())


def time_table(runs: list[dict[str, Any]]) -> list[str]:
    """Return the lines of a table with a row for each size, engine and number of workers."""
    lines = [
        "| texts a step | shards | workers | ms a step | rows/s | CPU ms of the trainer | MB to workers | MB from them "
        "| start, s |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    cells: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for run in runs:
        cells.setdefault((run["batch_size"], run["shards"], run["engine"], run.get("workers", 1)), []).append(run)
    for (size, shards, engine, workers), found in cells.items():
        times = [run["ms_per_step"] for run in found]
        error = f" ± {stdev(times) / len(times) ** 0.5:.1f}" if len(times) > 1 else ""
        cpu, sent, received, start = (
            mean(run[name] for run in found)
            for name in ("cpu_ms_per_step", "mb_sent_per_step", "mb_received_per_step", "start_seconds")
        )
        moved = f"{sent:.2f} | {received:.2f} | {start:.1f}" if engine == "ray" else " | | "
        who = f"{workers}, {'threads' if engine == 'local' else 'Ray'}" if shards > 1 else "none"
        pace = f"{size / mean(times) * 1e3:,.0f}"
        lines.append(f"| {size} | {shards} | {who} | {mean(times):.1f}{error} | {pace} | {cpu:.1f} | {moved} |")
    return lines


def accuracy_table(found: dict[str, list[float]]) -> list[str]:
    """Return the lines of a table: each choice, and its difference to the first."""
    first = next(iter(found.values()))
    lines = ["| | accuracy | difference to the first |", "|---|---|---|"]
    for name, scores in found.items():
        gaps = [100 * (one - other) for one, other in zip(scores, first, strict=True)]
        error = stdev(gaps) / len(gaps) ** 0.5 if len(gaps) > 1 else 0.0
        lines.append(f"| {name} | {100 * mean(scores):.2f} | {mean(gaps):+.2f} ± {error:.2f} |")
    return lines


@click.command()
@click.argument("data", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--rows", "most", type=int, default=20_000, show_default=True, help="Of train.csv.")
@click.option("--made", type=int, default=0, help="Make so many short rows of them.")
@click.option("--batch-size", "sizes", multiple=True, type=int, default=(32, 256, 1024), show_default=True)
@click.option("--shards", type=int, default=8, show_default=True)
@click.option("--workers", multiple=True, type=int, default=(1, 2, 4), show_default=True)
@click.option("--engine", "engines", multiple=True, default=("local", "ray"), show_default=True)
@click.option("--steps", type=int, default=8, show_default=True, help="Counted, after as many to warm up.")
@click.option("--repeats", type=int, default=3, show_default=True)
@click.option("--seeds", type=int, default=5, show_default=True, help="Fits for each accuracy.")
@click.option("--accuracy/--no-accuracy", "with_accuracy", default=True)
def main(
    data: Path,
    most: int,
    made: int,
    sizes: tuple[int, ...],
    shards: int,
    workers: tuple[int, ...],
    engines: tuple[str, ...],
    steps: int,
    repeats: int,
    seeds: int,
    with_accuracy: bool,
) -> None:
    """Measure steps of each size by each number of workers, and the accuracy of fits with and without shards."""
    rows = rows_of(data, most, made)
    runs: list[dict[str, Any]] = []
    shared = [{"shards": shards, "engine": name, "workers": number} for name in engines for number in workers]
    with cluster(engines):
        for size, _, told in product(sizes, range(repeats), [{"shards": 1, "engine": "local"}, *shared]):
            runs.append(measure(rows, steps, batch_size=size, **told))
            click.echo(json.dumps(runs[-1]))
    kinds = {(run["batch_size"], run["shards"]): run["sha256"] for run in runs}
    same = all(kinds[run["batch_size"], run["shards"]] == run["sha256"] for run in runs)
    scores: dict[str, list[float]] = {}
    if with_accuracy:
        choices: dict[str, dict[str, Any]] = {"the default": {}, f"{shards} shards": {"shards": shards}}
        choices |= {f"{size} texts a step": {"batch_size": size} for size in sizes if size != sizes[0]}
        for name, told in choices.items():
            scores[name] = [accuracy(rows, seed, **told) for seed in range(seeds)]
            click.echo(f"{name} {scores[name]}")
    facts = about(packages=PACKAGES)
    output = OUTPUT.with_name(f"{OUTPUT.name}_made") if made else OUTPUT
    content = {"about": facts, "runs": runs, "accuracy": scores}
    output.with_suffix(".json").write_text(json.dumps(content, indent=1) + "\n")
    of = f"{len(rows.texts):,} short rows made of {data.name}" if made else f"{len(rows.texts):,} rows of {data.name}"
    tokens = len(rows.dataset.corpus.token) / len(rows.texts)
    verdict = "All with as many shards end in the same bytes." if same else "THE BYTES DIFFER."
    what = f"{of}, {tokens:.0f} tokens each; mean ± standard error of {repeats} runs of {steps} steps. {verdict}"
    lines = ["# Steps shared by workers", "", *time_table(runs), "", what, ""]
    if scores:
        lines += [*accuracy_table(scores), "", f"Held-out rows of train.csv, {seeds} seeds; paired differences.", ""]
    output.with_suffix(".md").write_text("\n".join([*lines, headline(facts), ""]))
    click.echo("\n".join(lines))


if __name__ == "__main__":
    main()
