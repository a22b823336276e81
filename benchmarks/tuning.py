"""What tuning brings: defaults and tuned options on test files, beside fastText's autotune with the same time.

    pip install 'textcls[all,tune]' -r benchmarks/requirements.txt
    python benchmarks/tuning.py DATA/trec6 DATA/sst2 DATA/banking77 DATA/ag_news

Of a training file at most so many rows are taken, a stratified draw. `textcls tune` has so many seconds for its
search and the judging of it, in one process. Then `textcls train` makes three models of these rows: by the defaults,
by the settings that were written, and by what the search chose, whether it was recommended or not. What tune promises
is the accuracy on rows of the training file that the choice has not seen. fastText has its first tenth part of the
rows, in the order of the draw, for validation in the same seconds (`autotuneDuration`, accuracy is its F1 where each
text has one label), and is trained on all rows with what it found, as its own documentation shows; beside it its
defaults with bigrams and 25 epochs.
"""

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
import numpy as np

from common import FOLDERS, ROOT, about, data_sets, headline, read, subset, train_ours, write
from peers import PEERS
from runner import CommandError, last_words, markdown_table
from textcls import Classifier
from textcls.data import Labelled
from textcls.model.tokenizer import tokenize

PACKAGES = ("textcls", "optuna", "fasttext-numpy2-wheel", "numpy")
VALIDATION = 10
FASTTEXT = "fastText bigrams, 25 epochs"


def tuned(data: Path, work: Path, seconds: float, more: Sequence[str]) -> dict[str, Any]:
    """Return what `textcls tune` says of the file `data`; the settings are `work`/textcls.toml."""
    tool = Path(sys.executable).parent / "textcls"
    command = [tool, "tune", data, "-o", work / "textcls.toml", "--seconds", str(seconds), "--json", "--quiet", *more]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise CommandError(last_words(done.stderr, done.returncode))
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def accuracy(found: Sequence[str], right: Sequence[str]) -> float:
    """Return the share of right answers in percent."""
    return 100 * float(np.mean([one == other for one, other in zip(found, right, strict=True)]))


def of_training(data: Path, test: Labelled, work: Path, options: Sequence[str]) -> float:
    """Return the accuracy of `textcls train` with these options."""
    train_ours(data, work / "model.onnx", options)
    answers = Classifier.load(work / "model.onnx").predict(test.texts)
    return accuracy([one.label for one in answers], test.labels)


def autotuned(rows: Labelled, test: Labelled, work: Path, seconds: float) -> float:
    """Return the accuracy of fastText by its autotune, trained on all rows with what it found."""
    import fasttext

    names = sorted(set(rows.labels))

    def lines(which: range) -> str:
        labelled = ((names.index(rows.labels[i]), " ".join(tokenize(rows.texts[i]))) for i in which)
        return "".join(f"__label__{label} {text}\n" for label, text in labelled)

    first = len(rows.texts) // VALIDATION
    parts = {"valid": range(first), "train": range(first, len(rows.texts)), "all": range(len(rows.texts))}
    for name, which in parts.items():
        (work / f"{name}.txt").write_text(lines(which), encoding="utf-8")
    found = fasttext.train_supervised(
        str(work / "train.txt"),
        autotuneValidationFile=str(work / "valid.txt"),
        autotuneDuration=round(seconds),
        verbose=0,
    ).f.getArgs()
    chosen = ("lr", "dim", "epoch", "minCount", "minn", "maxn", "wordNgrams", "bucket", "loss")
    options = {name: getattr(found, name) for name in chosen}
    options["loss"] = options["loss"].name
    model = fasttext.train_supervised(str(work / "all.txt"), verbose=0, thread=1, **options)
    answers, _ = model.predict([" ".join(tokenize(text)) for text in test.texts])
    return accuracy([names[int(one[0].removeprefix("__label__"))] for one in answers], test.labels)


def measured(name: str, folder: Path, size: int, draw: int, seconds: float, more: Sequence[str]) -> dict[str, Any]:
    """Return the figures of one draw of a set."""
    rows, test = subset(read(folder / "train.csv"), size, draw), read(folder / "test.csv")
    with tempfile.TemporaryDirectory() as place:
        work = Path(place)
        data = work / "train.csv"
        write(data, rows)
        start = time.perf_counter()
        found = tuned(data, work, seconds, more)
        took = time.perf_counter() - start
        chosen = [f"--{option.replace('_', '-')}={value}" for option, value in found["options"].items()]
        chosen = ["--no-bigrams" if option == "--bigrams=False" else option for option in chosen]
        default = of_training(data, test, work, [])
        start = time.perf_counter()
        theirs = autotuned(rows, test, work, seconds)
        their_seconds = time.perf_counter() - start
        usual = PEERS[FASTTEXT](rows.texts, rows.labels).predict(test.texts)
        return {
            "set": name, "rows": len(rows.texts), "test_rows": len(test.texts), "draw": draw, "default": default,
            "tuned": of_training(data, test, work, chosen) if chosen else default,
            "written": of_training(data, test, work, ["--config", str(work / "textcls.toml")]),
            "is_better": found["is_better"], "promised": found["accuracy"], "judged_rows": found["judged_rows"],
            "options": found["options"], "importances": found["importances"], "tried": len(found["tried"]),
            "trainings": found["trainings"], "seconds": took, "fasttext": accuracy(usual, test.labels),
            "fasttext_tuned": theirs, "fasttext_seconds": their_seconds,
        }  # fmt: skip


def table(report: dict[str, Any]) -> str:
    """Return the report as Markdown."""
    heads = ("set", "rows", "default", "tuned", "written", "promised gain", "options", "trials", "s", "fastText",
             "autotuned", "s")  # fmt: skip
    lines = []
    for cell in report["cells"]:
        gain = cell["promised"]
        interval = f"{100 * gain['difference']:+.2f} ({100 * gain['low']:+.2f} to {100 * gain['high']:+.2f})"
        options = ", ".join(f"{option.replace('_', '-')} {value}" for option, value in cell["options"].items())
        shown = [f"{cell[figure]:.2f}" for figure in ("default", "tuned", "written")]
        theirs = [f"{cell['fasttext']:.2f}", f"{cell['fasttext_tuned']:.2f}", f"{cell['fasttext_seconds']:.0f}"]
        took = [str(cell["tried"]), f"{cell['seconds']:.0f}"]
        lines.append([cell["set"], f"{cell['rows']:,}", *shown, interval, options or "as by default", *took, *theirs])
    return "\n".join([headline(report["about"]), "", *markdown_table(heads, lines)]) + "\n"


@click.command(help=__doc__)
@FOLDERS
@click.option("-o", "--output", type=click.Path(path_type=Path), default=ROOT / "benchmarks" / "tuning.md")
@click.option("--rows", type=click.IntRange(100), default=2000, show_default=True, help="Most rows of a set.")
@click.option("--draws", type=click.IntRange(1), default=1, show_default=True, help="Draws of the rows.")
@click.option("--seconds", type=click.FloatRange(1), default=150, show_default=True, help="For each search.")
@click.option("--rounds", type=click.IntRange(1), help="As of textcls tune.")
def main(data: tuple[Path, ...], output: Path, rows: int, draws: int, seconds: float, rounds: int | None) -> None:
    """Tune on all data sets."""
    more = [] if rounds is None else ["--rounds", str(rounds)]
    report: dict[str, Any] = {"about": about(packages=PACKAGES), "seconds": seconds, "cells": []}
    for name, folder in data_sets(data).items():
        for draw in range(draws):
            cell = measured(name, folder, rows, draw, seconds, more)
            report["cells"].append(cell)
            click.echo(json.dumps(cell))
            output.with_suffix(".json").write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
            output.write_text(table(report), encoding="utf-8")


if __name__ == "__main__":
    main()
