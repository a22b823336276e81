"""Where a text may have several labels: thresholds drawn to that of all labels, beside those of each label's own rows.

    pip install 'textcls[train]' -r benchmarks/requirements.txt
    python benchmarks/label_thresholds.py DATA/goemotions_multi OTHER...

DATA is a folder with train.csv and test.csv; a cell of the column `label` holds several labels with ";" between them.
One model is trained a set. Its held-out rows choose thresholds by each rule, and the test rows judge them: so all rules
have the same scores.
"""

import json
import tempfile
import time
from pathlib import Path
from typing import Any, Final

import click
import numpy as np

from common import FOLDERS, ROOT, about, data_sets, headline
from runner import markdown_table
from textcls import Classifier
from textcls.data import TargetOptions, read_label_sets
from textcls.evaluation.label_thresholds import SharedThreshold, drawn
from textcls_training.config.settings import TrainConfig
from textcls_training.data.labelled_texts import labelled_texts_of
from textcls_training.fit.label_set_calibration import best_thresholds
from textcls_training.fit.validation import LabelSetValidation
from textcls_training.models.calibration import LabelSetCalibration
from textcls_training.pipeline import training

PACKAGES = ("textcls", "numpy")
TARGETS: Final = TargetOptions(label_separator=";")
RULES: Final = ("own rows", "one for all", "drawn")


def thresholds(run: training.TrainingRun) -> dict[str, np.ndarray]:
    """Return the thresholds of each label by each rule, on the held-out rows."""
    found, rows = run.selected.calibration, run.selected.validation
    if not isinstance(found, LabelSetCalibration) or not isinstance(rows, LabelSetValidation):
        raise click.UsageError("The rows have one label each.")
    probability_RC = found.probabilities(run.selected.logits)
    shared = SharedThreshold()
    shared.add(probability_RC, rows.target_RC)
    common, target_RC = shared.value(), rows.target_RC.astype(np.float64)
    own_C = best_thresholds(probability_RC, target_RC, common, within=0)
    near_C = best_thresholds(probability_RC, target_RC, common)
    return dict(zip(RULES, (own_C, np.full_like(own_C, common), drawn(near_C, target_RC.sum(0), common)), strict=True))


def f1(assigned_NC: np.ndarray, gold_NC: np.ndarray) -> dict[str, float]:
    """Return micro-F1, macro-F1 of the labels that rows have, and F1 a row, in percent."""
    both_NC = assigned_NC & gold_NC
    of = [assigned_NC.sum(axis) + gold_NC.sum(axis) for axis in (0, 1)]
    label_C, row_N = (2 * both_NC.sum(axis) / np.maximum(1, of[axis]) for axis in (0, 1))
    return {
        "micro": 100 * 2 * float(both_NC.sum() / max(1, of[0].sum())),
        "macro": 100 * float(label_C[gold_NC.any(0)].mean()),
        "samples": 100 * float(np.where(of[1] > 0, row_N, 1).mean()),
    }


def measured(folder: Path, epochs: int | None, seed: int) -> dict[str, Any]:
    """Train on a set, and return what each rule comes to on its test rows."""
    rows, test = (
        read_label_sets([folder / f"{name}.csv"], ["text"], "label", targets=TARGETS) for name in ("train", "test")
    )
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "model.onnx"
        run = training.run(labelled_texts_of(rows, TARGETS), path, TrainConfig(epochs=epochs, seed=seed))
        seconds, classifier = time.monotonic() - start, Classifier.load(path)
    probability_NC = np.stack([answer.probabilities for answer in classifier.predict(test.texts)])
    number = {label: i for i, label in enumerate(classifier.labels)}
    gold_NC = np.zeros(probability_NC.shape, np.bool_)
    for i, labels in enumerate(test.labels):
        gold_NC[i, [number[label] for label in labels if label in number]] = True
    return {
        "labels": len(number),
        "rows": len(rows.texts),
        "held out": len(run.selected.validation),
        "epochs": run.selected.epochs,
        "seconds": seconds,
        "f1": {rule: f1(probability_NC >= found, gold_NC) for rule, found in thresholds(run).items()},
    }


def table(report: dict[str, Any]) -> str:
    """Return the report as Markdown: micro / macro / samples F1 by each rule."""
    lines, gains = [], []
    for cell in report["cells"]:
        scores = [" / ".join(f"{value:.1f}" for value in cell["f1"][rule].values()) for rule in RULES]
        gain = [cell["f1"]["drawn"][name] - cell["f1"]["own rows"][name] for name in ("micro", "macro", "samples")]
        gains.append(gain)
        counts = (f"{cell[name]:,}" for name in ("labels", "rows", "held out", "epochs"))
        lines.append((cell["set"], *counts, *scores, " / ".join(f"{value:+.1f}" for value in gain)))
    mean = " / ".join(f"{value:+.1f}" for value in np.mean(gains, axis=0))
    heads = ("set", "labels", "rows", "held out", "epochs", *RULES, "drawn, gain")
    about_scores = "Micro / macro / samples F1 of the test rows, in percent; the same model a line."
    mean_line = f"Mean gain of {len(gains)} lines: {mean}."
    return "\n".join(
        [headline(report["about"]), "", about_scores, "", *markdown_table(heads, lines), "", mean_line, ""]
    )


@click.command(help=__doc__)
@FOLDERS
@click.option("-o", "--output", type=click.Path(path_type=Path), default=ROOT / "benchmarks" / "label_thresholds.md")
@click.option("--epochs", type=click.IntRange(1), multiple=True, help="Train for so many, too; may be repeated.")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True)
def main(data: tuple[Path, ...], output: Path, epochs: tuple[int, ...], seed: int) -> None:
    """Measure all data sets."""
    report: dict[str, Any] = {"about": about(packages=PACKAGES), "cells": []}
    for name, folder in data_sets(data).items():
        for told in epochs or (None,):
            report["cells"].append({"set": name, **measured(folder, told, seed)})
            print(table(report))
    output.with_suffix(".json").write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    output.write_text(table(report), encoding="utf-8")


if __name__ == "__main__":
    main()
