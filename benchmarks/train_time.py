"""How long a training takes from the command line to the saved file, beside the most accurate linear peer as a script.

    pip install 'textcls[all]' -r benchmarks/requirements.txt
    python benchmarks/train_time.py DATA/sst2 DATA/ag_news

On each data set `textcls train` and the linear peer that was most accurate on it (benchmarks/results.json) take turns,
each a process of its own: imports, reading train.csv, fitting and saving are counted. The script of the peer is what a
person would write with scikit-learn: it imports nothing of ours, and cuts words by a pattern. One training of textcls
comes first and does not count: it compiles the loops for this machine, if none has before.
"""

import json
import subprocess
import sys
import time
from pathlib import Path
from statistics import median
from typing import Any

import click

from common import FOLDERS, OURS, ROOT, about, count_rows, data_sets, headline, train_ours

RESULTS = ROOT / "benchmarks" / "results.json"
SCRIPT = """
import csv, pickle, sys
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

csv.field_size_limit(10**9)
with open(sys.argv[1], encoding="utf-8", newline="") as file:
    rows = list(csv.DictReader(file))
model = make_pipeline(TfidfVectorizer(sublinear_tf=True, {vectorizer}), {classifier})
model.fit([row["text"] for row in rows], [row["label"] for row in rows])
with open(sys.argv[2], "wb") as file:
    pickle.dump(model, file)
"""
# Signs of languages without spaces one by one, words, other signs.
TOKEN = r"[\u3040-\u30ff\u3400-\u9fff]|[^\W\u3040-\u30ff\u3400-\u9fff]+|[^\w\s]"
VECTORIZERS = {
    "TF-IDF words": f"token_pattern={TOKEN!r}, ngram_range=(1, 2)",
    "TF-IDF characters": "analyzer='char_wb', ngram_range=(2, 5)",
}
CLASSIFIERS = {"SVM": "LinearSVC(random_state=0)", "LR": "LogisticRegression(C=10, max_iter=300)"}


def most_accurate(results: dict[str, Any], name: str) -> str:
    """Return the peer of scikit-learn that was most accurate on a data set."""
    accuracy: dict[str, list[float]] = {}
    for cell in results["cells"]:
        if cell["set"] == name and cell["model"].startswith("TF-IDF"):
            accuracy.setdefault(cell["model"], []).append(cell["figures"]["accuracy"])
    if not accuracy:
        raise click.UsageError(f"{RESULTS.name} has no such peer on {name}; run compare.py on it first.")
    return max(accuracy, key=lambda model: sum(accuracy[model]) / len(accuracy[model]))


def seconds_of_peer(peer: str, data: Path, output: Path) -> float:
    """Return how long the peer takes as a process of its own."""
    script = SCRIPT.format(vectorizer=VECTORIZERS[peer.partition(" + ")[0]], classifier=CLASSIFIERS[peer[-3:].strip()])
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", script, data, output], check=True)
    return time.perf_counter() - start


def measured(name: str, folder: Path, rounds: int, results: dict[str, Any], output: Path) -> dict[str, Any]:
    """Return the seconds of both on one data set."""
    data, model, peer = folder / "train.csv", output.with_suffix(".train_time.onnx"), most_accurate(results, name)
    try:
        train_ours(data, model)
        ours, theirs = [], []
        for _ in range(rounds):
            ours.append(round(train_ours(data, model).seconds, 2))
            theirs.append(round(seconds_of_peer(peer, data, model), 2))
    finally:
        model.unlink(missing_ok=True)
    return {"set": name, "rows": count_rows(data), "ours": ours, "peer": peer, "theirs": theirs}


def table(report: dict[str, Any]) -> str:
    """Return the report as Markdown."""
    lines = [
        headline(report["about"]),
        "",
        f"| set | rows | {OURS} (s) | most accurate peer | its script (s) | ratio |",
    ]
    lines.append("| --- | --- | --- | --- | --- | --- |")
    for row in report["rows"]:
        ours, theirs = median(row["ours"]), median(row["theirs"])
        each = [f"{middle:.1f} ({', '.join(f'{s:.1f}' for s in rounds)})" for middle, rounds in _pairs(row)]
        lines.append(
            f"| {row['set']} | {row['rows']:,} | {each[0]} | {row['peer']} | {each[1]} | {ours / theirs:.2f} |"
        )
    lines += ["", "The median of the rounds, and each of them in their order; the two took turns."]
    return "\n".join(lines) + "\n"


def _pairs(row: dict[str, Any]) -> list[tuple[float, list[float]]]:
    return [(median(row[who]), row[who]) for who in ("ours", "theirs")]


@click.command(help=__doc__)
@FOLDERS
@click.option("-o", "--output", type=click.Path(path_type=Path), default=ROOT / "benchmarks" / "train_time.md")
@click.option("--rounds", type=click.IntRange(1), default=3, show_default=True, help="How often each is timed.")
def main(data: tuple[Path, ...], output: Path, rounds: int) -> None:
    """Time all data sets."""
    results = json.loads(RESULTS.read_text(encoding="utf-8"))
    report: dict[str, Any] = {"about": about(), "rows": []}
    for name, folder in data_sets(data).items():
        report["rows"].append(measured(name, folder, rounds, results, output))
        output.with_suffix(".json").write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
        output.write_text(table(report), encoding="utf-8")
        click.echo(table(report).splitlines()[-3])


if __name__ == "__main__":
    main()
