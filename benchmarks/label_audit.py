"""How well wrong labels are found: rows whose label was exchanged on purpose, ranked by several methods.

    pip install 'textcls[all]' -r benchmarks/requirements.txt cleanlab
    python benchmarks/label_audit.py DATA/trec6 DATA/sst2 DATA/banking77 DATA/ag_news

Of at most so many training rows 2, 5 or 10 % get another label, drawn at random or the most similar one (of the nearest
mean of TF-IDF vectors). How many rows are listed, and how many of them rightly, stands beside how many were exchanged;
what was wrong before counts as listed wrongly. So it is also told how many of the other listed rows are doubted by a
model of up to 20,000 rows of the file that were not drawn. Other figures are average precisions in percent: 100 where
all exchanged rows come first. `textcls check --labels` stands beside cleanlab (Northcutt et al. 2021) on the
probabilities of textcls's first round, by its self-confidence and its normalized margin, and on those of TF-IDF with
logistic regression, as is usual. What was wrong in the data sets before counts against all alike.
"""

import json
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import mean
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray

from common import FOLDERS, ROOT, about, data_sets, headline, read
from textcls import Classifier
from textcls_training.audit.run import answered_twice
from textcls_training.audit.suspects import Judged
from textcls_training.config.settings import TrainConfig
from textcls_training.data.labelled_texts import LabelledTexts
from textcls_training.pipeline.training import train

Float64, Int64 = NDArray[np.float64], NDArray[np.int64]
OURS = "check --labels"
KINDS = ("random", "similar")
PACKAGES = ("textcls", "scikit-learn", "cleanlab", "numpy")
OTHERS, LEAST_OTHERS = 20_000, 1_000


def most_similar(texts: Sequence[str], label_R: Int64, classes: int) -> Int64:
    """Return the most similar label of each [C]."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    x = TfidfVectorizer(sublinear_tf=True).fit_transform(texts)
    mean_CX = np.stack([np.asarray(x[label_R == c].mean(0))[0] for c in range(classes)])
    mean_CX /= np.linalg.norm(mean_CX, axis=1, keepdims=True)
    likeness_CC = mean_CX @ mean_CX.T
    np.fill_diagonal(likeness_CC, -1)
    return likeness_CC.argmax(1)


def exchanged(label_R: Int64, kind: str, share: float, near_C: Int64, rng: np.random.Generator) -> Int64:
    """Return the labels, of which a share is another one."""
    found = label_R.copy()
    rows = rng.choice(len(found), round(share * len(found)), replace=False)
    if kind == "similar":
        found[rows] = near_C[found[rows]]
    else:
        found[rows] = (found[rows] + rng.integers(1, len(near_C), len(rows))) % len(near_C)
    return found


def tfidf(texts: Sequence[str], given_R: Int64) -> Float64:
    """Return held-out probabilities of TF-IDF with logistic regression, as most guides of label audits have them."""
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import cross_val_predict
    from sklearn.pipeline import make_pipeline

    model = make_pipeline(TfidfVectorizer(), LogisticRegression(max_iter=300))
    return np.asarray(cross_val_predict(model, texts, given_R, cv=5, method="predict_proba"))


def judge_of(rows: Sequence[tuple[str, str]], names: Sequence[str], texts: Sequence[str]) -> Float64 | None:
    """Return the probabilities of each label by a model of other rows; None if there are too few."""
    others = [row for row in rows if row[1] in names][:OTHERS]
    if len(others) < LEAST_OTHERS:
        return None
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "judge.onnx"
        train(
            LabelledTexts(texts=[text for text, _ in others], labels=[label for _, label in others]),
            path,
            TrainConfig(),
        )
        judge = Classifier.load(path)
        found = np.array([answer.probabilities for answer in judge.predict(list(texts))])
    columns = [judge.labels.index(name) if name in judge.labels else -1 for name in names]
    return np.concatenate([found, np.zeros((len(found), 1))], 1)[:, columns]


def measured(
    texts: Sequence[str],
    names: Sequence[str],
    given_R: Int64,
    wrong_R: NDArray[np.bool_],
    judged_RC: Float64 | None,
) -> tuple[dict[str, float], dict[str, float | None]]:
    """Return the average precision of each method, and how many rows are listed, and how many of them rightly."""
    from cleanlab.rank import get_label_quality_scores
    from sklearn.metrics import average_precision_score

    given = LabelledTexts(texts=texts, labels=[names[label] for label in given_R])
    answered = answered_twice(given, TrainConfig())
    label_R = answered.label_R
    judged = answered.judge()
    doubts = {OURS: judged.doubt_R}
    held_R = answered.first_RC.any(1)  # The only row of a label is never held out, and no method judges it.
    for of, probability_RC in (("textcls", answered.first_RC), ("TF-IDF", tfidf(texts, label_R))):
        normal_RC = probability_RC / np.where(held_R, probability_RC.sum(1), 1)[:, None]
        for method in ("self_confidence", "normalized_margin"):
            name = f"cleanlab {method.replace('_', ' ')}, {of}"
            doubts[name] = -get_label_quality_scores(label_R, normal_RC, method=method)
    listed = judged.suspects
    counts: dict[str, float | None] = {
        "wrong": int(wrong_R.sum()),
        "estimated": round(judged.wrong_R.sum()),
        "listed": len(listed),
        "rightly": int(wrong_R[listed].sum()),
        "doubted": doubted(listed[~wrong_R[listed]], judged, names, answered.names, judged_RC),
    }
    precision = {name: average_precision_score(wrong_R[held_R], doubt_R[held_R]) for name, doubt_R in doubts.items()}
    return {name: 100 * float(found) for name, found in precision.items()}, counts


def doubted(
    rows: Int64, judged: Judged, names: Sequence[str], order: Sequence[str], judged_RC: Float64 | None
) -> float | None:
    """Return the share of rows in which the judge finds the suggested label more probable than that of the row."""
    if judged_RC is None or not len(rows):
        return None
    number_C = np.array([names.index(name) for name in order])
    own, meant = number_C[judged.label_R[rows]], number_C[judged.meant_R[rows]]
    return float((judged_RC[rows, meant] > judged_RC[rows, own]).mean())


def table(report: dict[str, Any]) -> str:
    """Return the report as Markdown."""
    methods = list(report["cells"][0]["figures"])
    head = ("set", "rows", "exchanged", "estimated wrong / wrong", "listed", "rightly", "others doubted", *methods)
    lines = [headline(report["about"]), "", f"| {' | '.join(head)} |", "| --- " * len(head) + "|"]
    by_kind: dict[str, list[dict[str, float]]] = {}
    for cell in report["cells"]:
        others = "" if cell["doubted"] is None else f"{cell['doubted']:.0%}"
        rightly = f"{cell['rightly'] / cell['listed']:.0%}" if cell["listed"] else ""
        head = (
            f"| {cell['set']} | {cell['rows']:,} | {cell['exchanged']} | {cell['estimated']:,} / {cell['wrong']:,} | "
        )
        by_kind.setdefault(f"{head}{cell['listed']:,} | {rightly} | {others} | ", []).append(cell["figures"])
    rows = {head: _means(found, methods) for head, found in by_kind.items()}
    rows["| mean | | | | | | | "] = _means(list(rows.values()), methods)
    for head, figures in rows.items():
        best = max(figures.values())
        shown = [f"**{value:.1f}**" if value == best else f"{value:.1f}" for value in figures.values()]
        lines.append(head + " | ".join(shown) + " |")
    return "\n".join(lines) + "\n"


def _means(found: Sequence[dict[str, float]], methods: Sequence[str]) -> dict[str, float]:
    return {name: mean(one[name] for one in found) for name in methods}


@click.command(help=__doc__)
@FOLDERS
@click.option("-o", "--output", type=click.Path(path_type=Path), default=ROOT / "benchmarks" / "label_audit.md")
@click.option("--rows", type=click.IntRange(100), default=5000, show_default=True, help="Most rows of a set.")
@click.option("--draws", type=click.IntRange(1), default=1, show_default=True, help="Draws of the exchanged rows.")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Of the first draw.")
def main(data: tuple[Path, ...], output: Path, rows: int, draws: int, seed: int) -> None:
    """Audit all data sets."""
    report: dict[str, Any] = {"about": about(packages=PACKAGES), "cells": []}
    for name, folder in data_sets(data).items():
        found = read(folder / "train.csv")
        for draw in range(draws):
            rng = np.random.default_rng(seed + draw)
            order = rng.permutation(len(found.texts)).tolist()
            which = order[:rows]
            texts, labels = [found.texts[i] for i in which], [found.labels[i] for i in which]
            names = sorted(set(labels))
            label_R = np.array([names.index(label) for label in labels], np.int64)
            near_C = most_similar(texts, label_R, len(names))
            drawn = set(texts)
            others = [(found.texts[i], found.labels[i]) for i in order[rows:] if found.texts[i] not in drawn]
            judged_RC = judge_of(others, names, texts)
            for share in (0.02, 0.05, 0.1):
                for kind in KINDS if len(names) > 2 else KINDS[:1]:
                    given_R = exchanged(label_R, kind, share, near_C, rng)
                    figures, counts = measured(texts, names, given_R, given_R != label_R, judged_RC)
                    cell = {"set": name, "rows": len(texts), "draw": draw, "exchanged": f"{share:.0%} {kind}", **counts}
                    report["cells"].append({**cell, "figures": figures})
                    click.echo(f"{cell} {figures}")
                    output.with_suffix(".json").write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
                    output.write_text(table(report), encoding="utf-8")


if __name__ == "__main__":
    main()
