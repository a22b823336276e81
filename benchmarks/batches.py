"""Larger batches: what accuracy is left of that of the usual ones, with which rates.

    python benchmarks/batches.py DATA/ag_news DATA/banking77 --rows 10000 --several DATA/goemotions_multi

Each DATA is a folder with train.csv; `--several` is one whose cells hold labels with ";" between them. `--rows` adds so
many rows of the first set as a set of its own, `--made` so many short ones made of it (`scale_rows.py`). On a GPU a
step of few texts is launches more than sums, so there larger batches are the default. What they learn is the same on
any device; here the compiled trainer learns. Each choice is fitted on four fifths of train.csv and asked the others, as
many times as there are seeds, each with other rows held out; views count alike. No test file is asked. Written are
benchmarks/batches.json and .md; a second run goes on where the first one stopped, if it measures the same code.
"""

import json
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from statistics import mean, stdev
from typing import Any, Final, NamedTuple

import click
import numpy as np
from sklearn.metrics import average_precision_score

from common import ROOT, about, headline
from scale_rows import held_out_rows, made_rows
from textcls.data import read_labelled
from textcls_training.config.resolve import (
    LARGE_TABLE_POWER,
    LARGE_WARMUP,
    LEAST_GPU_STEPS,
    LEAST_GPU_STEPS_OF_SEVERAL,
    ResolvedConfig,
    gpu_batch_size,
    resolve,
    with_head_decay,
    with_large_batch,
)
from textcls_training.config.settings import TrainConfig
from textcls_training.data.dataset import Dataset, Split
from textcls_training.data.labelled_texts import LabelledTexts
from textcls_training.fit.compiled.trainer import CompiledTrainer

OUTPUT: Final = ROOT / "benchmarks" / "batches"
PACKAGES: Final = ("textcls", "numba", "numpy")
SEPARATOR: Final = ";"
PARTS: Final = 5
# More than a GPU has, which these runs are the reason for.
MOST_TEXTS: Final = 1024


class Choice(NamedTuple):
    """How steps are larger.

    Attributes:
        steps: how many are left, as of `gpu_batch_size`.
        table: by which power of the growth of the batch the rate of the table grows; that of attention and head by 1/2.
        warmup: share of the steps in which rates rise.
    """

    steps: int
    table: float
    warmup: float

    def __str__(self) -> str:
        return f"{self.steps} steps, power {self.table}, {self.warmup:.0%}"


CHOICES: Final = (
    Choice(128, 0.125, 0.1),
    Choice(256, 0.125, 0.1),
    Choice(256, 0.25, 0.1),
    Choice(128, 0.25, 0.1),
    Choice(128, 0.0, 0.1),
    Choice(128, 0.5, 0.02),
    Choice(64, 0.25, 0.1),
    Choice(32, 0.0, 0.02),
    Choice(32, 0.5, 0.02),
)
# What a GPU has, of one label a text and of several.
RULES: Final = tuple(
    str(Choice(steps, LARGE_TABLE_POWER, LARGE_WARMUP)) for steps in (LEAST_GPU_STEPS, LEAST_GPU_STEPS_OF_SEVERAL)
)
USUAL: Final = "usual"


class Rows(NamedTuple):
    """Rows of a set, their texts, and how many labels there are."""

    dataset: Dataset
    texts: Sequence[str]
    labels: int


def rows_of(folder: Path, several: bool) -> Rows:
    """Read and count the rows of train.csv."""
    found = read_labelled(folder / "train.csv", ["text"], "label")
    given = LabelledTexts(texts=found.texts, labels=found.labels)
    if several:
        sets = [dict.fromkeys(cell.split(SEPARATOR), 1.0) for cell in found.labels]
        given = LabelledTexts(texts=found.texts, label_sets=sets)
    names = given.label_names()
    return Rows(Dataset.of(given, names, TrainConfig().max_tokens), found.texts, len(names))


def split_of(rows: Rows, seed: int, most: int | None) -> Split:
    """Return rows to learn from, `most` of them, and a fifth to be asked."""
    order = np.random.default_rng(0).permutation(len(rows.dataset.labels))
    held = np.zeros(len(order), bool)
    held[order[seed % PARTS :: PARTS]] = True
    train = np.random.default_rng(seed).permutation(np.flatnonzero(~held))[:most]
    return Split(rows.dataset.select(np.sort(train)), rows.dataset.select(np.flatnonzero(held)))


def made_of(folder: Path, number: int, seed: int) -> tuple[Rows, Split]:
    """Make short rows of four fifths of train.csv to learn from, and shorten the others to be asked."""
    found = read_labelled(folder / "train.csv", ["text"], "label")
    held = np.random.default_rng(0).permutation(len(found.texts)) % PARTS == seed % PARTS
    taught, asked = (
        [(text, label) for text, label, there in zip(found.texts, found.labels, held, strict=True) if there == which]
        for which in (False, True)
    )
    pairs = [made_rows(*zip(*taught, strict=True), number, seed), held_out_rows(*zip(*asked, strict=True), seed)]
    given = [LabelledTexts(texts=texts, labels=labels) for texts, labels in (zip(*each, strict=True) for each in pairs)]
    names = given[0].label_names()
    train, valid = (Dataset.of(each, names, TrainConfig().max_tokens) for each in given)
    return Rows(train, given[0].texts, len(names)), Split(train, valid)


def chosen(rows: Rows, train: Dataset, seed: int, choice: Choice | None) -> ResolvedConfig:
    """Return the training of some rows with the batch and the rates of a choice; the usual one for None."""
    config = TrainConfig(vectors="none", seed=seed, device="cpu")
    texts, tokens = rows.texts[: len(train.labels)], len(train.corpus.token)
    label_rows = float(np.median(train.label_mass(rows.labels))) if train.several else None
    usual = resolve(config, texts, tokens, rows.labels, label_rows=label_rows, impl="compiled")
    if choice is None:
        return usual
    read = usual.epochs * len(texts)
    size = gpu_batch_size(read, tokens / len(texts), usual.optim.batch_size, choice.steps, MOST_TEXTS)
    if size == usual.optim.batch_size:
        return usual
    optim = with_large_batch(usual.optim, size, choice.table, choice.warmup)
    few = usual.epochs <= 2 and not train.several
    return replace(usual, optim=with_head_decay(optim, read) if few else optim)


def measure(rows: Rows, split: Split, config: ResolvedConfig) -> dict[str, Any]:
    """Fit once and ask the held-out rows; several labels have the mean of their average precision."""
    trainer = CompiledTrainer(split.train, rows.labels, config)
    trainer.train(config.epochs)
    logits_RC = trainer.predict(trainer.encode(split.valid.corpus)).sum(0)
    if split.valid.sets is None:
        score = float((logits_RC.argmax(1) == split.valid.labels).mean())
    else:
        score = float(average_precision_score(split.valid.sets.gold(), logits_RC, average="macro"))
    return {
        "score": 100 * score,
        "batch": config.optim.batch_size,
        "steps": trainer.steps,
        "rows": len(split.train.labels),
        "epochs": config.epochs,
    }


def runs(
    name: str, parts: Callable[[int], tuple[Rows, Split]], seeds: int, done: Sequence[dict[str, Any]]
) -> Iterator[dict[str, Any]]:
    """Yield what is not yet measured of a set; `parts` gives its rows and their split by the seed."""
    known = {(run["set"], run["choice"], run["seed"]) for run in done}
    wanted = {USUAL: None} | {str(choice): choice for choice in CHOICES}
    for seed in range(seeds):
        left = {text: choice for text, choice in wanted.items() if (name, text, seed) not in known}
        if not left:
            continue
        rows, split = parts(seed)
        for text, choice in left.items():
            config = chosen(rows, split.train, seed, choice)
            yield {"set": name, "choice": text, "seed": seed, **measure(rows, split, config)}


def tables(found: Sequence[dict[str, Any]], several: Container[str]) -> list[str]:
    """Return the lines of a table of the sets, and of the differences to the usual batch."""
    sets = list(dict.fromkeys(run["set"] for run in found))
    lines = ["| set | rows | epochs | fits | batch; steps | score |", "|---|---|---|---|---|---|"]
    for name in sets:
        usual = [run for run in found if of(run) == (name, USUAL)]
        facts = f"{usual[0]['rows']:,} | {usual[0]['epochs']} | {len(usual)} | {_size(usual[0])}"
        lines.append(f"| {name} | {facts} | {mean(run['score'] for run in usual):.2f} |")
    lines += ["", f"| steps left, power of the table's rate, rise | mean | {' | '.join(sets)} |"]
    lines.append("|---" * (2 + len(sets)) + "|")
    lines.append(_row("**the rule**", found, {name: RULES[name in several] for name in sets}))
    return lines + [_row(text, found, dict.fromkeys(sets, text)) for text in map(str, CHOICES)]


def _row(title: str, found: Sequence[dict[str, Any]], choices: Mapping[str, str]) -> str:
    """Return the line of a choice, or of one a set."""
    usual = {(run["set"], run["seed"]): run["score"] for run in found if run["choice"] == USUAL}
    gaps_N, cells = [], []
    for name, text in choices.items():
        runs_S = [run for run in found if of(run) == (name, text)]
        gaps_N.append([run["score"] - usual[name, run["seed"]] for run in runs_S])
        cells.append(f"{_gap(mean(gaps_N[-1]), _error(gaps_N[-1]))}; {_size(runs_S[0])}")
    error = sum(_error(gaps) ** 2 for gaps in gaps_N) ** 0.5 / len(gaps_N)
    return "| " + " | ".join([title, _gap(mean(map(mean, gaps_N)), error), *cells]) + " |"


def of(run: dict[str, Any]) -> tuple[str, str]:
    """Return the set of a run, and how its steps are larger."""
    return run["set"], run["choice"]


def _size(run: dict[str, Any]) -> str:
    return f"{run['batch']:,}; {run['steps']:,}"


def _error(gaps: Sequence[float]) -> float:
    return float(stdev(gaps) / len(gaps) ** 0.5) if len(gaps) > 1 else 0.0


def _gap(difference: float, error: float) -> str:
    return f"{difference:+.2f} ± {error:.2f}"


def report(facts: dict[str, Any], found: Sequence[dict[str, Any]], several: Container[str]) -> str:
    """Return the report as Markdown."""
    notes = (
        "The score is the share of right answers in percent; of several labels a text, the mean average precision of "
        "the labels. Below, paired differences to the usual batch in points, mean ± standard error of the fits, each "
        "with another fifth of train.csv held out, then texts of a step and steps. The batch is the largest power of "
        "two that leaves so many steps (`gpu_batch_size`). With its growth, attention and head learn faster by the "
        "square root, the table by the power that is told; rates rise for the share of the steps that is told."
    )
    return "\n".join(["# Larger batches", "", *tables(found, several), "", notes, "", headline(facts), ""])


def sets_of(
    data: Sequence[Path], several: Sequence[Path], subsets: Sequence[int], made: int | None
) -> Iterator[tuple[str, Callable[[int], tuple[Rows, Split]]]]:
    """Yield the name of each set, and what gives its rows and their split by a seed."""
    for folder in (*data, *several):
        rows = rows_of(folder, folder in several)
        for most in (*(subsets if folder == data[0] else ()), None):
            name = folder.name if most is None else f"{folder.name}, {most:,}"
            yield name, partial(_split_rows, rows, most)
    if made:
        yield f"{data[0].name}, {made:,} made", partial(made_of, data[0], made)


def _split_rows(rows: Rows, most: int | None, seed: int) -> tuple[Rows, Split]:
    return rows, split_of(rows, seed, most)


@click.command(help=__doc__)
@click.argument("data", nargs=-1, required=True, type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--several", multiple=True, type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--rows", "subsets", multiple=True, type=int, help="So many rows of the first set, as another one.")
@click.option("--made", type=int, help="So many short rows made of the first set, as another one.")
@click.option("--seeds", type=click.IntRange(1, PARTS), default=PARTS, show_default=True)
@click.option("--restart", is_flag=True, help="Forget what an earlier run has measured.")
def main(
    data: tuple[Path, ...],
    several: tuple[Path, ...],
    subsets: tuple[int, ...],
    made: int | None,
    seeds: int,
    restart: bool,
) -> None:
    """Fit all choices on all sets."""
    facts, path = about(packages=PACKAGES), OUTPUT.with_suffix(".json")
    kept = json.loads(path.read_text()) if path.exists() and not restart else {}
    found: list[dict[str, Any]] = kept["runs"] if kept.get("about") == facts else []
    for name, parts in sets_of(data, several, subsets, made):
        for run in runs(name, parts, seeds, tuple(found)):
            found.append(run)
            click.echo(json.dumps(run))
            path.write_text(json.dumps({"about": facts, "runs": found}, indent=1) + "\n")
    text = report(facts, found, {folder.name for folder in several})
    OUTPUT.with_suffix(".md").write_text(text)
    click.echo(text)


if __name__ == "__main__":
    main()
