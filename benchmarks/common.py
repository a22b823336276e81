"""What the benchmarks share: data sets, subsets of their rows, training textcls, facts of the machine, Markdown."""

import csv
import os
import platform
import resource
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import date
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Final, NamedTuple

import click
import numpy as np

from measure import Float, Trained
from runner import CommandError, last_words
from textcls import Classifier
from textcls.data import Labelled, open_table, read_labelled

ROOT: Final = Path(__file__).parent.parent
OURS: Final = "textcls"
PACKAGES: Final = ("textcls", "torch", "onnxruntime", "scikit-learn", "numpy", "fasttext-numpy2-wheel")
# What a run measures; a change in one of these makes it another run.
MEASURED: Final = ("textcls", "training", "benchmarks/*.py")
# `ru_maxrss` counts kibibytes, on macOS bytes.
MAXRSS_BYTES: Final = 1 if sys.platform == "darwin" else 1024

FOLDERS = click.argument("data", nargs=-1, required=True, type=click.Path(exists=True, file_okay=False, path_type=Path))


class Cost(NamedTuple):
    """What a training took: seconds by the clock, and the largest resident memory of its process in 10^6 bytes."""

    seconds: float
    peak_mb: float


# Data


def data_sets(folders: Iterable[Path]) -> dict[str, Path]:
    """Return the data sets by name: each of `folders` is one (train.csv and test.csv), or holds some.

    Raises:
        click.UsageError: a folder holds none, or two have the same name.
    """
    found: dict[str, Path] = {}
    for folder in map(Path.resolve, folders):
        inside = [path for path in (folder, *sorted(folder.iterdir())) if _is_data_set(path)]
        if not inside:
            raise click.UsageError(f"There is no data set in {folder}: a folder with train.csv and test.csv is needed.")
        for path in inside:
            if found.setdefault(path.name, path) != path:
                raise click.UsageError(f"Two data sets are called {path.name}: {found[path.name]} and {path}.")
    return found


def _is_data_set(folder: Path) -> bool:
    return all((folder / name).is_file() for name in ("train.csv", "test.csv"))


def read(path: Path) -> Labelled:
    """Read the columns `text` and `label` of the file at `path`."""
    return read_labelled(path, ["text"], "label")


def count_rows(path: Path) -> int:
    """Return the number of rows of the file at `path`, without keeping them."""
    with open_table(path) as table:
        return sum(1 for _ in table.rows)


def nested_order(labels: Sequence[str], seed: int) -> list[int]:
    """Return all row numbers in an order whose every beginning is a stratified subset of the rows.

    So subsets of one seed lie inside each other. One row of each label comes first, frequent labels before rare ones;
    from then on each label advances through its shuffled rows at the same relative pace.

    Args:
        labels: the label of each row [rows].
        seed: of the shuffling.
    """
    sizes, seen = Counter(labels), Counter[str]()
    places = []
    for row in np.random.default_rng(seed).permutation(len(labels)).tolist():
        label = labels[row]
        places.append((seen[label] > 0, (seen[label] + 0.5) / sizes[label], row))
        seen[label] += 1
    return [row for _, _, row in sorted(places)]


def subset(rows: Labelled, size: int, seed: int) -> Labelled:
    """Return the first `size` rows of `nested_order`."""
    chosen = nested_order(rows.labels, seed)[:size]
    return Labelled([rows.texts[i] for i in chosen], [rows.labels[i] for i in chosen])


def write(path: Path, rows: Labelled) -> None:
    """Write `rows` to the CSV file at `path`."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["text", "label"])
        writer.writerows(zip(rows.texts, rows.labels, strict=True))


# textcls


def train_ours(data: Path, model: Path, options: Sequence[str] = ()) -> Cost:
    """Run `textcls train` on the file `data` in a process of its own, import and export counted.

    Raises:
        CommandError: it failed.
    """
    tool = Path(sys.executable).parent / "textcls"
    start = time.perf_counter()
    with subprocess.Popen(
        [tool, "train", data, "-o", model, *options], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        said = process.stderr.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    seconds = time.perf_counter() - start
    if process.returncode:
        raise CommandError(last_words(said, process.returncode))
    return Cost(seconds, usage.ru_maxrss * MAXRSS_BYTES / 1e6)


def load_ours(path: Path) -> Trained:
    """Load the model file at `path`; alone, it answers with label and attributions."""
    classifier = Classifier.load(path)

    def predict(texts: Sequence[str]) -> list[str]:
        return [answer.label for answer in classifier.predict(texts)]

    def alone(text: str) -> object:
        answer = classifier.predict(text, explain=True)
        return answer.label, answer.explanation and answer.explanation.contributions

    def score(texts: Sequence[str]) -> tuple[list[str], Float]:
        answers = classifier.predict(texts)
        return [answer.label for answer in answers], np.array([answer.probabilities.max() for answer in answers])

    return Trained(predict, alone, score, True, path.stat().st_size)


def peak_mb() -> float:
    """Return the largest resident memory of this process so far in 10^6 bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * MAXRSS_BYTES / 1e6


# The run and its report


def about(tree: Path = ROOT, packages: Sequence[str] = PACKAGES) -> dict[str, Any]:
    """Return date, commit of the checkout `tree`, machine and versions of a run."""
    commit = _git(tree, "rev-parse", "--short", "HEAD") or "unknown"
    changed = " with changes" if _git(tree, "status", "--porcelain", "--", *MEASURED) else ""
    return {
        "date": date.today().isoformat(),
        "commit": commit + changed,
        "machine": f"{os.cpu_count()} cores, {platform.machine()}, {platform.system()}",
        "versions": {name: _version(name) for name in packages} | {"python": platform.python_version()},
    }


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "missing"


def _git(tree: Path, *arguments: str) -> str:
    try:
        return subprocess.run(["git", *arguments], cwd=tree, capture_output=True, text=True).stdout.strip()
    except FileNotFoundError:
        return ""


def headline(facts: dict[str, Any]) -> str:
    """Return the line that says when, of what and where a run was."""
    versions = ", ".join(f"{name} {number}" for name, number in facts["versions"].items())
    return f"{facts['date']}, commit {facts['commit']}, {facts['machine']}; {versions}."
