"""What `textcls train --drop-suspects` brings, beside what it says that it brings.

    pip install 'textcls[train]' -r benchmarks/requirements.txt
    python benchmarks/drop_suspects.py DATA/trec6 DATA/sst2 DATA/banking77 DATA/ag_news

So many training rows of a set are taken as they are, with a tenth of their labels exchanged at random, and with a tenth
exchanged for the most similar label. Two models learn from them, one without the suspects, and answer the test file.
Beside their accuracy stands that of the held-out answers, which is all that who trains can know.
"""

import json
import tempfile
from pathlib import Path
from statistics import mean
from typing import Any

import click
import numpy as np
from common import FOLDERS, ROOT, about, data_sets, headline, read
from label_audit import KINDS, exchanged, most_similar

from textcls import Classifier
from textcls.data import Labelled
from textcls_torch.studies.runner import markdown_table
from textcls_training.audit.dropping import drop_suspects
from textcls_training.config.settings import TrainConfig
from textcls_training.data.labelled_texts import LabelledTexts
from textcls_training.pipeline import training as pipeline

PACKAGES = ("textcls", "scikit-learn", "numpy")
SHARE = 0.1


def accuracy(given: LabelledTexts, test: Labelled) -> float:
    """Return the accuracy in percent of a model with default settings."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        pipeline.train(given, path, TrainConfig())
        answers = Classifier.load(path).predict(test.texts)
    return 100 * mean(answer.label == label for answer, label in zip(answers, test.labels, strict=True))


def measured(given: LabelledTexts, wrong: int, test: Labelled) -> dict[str, float]:
    """Return the figures of rows of which `wrong` have a wrong label."""
    left, found = drop_suspects(given, TrainConfig())
    return {
        "wrong": wrong,
        "dropped": found.dropped,
        "test, with": accuracy(given, test),
        "test, without": accuracy(left, test),
        "said, with": 100 * found.accuracy.before,
        "said, without": 100 * found.accuracy.after,
        "said, low": 100 * found.accuracy.low,
        "said, high": 100 * found.accuracy.high,
    }


def table(report: dict[str, Any]) -> str:
    """Return the report as Markdown."""
    heads = ("set", "rows", "labels", "wrong", "dropped", "test, with them", "without", "gain", "gain that is said")
    lines = []
    for cell in report["cells"]:
        f = cell["figures"]
        gain, said = f["test, without"] - f["test, with"], f["said, without"] - f["said, with"]
        interval = f"{said:+.1f} ({f['said, low']:+.1f} to {f['said, high']:+.1f})"
        counts = (cell["set"], f"{cell['rows']:,}", cell["labels"], f"{f['wrong']:,}", f"{f['dropped']:,}")
        lines.append((*counts, f"{f['test, with']:.1f}", f"{f['test, without']:.1f}", f"{gain:+.1f}", interval))
    return "\n".join([headline(report["about"]), "", *markdown_table(heads, lines), ""])


@click.command(help=__doc__)
@FOLDERS
@click.option("-o", "--output", type=click.Path(path_type=Path), default=ROOT / "benchmarks" / "drop_suspects.md")
@click.option("--rows", type=click.IntRange(100), default=3000, show_default=True, help="Most rows of a set.")
def main(data: tuple[Path, ...], output: Path, rows: int) -> None:
    """Measure all data sets."""
    report: dict[str, Any] = {"about": about(packages=PACKAGES), "cells": []}
    for name, folder in data_sets(data).items():
        found, test = read(folder / "train.csv"), read(folder / "test.csv")
        which = np.random.default_rng(0).permutation(len(found.texts))[:rows].tolist()
        texts, labels = [found.texts[i] for i in which], [found.labels[i] for i in which]
        names = sorted(set(labels))
        label_R = np.array([names.index(label) for label in labels], np.int64)
        near_C = most_similar(texts, label_R, len(names))
        for kind in ("as published", *(KINDS if len(names) > 2 else KINDS[:1])):
            share = SHARE if kind in KINDS else 0.0
            given_R = exchanged(label_R, kind, share, near_C, np.random.default_rng(1))
            given = LabelledTexts(texts=texts, labels=[names[label] for label in given_R])
            figures = measured(given, int((given_R != label_R).sum()), test)
            labels_are = f"{share:.0%} {kind}" if share else kind
            report["cells"].append({"set": name, "rows": len(texts), "labels": labels_are, "figures": figures})
            click.echo(report["cells"][-1])
            output.with_suffix(".json").write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
            output.write_text(table(report), encoding="utf-8")


if __name__ == "__main__":
    main()
