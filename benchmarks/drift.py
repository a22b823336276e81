"""How near `textcls drift` comes to the accuracy on rows that have changed, whose labels it does not see.

    pip install 'textcls[all]'
    python benchmarks/drift.py DATA/trec6 DATA/sst2 DATA/banking77 DATA/ag_news

A model is trained on so many rows, drawn at random, and asks test rows: as they are; with another mix of labels (shares
from a Dirichlet distribution of 0.3); the quarter with most unknown words; and with a typo in a tenth and in three
tenths of the words. Figures are mean absolute errors of the estimated accuracy in points. Beside `textcls drift`, which
is the mean score of the answers, stand that mean corrected in bins by how many held-out rows of such scores were right
(the scores count for 100 rows a bin), corrected by the difference from held-out rows (Guillory et al. 2021), averaged
thresholded confidence (Garg et al. 2022), and the accuracy on held-out rows, as if nothing had changed. `chance` is the
error of somebody who knows the accuracy on any number of such rows. `inside` counts how often the interval of `textcls
drift` holds the real accuracy, `changed` how often it tells of a change.
"""

import json
import math
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from statistics import mean
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray

from common import FOLDERS, ROOT, about, data_sets, headline, read
from textcls import Classifier
from textcls.data import Labelled
from textcls.evaluation.drift.drift import measure_drift
from textcls.evaluation.drift.summary import HeldOutSummary
from textcls_training.config.settings import TrainConfig
from textcls_training.data.labelled_texts import LabelledTexts
from textcls_training.pipeline.training import run

OURS = "textcls drift"
ALL = "all"
# So many held-out rows in each bin the scores count for.
PRIOR = 100
PACKAGES = ("textcls", "onnxruntime", "numpy")
Changed = Callable[[Labelled, Classifier, np.random.Generator], Labelled]


def take(rows: Labelled, which: Sequence[int]) -> Labelled:
    """Return some of the rows."""
    return Labelled([rows.texts[i] for i in which], [rows.labels[i] for i in which])


def mixed(rows: Labelled, _: Classifier, rng: np.random.Generator) -> Labelled:
    """Return half of the rows, whose labels have other shares."""
    names, label_N, count_C = np.unique(rows.labels, return_inverse=True, return_counts=True)
    # No share is 0, lest there be fewer rows than are drawn.
    weight_N = (rng.dirichlet(np.full(len(names), 0.3)) / count_C)[label_N] + 1e-9
    chosen = rng.choice(len(label_N), len(label_N) // 2, replace=False, p=weight_N / weight_N.sum())
    return take(rows, chosen.tolist())


def strange(rows: Labelled, classifier: Classifier, _: np.random.Generator) -> Labelled:
    """Return the quarter of the rows with the largest share of unknown words."""
    unknown = [float((~one.known).mean()) if len(one.known) else 0.0 for one in classifier.explain(rows.texts)]
    order = np.argsort(-np.array(unknown), kind="stable")
    return take(rows, order[: len(order) // 4].tolist())


def mistyped(share: float) -> Changed:
    """Return what puts a typo into a share of the words of three letters or more."""

    def change(rows: Labelled, _: Classifier, rng: np.random.Generator) -> Labelled:
        texts = [
            " ".join(typo(word, rng) if rng.random() < share else word for word in text.split(" "))
            for text in rows.texts
        ]
        return Labelled(texts, rows.labels)

    return change


def typo(word: str, rng: np.random.Generator) -> str:
    """Return a word with a letter within it left out, added before it, or exchanged with the one before it."""
    if len(word) < 3:
        return word
    i, letter = int(rng.integers(1, len(word) - 1)), chr(ord("a") + int(rng.integers(26)))
    kinds = (
        word[:i] + word[i + 1 :],
        word[:i] + letter + word[i:],
        word[: i - 1] + word[i] + word[i - 1] + word[i + 1 :],
    )
    return kinds[int(rng.integers(3))]


SHIFTS: dict[str, Changed] = {
    "none": lambda rows, _classifier, _rng: rows,
    "topic mix": mixed,
    "new vocabulary": strange,
    "typos 10%": mistyped(0.1),
    "typos 30%": mistyped(0.3),
}


def cells(name: str, folder: Path, most: int, most_test: int, draw: int) -> Iterator[dict[str, Any]]:
    """Train once and yield what each shift gives."""
    rng = np.random.default_rng(draw)
    rows, test = read(folder / "train.csv"), read(folder / "test.csv")
    rows = take(rows, rng.permutation(len(rows.texts))[:most].tolist())
    test = take(test, rng.permutation(len(test.texts))[:most_test].tolist())
    with tempfile.TemporaryDirectory() as folder_name:
        path = Path(folder_name) / "model.onnx"
        selected = run(LabelledTexts(texts=rows.texts, labels=rows.labels), path, TrainConfig()).selected
        classifier = Classifier.load(path)
    probability_NC = selected.calibration.probabilities(selected.logits)
    right_N = probability_NC.argmax(1) == selected.labels
    for shift, change in SHIFTS.items():
        changed = change(test, classifier, rng)
        found = measure_drift(classifier, zip(changed.texts, changed.labels, strict=True))
        scores = np.array([answer.score for answer in classifier.predict(changed.texts)])
        expected = found.expected_accuracy
        assert expected is not None
        assert found.accuracy is not None
        assert found.unknown is not None
        yield {
            "set": name,
            "draw": draw,
            "shift": shift,
            "rows": found.rows,
            "real": found.accuracy.value,
            "estimates": {OURS: expected.value, **others(found.held_out, probability_NC.max(1), right_N, scores)},
            "inside": expected.low <= found.accuracy.value <= expected.high,
            "changed": found.unknown.is_sure or any(one.is_sure for one in found.distances.values()),
            "unknown": [found.unknown.before, found.unknown.now],
        }


def others(
    summary: HeldOutSummary, held_out_N: NDArray[np.float64], right_N: NDArray[np.bool_], now_M: NDArray[np.float64]
) -> dict[str, float]:
    """Return what other methods expect, by scores of held-out rows, whether these are right, and scores now."""
    accuracy, hits = float(right_N.mean()), int(right_N.sum())
    threshold = np.sort(held_out_N)[-hits] if hits else np.inf
    return {
        "corrected by bins": corrected(summary, now_M),
        "difference of means": accuracy + float(now_M.mean() - held_out_N.mean()),
        "thresholded": float((now_M >= threshold).mean()),
        "held-out accuracy": accuracy,
    }


def corrected(held_out: HeldOutSummary, now_M: NDArray[np.float64]) -> float:
    """Return the mean score, in each bin corrected by held-out rows (histogram binning; Zadrozny and Elkan 2001)."""
    bin_M, bins = held_out.scores.bins(now_M), len(held_out.scores.counts)
    now_B = np.bincount(bin_M, minlength=bins)
    score_B = np.bincount(bin_M, now_M, bins) / np.maximum(now_B, 1)
    accuracy_B = (np.array(held_out.right) + PRIOR * score_B) / (np.array(held_out.scores.counts) + PRIOR)
    return float(now_B @ accuracy_B / len(now_M))


def table(report: dict[str, Any]) -> str:
    """Return the report as Markdown: the mean over draws of each set and shift, and over sets."""
    methods = list(report["cells"][0]["estimates"])
    lines = [
        headline(report["about"]),
        "",
        "| set | shift | rows | real | " + " | ".join(methods) + " | chance | inside | changed |",
    ]
    lines.append("| --- " * (7 + len(methods)) + "|")
    cells: list[dict[str, Any]] = report["cells"]
    for name in (*dict.fromkeys(cell["set"] for cell in cells), ALL):
        of_set = [cell for cell in cells if name in (cell["set"], ALL)]
        for shift in SHIFTS:
            lines.append(_line(name, shift, [cell for cell in of_set if cell["shift"] == shift], methods))
    lines.append(_line(ALL, "all but none", [cell for cell in cells if cell["shift"] != "none"], methods))
    return "\n".join(lines) + "\n"


def _line(name: str, shift: str, chosen: Sequence[dict[str, Any]], methods: Sequence[str]) -> str:
    errors = [mean(100 * abs(cell["estimates"][method] - cell["real"]) for cell in chosen) for method in methods]
    shown = [f"**{error:.1f}**" if error == min(errors) else f"{error:.1f}" for error in errors]
    rows, real = f"{mean(cell['rows'] for cell in chosen):,.0f}", f"{100 * mean(cell['real'] for cell in chosen):.1f}"
    # The mean absolute value of a normal deviate is sqrt(2 / pi) of its standard deviation.
    chance = mean(100 * math.sqrt(2 / math.pi * cell["real"] * (1 - cell["real"]) / cell["rows"]) for cell in chosen)
    counts = [f"{sum(cell[name] for cell in chosen)} of {len(chosen)}" for name in ("inside", "changed")]
    return f"| {' | '.join([name, shift, rows, real, *shown, f'{chance:.1f}', *counts])} |"


@click.command(help=__doc__)
@FOLDERS
@click.option("-o", "--output", type=click.Path(path_type=Path), default=ROOT / "benchmarks" / "drift.md")
@click.option("--rows", type=click.IntRange(100), default=5000, show_default=True, help="Most training rows of a set.")
@click.option("--test-rows", type=click.IntRange(100), default=3000, show_default=True, help="Most test rows of a set.")
@click.option("--draws", type=click.IntRange(1), default=5, show_default=True, help="Trainings of each set.")
def main(data: tuple[Path, ...], output: Path, rows: int, test_rows: int, draws: int) -> None:
    """Measure all data sets."""
    report: dict[str, Any] = {"about": about(packages=PACKAGES), "cells": []}
    for name, folder in data_sets(data).items():
        for draw in range(draws):
            for cell in cells(name, folder, rows, test_rows, draw):
                report["cells"].append(cell)
                click.echo(str(cell))
            output.with_suffix(".json").write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
            output.write_text(table(report), encoding="utf-8")


if __name__ == "__main__":
    main()
