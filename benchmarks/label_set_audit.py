"""How well wrong labels are found where a row may have several: some were taken away, added or exchanged.

    pip install 'textcls[all]' -r benchmarks/requirements.txt cleanlab
    python benchmarks/label_set_audit.py DATA/goemotions_multi DATA/trec6 --join DATA/trec6

DATA is as for several_labels.py, of whose joined texts there are `--rows` here. Of a share of the rows one label is
taken away, one drawn at random is added, or one is exchanged for such a one; rows are ranked, and figures are average
precisions in percent. `textcls check --labels` stands beside cleanlab's scores of several labels (Thyagarajan et al.
2022, arXiv 2211.13895) on the same probabilities, and on those of TF-IDF with a logistic regression a label. What was
wrong in the data sets before counts against all alike.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from statistics import mean
from typing import Any, Final

import click
import numpy as np
from numpy.typing import NDArray

from common import FOLDERS, ROOT, about, data_sets, headline
from runner import markdown_table
from several_labels import Rows, several
from textcls_training.audit import held_out, label_set_suspects
from textcls_training.config.settings import TrainConfig
from textcls_training.data.labelled_texts import LabelledTexts

Float64, Bools = NDArray[np.float64], NDArray[np.bool_]
KINDS: Final = ("taken away", "added", "exchanged")
METHODS: Final = ("check --labels", "cleanlab, textcls", "cleanlab, TF-IDF")
PACKAGES: Final = ("textcls", "scikit-learn", "cleanlab", "numpy")


def changed(gold_RC: Bools, kind: str, share: float, rng: np.random.Generator) -> Bools:
    """Return the labels, of which a share of the rows has another set, of rows that it can be done to."""
    found_RC = gold_RC.copy()
    able_R = np.flatnonzero((gold_RC.any(1) | (kind == "added")) & (~gold_RC.all(1) | (kind == "taken away")))
    for row in rng.choice(able_R, round(share * len(gold_RC)), replace=False):
        has, lacks = np.flatnonzero(gold_RC[row]), np.flatnonzero(~gold_RC[row])
        if kind != "added":
            found_RC[row, rng.choice(has)] = False
        if kind != "taken away":
            found_RC[row, rng.choice(lacks)] = True
    return found_RC


def tfidf(texts: Sequence[str], given_RC: Bools) -> Float64:
    """Return held-out probabilities of TF-IDF with a logistic regression a label."""
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import cross_val_predict
    from sklearn.multiclass import OneVsRestClassifier
    from sklearn.pipeline import make_pipeline

    model = make_pipeline(TfidfVectorizer(), OneVsRestClassifier(LogisticRegression(max_iter=300)))
    return np.asarray(cross_val_predict(model, texts, given_RC.astype(int), cv=5, method="predict_proba"))


def measured(texts: Sequence[str], names: Sequence[str], given_RC: Bools, wrong_R: Bools) -> dict[str, Any]:
    """Return the average precision of each method, and how many rows are listed, and how many of them rightly."""
    from cleanlab.multilabel_classification.rank import get_label_quality_scores
    from sklearn.metrics import average_precision_score

    sets = [{names[label]: 1.0 for label in np.flatnonzero(row)} for row in given_RC]
    answered = held_out.answer(LabelledTexts(texts=texts, label_sets=sets), names, TrainConfig())
    judged = label_set_suspects.judge(answered.probability_RC, given_RC, answered.judged_R)
    labels = [np.flatnonzero(row).tolist() for row in given_RC]
    doubts = [
        judged.doubt_R,
        *(-get_label_quality_scores(labels, each) for each in (answered.probability_RC, tfidf(texts, given_RC))),
    ]
    figures = (100 * float(average_precision_score(wrong_R, doubt_R)) for doubt_R in doubts)
    return {
        "wrong": int(wrong_R.sum()),
        "estimated": round(float(judged.wrong_R.sum())),
        "listed": len(judged.suspects),
        "rightly": int(wrong_R[judged.suspects].sum()),
        "figures": dict(zip(METHODS, figures, strict=True)),
    }


def table(report: dict[str, Any]) -> str:
    """Return the report as Markdown."""
    head = ("set", "labels", "changed", "estimated wrong / wrong", "listed", "rightly", *METHODS)
    lines = []
    for cell in report["cells"]:
        rightly = f"{cell['rightly'] / cell['listed']:.0%}" if cell["listed"] else ""
        figures = [f"{cell['figures'][name]:.1f}" for name in METHODS]
        counts = (f"{cell['estimated']:,} / {cell['wrong']:,}", f"{cell['listed']:,}", rightly)
        lines.append((cell["set"], str(cell["labels"]), cell["changed"], *counts, *figures))
    means = [f"{mean(cell['figures'][name] for cell in report['cells']):.1f}" for name in METHODS]
    lines.append(("mean", "", "", "", "", "", *means))
    return "\n".join([headline(report["about"]), "", *markdown_table(head, lines), ""])


@click.command(help=__doc__)
@FOLDERS
@click.option("--join", type=click.Path(path_type=Path), multiple=True, help="Join texts of this set of DATA.")
@click.option("-o", "--output", type=click.Path(path_type=Path), default=ROOT / "benchmarks" / "label_set_audit.md")
@click.option("--rows", type=click.IntRange(100), default=3000, show_default=True, help="Most rows of a set.")
@click.option("--share", type=click.FloatRange(0, 1), default=0.05, show_default=True, help="Of the rows, changed.")
@click.option("--seed", type=click.IntRange(0), help="Of what is drawn.  [default: the system's]")
def main(
    data: tuple[Path, ...], join: tuple[Path, ...], output: Path, rows: int, share: float, seed: int | None
) -> None:
    """Audit all data sets."""
    seed = int(np.random.SeedSequence().generate_state(1)[0]) if seed is None else seed
    rng = np.random.default_rng(seed)
    report: dict[str, Any] = {"about": about(packages=PACKAGES), "seed": seed, "cells": []}
    joined = {folder.resolve() for folder in join}
    for name, folder in data_sets(data).items():
        names, found, _ = several(folder, folder in joined)
        which = rng.permutation(len(found.texts))[:rows]
        drawn = Rows([found.texts[i] for i in which], found.gold[which])
        for kind in KINDS:
            given_RC = changed(drawn.gold, kind, share, rng)
            used_C = given_RC.any(0)
            kept = [label for label, used in zip(names, used_C, strict=True) if used]
            cell = measured(drawn.texts, kept, given_RC[:, used_C], (given_RC != drawn.gold).any(1))
            cell |= {"set": name, "labels": len(kept), "changed": f"{share:.0%} {kind}"}
            report["cells"].append(cell)
            click.echo(str(cell))
            output.with_suffix(".json").write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
            output.write_text(table(report), encoding="utf-8")


if __name__ == "__main__":
    main()
