"""How many labels a chosen order saves: accuracy by labels, chosen by `textcls suggest` and at random.

    pip install 'textcls[train]' -r benchmarks/requirements.txt
    python benchmarks/active.py DATA/trec6 DATA/sst2 DATA/banking77 DATA/ag_news --draws 2

A pool of training rows has no labels at first. In rounds some texts are chosen, get their labels, and a model with
default settings learns from all labels so far; it says which texts come next, and its accuracy on the test rows is
noted. `margin` takes the texts whose two best labels are nearest to each other, and nothing else; `random` any. The
pool and random order of a draw are the same for all methods. Cells that the JSON file has, each with its commit, are
not measured anew.
"""

import json
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import mean, stdev
from typing import Any, Final

import click
import numpy as np

from common import FOLDERS, ROOT, about, data_sets, headline, read
from textcls import Classifier
from textcls.data import Labelled
from textcls.labelling.choice import doubt
from textcls.labelling.suggest import Pool, probabilities
from textcls_training.config.settings import TrainConfig
from textcls_training.data.labelled_texts import LabelledTexts
from textcls_training.pipeline import training as pipeline

SIZES: Final = (50, 100, 150, 200, 300, 400, 500, 600, 800, 1000)
SHOWN: Final = (50, 100, 200, 300, 500, 1000)
METHODS: Final = ("random", "margin", "suggest")
PACKAGES: Final = ("textcls", "onnxruntime", "numba", "numpy")
# Rows of a pool, and test rows that are asked.
MOST_POOL, MOST_TEST = 10_000, 4000


def curve(pool: Pool, rows: Labelled, test: Labelled, method: str, draw: int) -> dict[str, float]:
    """Return the accuracy in percent by the number of labels.

    Args:
        pool: the texts of `rows`.
        rows: what may be labelled.
        test: what is asked.
        method: one of `METHODS`.
        draw: seed of what is random.
    """
    order = np.random.default_rng(draw).permutation(len(rows.texts)).tolist()
    labelled: list[int] = []
    classifier: Classifier | None = None
    found = {}
    for size in SIZES:
        labelled += chosen(pool, labelled, classifier, method, size - len(labelled), order)
        classifier = trained([rows.texts[i] for i in labelled], [rows.labels[i] for i in labelled])
        answers = [answer.label for answer in classifier.predict(test.texts)]
        found[str(size)] = 100 * mean(a == b for a, b in zip(answers, test.labels, strict=True))
    return found


def chosen(
    pool: Pool, labelled: Sequence[int], classifier: Classifier | None, method: str, count: int, order: Sequence[int]
) -> list[int]:
    """Return the next rows to label."""
    if method == "random":
        return list(order[len(labelled) : len(labelled) + count])
    known = [pool.texts[i] for i in labelled]
    predictions = None if classifier is None else pool.ask(classifier)
    if method == "suggest" or predictions is None:
        return pool.choose(count, known, predictions)
    done = set(labelled)
    by_doubt = np.argsort(-doubt(probabilities(predictions)), kind="stable").tolist()
    return [pool.rows[i] for i in by_doubt if pool.rows[i] not in done][:count]


def trained(texts: Sequence[str], labels: Sequence[str]) -> Classifier:
    """Return a model with default settings."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        pipeline.train(LabelledTexts(texts=texts, labels=labels), path, TrainConfig())
        return Classifier.load(path)


def labels_for(accuracy: float, found: dict[str, float]) -> float | None:
    """Return with how many labels a curve reaches an accuracy, by straight lines between its points; None if never."""
    sizes, values = [int(size) for size in found], list(found.values())
    for i, value in enumerate(values):
        if value >= accuracy:
            if i == 0:
                return sizes[0]
            share = (accuracy - values[i - 1]) / (value - values[i - 1])
            return sizes[i - 1] + share * (sizes[i] - sizes[i - 1])
    return None


def table(report: dict[str, Any]) -> str:
    """Return the report as Markdown: means over draws, and the standard error of each."""
    lines = [headline(report["about"]), "", f"| set | draws | order | {' | '.join(map(str, SHOWN))} | labels needed |"]
    lines.append("|---" * (len(SHOWN) + 4) + "|")
    curves: dict[tuple[str, str], list[dict[str, float]]] = {}
    for cell in report["cells"]:
        curves.setdefault((cell["set"], cell["method"]), []).append(cell["curve"])
    for (name, method), found in curves.items():
        middle = {size: mean(one[size] for one in found) for size in found[0]}
        random = curves.get((name, "random"))
        need = None if random is None else labels_for(mean(one[str(SIZES[-1])] for one in random), middle)
        shown = " | ".join(_figure([one[str(size)] for one in found]) for size in SHOWN)
        needed = "" if random is None else "more than 1,000" if need is None else f"{need:,.0f}"
        lines.append(f"| {name} | {len(found)} | {method} | {shown} | {needed} |")
    return "\n".join(lines) + "\n"


def _figure(found: Sequence[float]) -> str:
    if len(found) < 2:
        return f"{found[0]:.1f}"
    return f"{mean(found):.1f} ± {stdev(found) / len(found) ** 0.5:.1f}"


@click.command(help=__doc__)
@FOLDERS
@click.option("-o", "--output", type=click.Path(path_type=Path), default=ROOT / "benchmarks" / "active.md")
@click.option("--draws", type=click.IntRange(1), default=2, show_default=True, help="Pools, and random orders.")
@click.option("--methods", default=",".join(METHODS), show_default=True, help="Orders to measure.")
def main(data: tuple[Path, ...], output: Path, draws: int, methods: str) -> None:
    """Measure all data sets."""
    path = output.with_suffix(".json")
    report: dict[str, Any] = {"about": about(packages=PACKAGES), "cells": []}
    if path.exists():
        report["cells"] = json.loads(path.read_text(encoding="utf-8"))["cells"]
    done = {(cell["set"], cell["draw"], cell["method"]) for cell in report["cells"]}
    for draw in range(draws):
        for name, folder in data_sets(data).items():
            left = [method for method in methods.split(",") if (name, draw, method) not in done]
            if not left:
                continue
            every, test = read(folder / "train.csv"), read(folder / "test.csv")
            which = np.random.default_rng(1000 + draw).permutation(len(every.texts))[:MOST_POOL].tolist()
            rows = Labelled([every.texts[i] for i in which], [every.labels[i] for i in which])
            asked = np.random.default_rng(0).permutation(len(test.texts))[:MOST_TEST].tolist()
            test = Labelled([test.texts[i] for i in asked], [test.labels[i] for i in asked])
            pool = Pool.of(rows.texts)
            for method in left:
                found = curve(pool, rows, test, method, draw)
                click.echo(f"{name} {draw} {method} " + " ".join(f"{n}: {a:.1f}" for n, a in found.items()))
                cell = {"set": name, "draw": draw, "method": method, "commit": report["about"]["commit"]}
                report["cells"].append(cell | {"curve": found})
                path.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
                output.write_text(table(report), encoding="utf-8")


if __name__ == "__main__":
    main()
