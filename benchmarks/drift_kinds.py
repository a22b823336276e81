"""How often the interval of `textcls drift` holds the accuracy on texts of another kind than those of the training.

    pip install 'textcls[all]'
    python benchmarks/drift_kinds.py DATA/sst2 DATA/imdb DATA/ag_news DATA/trec6 DATA/hatexplain --same sst2,imdb

Pairs with the same labels: half of a set and the other half; each of the sets named by --same and each other one; whole
texts and their first eight words, both ways, where texts are long; and, of four clusters of a set by its words, three
and the fourth. At most 4,000 rows of train.csv are trained on, and 1,000 others asked. The seed is the system's.
"""

import json
import secrets
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import click
import numpy as np

import textcls
from common import FOLDERS, ROOT, about, data_sets, headline, read
from textcls import Classifier
from textcls.evaluation.drift.drift import measure_drift

ROWS, ASKED, CLUSTERS = 4_000, 1_000, 4
# Sets of texts with more words than so many in the median are cut to `FIRST`.
LONG, FIRST = 25, 8
PACKAGES: Final = ("textcls", "scikit-learn", "numpy")
Rows = Sequence[tuple[str, str]]


class Pair(NamedTuple):
    """Rows to learn from, and rows to ask."""

    kind: str
    name: str
    known: Rows
    new: Rows


def pairs(sets: dict[str, Rows], same: Sequence[str], rng: np.random.Generator) -> Iterator[Pair]:
    """Yield all pairs."""
    for name, rows in sets.items():
        half = len(rows) // 2
        yield Pair("same", name, rows[:half], rows[half:])
        if np.median([len(text.split()) for text, _ in rows]) > LONG:
            yield Pair("cut", f"{name} to its first words", rows[:half], _cut(rows[half:]))
            yield Pair("cut", f"{name}, first words to whole", _cut(rows[:half]), rows[half:])
        part_N = _clusters([text for text, _ in rows], int(rng.integers(2**31)))
        for part in range(CLUSTERS):
            known = [row for row, its in zip(rows, part_N, strict=True) if its != part]
            new = [row for row, its in zip(rows, part_N, strict=True) if its == part]
            yield Pair("cluster", f"{name}, cluster {part + 1}", known, new)
    for one in same:
        yield from (Pair("other set", f"{one} to {other}", sets[one], sets[other]) for other in same if other != one)


def _cut(rows: Rows) -> Rows:
    return [(" ".join(text.split()[:FIRST]), label) for text, label in rows]


def _clusters(texts: Sequence[str], seed: int) -> list[int]:
    from sklearn.cluster import KMeans
    from sklearn.decomposition import TruncatedSVD
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.preprocessing import normalize

    x = TfidfVectorizer(sublinear_tf=True, min_df=3, stop_words="english").fit_transform(texts)
    x = normalize(TruncatedSVD(30, random_state=seed).fit_transform(x))
    return list(KMeans(CLUSTERS, n_init=2, random_state=seed).fit_predict(x).tolist())


def measured(pair: Pair, rng: np.random.Generator) -> dict[str, Any] | None:
    """Train, ask, and return what was promised and what was so; None of too few rows."""
    known = [pair.known[i] for i in rng.permutation(len(pair.known))[:ROWS]]
    labels = {label for _, label in known}
    new = [pair.new[i] for i in rng.permutation(len(pair.new))[:ASKED] if pair.new[i][1] in labels]
    if len(new) < 100 or len(labels) < 2:
        return None
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder, "model.onnx")
        textcls.train([text for text, _ in known], [label for _, label in known], model)
        found = measure_drift(Classifier.load(model), new)
    expected, accuracy = found.expected_accuracy, found.accuracy
    if expected is None or accuracy is None:
        return None
    inside = expected.low <= accuracy.value <= expected.high
    promised = {"expected": expected.as_json(), "inside": inside, "another": found.is_of_another_kind}
    return {"kind": pair.kind, "pair": pair.name, "rows": len(new), **promised, "accuracy": accuracy.value}


def table(report: dict[str, Any]) -> str:
    """Return the report as Markdown."""
    cells = report["cells"]
    lines = [headline(report["about"]), "", f"Seed {report['seed']}.", ""]
    lines += ["| kind | pairs | interval holds the accuracy | half its width in points | told as another kind |"]
    lines += ["| --- | --- | --- | --- | --- |"]
    for kind in dict.fromkeys(cell["kind"] for cell in cells):
        of = [cell for cell in cells if cell["kind"] == kind]
        half = np.mean([cell["expected"]["high"] - cell["expected"]["low"] for cell in of]) * 50
        inside, another = (sum(cell[name] for cell in of) for name in ("inside", "another"))
        lines.append(f"| {kind} | {len(of)} | {inside} | {half:.1f} | {another} |")
    lines += ["", "| pair | expected | accuracy |", "| --- | --- | --- |"]
    for cell in cells:
        low, value, high = (f"{100 * share:.1f}" for share in map(cell["expected"].get, ("low", "value", "high")))
        outside = "" if cell["inside"] else " (outside)"
        lines.append(f"| {cell['pair']} | {value} ({low} to {high}) | {100 * cell['accuracy']:.1f}{outside} |")
    return "\n".join(lines) + "\n"


@click.command(help=__doc__)
@FOLDERS
@click.option("--same", default="", help="Sets whose labels mean the same, with commas between them.")
@click.option("-o", "--output", type=click.Path(path_type=Path), default=ROOT / "benchmarks" / "drift_kinds.md")
def main(data: tuple[Path, ...], same: str, output: Path) -> None:
    """Measure all pairs."""
    seed = secrets.randbits(32)
    rng = np.random.default_rng(seed)
    sets: dict[str, Rows] = {}
    for name, folder in data_sets(data).items():
        found = read(folder / "train.csv")
        rows = list(zip(found.texts, found.labels, strict=True))
        sets[name] = [rows[i] for i in rng.permutation(len(rows))[: 3 * ROWS]]
    report: dict[str, Any] = {"about": about(packages=PACKAGES), "seed": seed, "cells": []}
    for pair in pairs(sets, [name for name in same.split(",") if name], rng):
        cell = measured(pair, rng)
        if cell is not None:
            report["cells"].append(cell)
            click.echo(json.dumps(cell))
            output.with_suffix(".json").write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
            output.write_text(table(report), encoding="utf-8")


if __name__ == "__main__":
    main()
