"""Train textcls and its peers on data sets, in one run, and write the table.

    pip install -r benchmarks/requirements.txt
    python benchmarks/compare.py DATA/sst2 DATA/trec6 --output benchmarks/results

A data set is a folder with train.csv and test.csv (columns text, label). textcls runs as a person runs it: the default
command, in a process of its own, import and export counted. A second run goes on where the first one stopped.
"""

import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from datetime import date
from importlib.metadata import version
from pathlib import Path
from statistics import median
from typing import Any

import click
from peers import PEERS
from rich.progress import track

from textcls import Classifier
from textcls.data import Labelled, read_labelled

ROOT = Path(__file__).parent.parent
OURS = "textcls"
ONE_BY_ONE = 200

Row = dict[str, Any]


def read(path: Path) -> Labelled:
    return read_labelled(path, ["text"], "label")


def microseconds(predict: Callable[[Sequence[str]], Any], texts: Sequence[str]) -> dict[str, float]:
    """Time a text, asked one by one (median) and all in one call."""
    predict(texts[:20])
    alone = []
    for text in texts[:ONE_BY_ONE]:
        start = time.perf_counter()
        predict([text])
        alone.append(time.perf_counter() - start)
    start = time.perf_counter()
    predict(texts)
    return {"one_us": 1e6 * median(alone), "batch_us": 1e6 * (time.perf_counter() - start) / len(texts)}


def run_ours(folder: Path) -> Row:
    with tempfile.TemporaryDirectory() as work:
        model = Path(work) / "model.onnx"
        tool = [str(Path(sys.executable).parent / "textcls")]
        start = time.perf_counter()
        subprocess.run([*tool, "train", str(folder / "train.csv"), "-o", str(model)], check=True, capture_output=True)
        seconds = time.perf_counter() - start
        score = subprocess.run(
            [*tool, "evaluate", str(model), str(folder / "test.csv"), "--json"], check=True, capture_output=True
        )
        found = json.loads(score.stdout)
        classifier = Classifier.load(model)
        times = microseconds(lambda texts: classifier.predict(texts, explain=True), read(folder / "test.csv").texts)
        return {
            "accuracy": 100 * found["accuracy"],
            "macro_f1": 100 * found["macro_f1"],
            "ece": found["ece"],
            "train_s": seconds,
            "mb": model.stat().st_size / 1e6,
            **times,
        }


def run_peer(folder: Path, name: str) -> Row:
    from sklearn.metrics import f1_score

    train, test = read(folder / "train.csv"), read(folder / "test.csv")
    start = time.perf_counter()
    peer = PEERS[name](train.texts, train.labels)
    seconds = time.perf_counter() - start
    guess = peer.predict(test.texts)
    right = sum(g == y for g, y in zip(guess, test.labels, strict=True))
    return {
        "accuracy": 100 * right / len(guess),
        "macro_f1": 100 * f1_score(test.labels, guess, average="macro", zero_division=0),
        "ece": None,
        "train_s": seconds,
        "mb": peer.size / 1e6,
        **microseconds(peer.predict, test.texts),
    }


def machine() -> Row:
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True).stdout
    packages = ("textcls", "torch", "onnxruntime", "scikit-learn", "numpy")
    return {
        "date": date.today().isoformat(),
        "commit": commit.strip(),
        "machine": f"{os.cpu_count()} cores, {platform.machine()}, {platform.system()}",
        "versions": {name: version(name) for name in packages} | {"python": platform.python_version()},
    }


def table(results: dict[str, dict[str, Row]], about: Row) -> str:
    """Return the Markdown: a summary against the best peer, then every figure."""
    versions = ", ".join(f"{name} {number}" for name, number in about["versions"].items())
    lines = [f"{about['date']}, commit {about['commit']}, {about['machine']}; {versions}.", ""]
    lines += ["| set | textcls | best peer | its accuracy | difference | ECE | seconds | its seconds | MB | its MB |"]
    lines += ["|---" * 10 + "|"]
    for name, rows in results.items():
        ours = rows[OURS]
        best = max((peer for peer in rows if peer != OURS), key=lambda peer: rows[peer]["accuracy"])
        theirs = rows[best]
        lines.append(
            f"| {name} | {ours['accuracy']:.2f} | {best} | {theirs['accuracy']:.2f} "
            f"| {ours['accuracy'] - theirs['accuracy']:+.2f} | {ours['ece']:.3f} | {ours['train_s']:.1f} "
            f"| {theirs['train_s']:.1f} | {ours['mb']:.1f} | {theirs['mb']:.1f} |"
        )
    lines += [
        "",
        "| set | model | accuracy | macro-F1 | seconds to train | us a text, alone | in a batch | MB |",
        "|---" * 8 + "|",
    ]
    for name, rows in results.items():
        for model, row in rows.items():
            figures = f"{row['accuracy']:.2f} | {row['macro_f1']:.2f} | {row['train_s']:.1f} | {row['one_us']:.0f}"
            lines.append(f"| {name} | {model} | {figures} | {row['batch_us']:.0f} | {row['mb']:.1f} |")
    lines += ["", "textcls answers with attributions, the peers with labels alone.", ""]
    return "\n".join(lines)


@click.command()
@click.argument("folders", nargs=-1, required=True, type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option(
    "--output", default=ROOT / "benchmarks" / "results", type=click.Path(path_type=Path), help="Without suffix."
)
def main(folders: tuple[Path, ...], output: Path) -> None:
    """Compare textcls with its peers on the data sets in FOLDERS."""
    saved, markdown = output.with_suffix(".json"), output.with_suffix(".md")
    state = json.loads(saved.read_text()) if saved.exists() else {"about": machine(), "results": {}}
    for folder, name in track([(folder, name) for folder in folders for name in (OURS, *PEERS)]):
        rows = state["results"].setdefault(folder.name, {})
        if name not in rows:
            rows[name] = run_ours(folder) if name == OURS else run_peer(folder, name)
            saved.write_text(json.dumps(state, indent=1) + "\n")
    markdown.write_text(table(state["results"], state["about"]))
    click.echo(markdown.read_text())


if __name__ == "__main__":
    main()
