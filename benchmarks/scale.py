"""Time, memory and accuracy from 10 thousand rows to 10 million, beside fastText and scikit-learn.

    pip install -r benchmarks/requirements.txt
    python benchmarks/scale.py DATA/ag_news --work /large/disk

DATA is a folder with train.csv and test.csv. The rows are made of its training rows (`scale_rows.py`), scored are
pieces of its test rows. Each training is a process of its own that reads the CSV file and writes a model: textcls the
command, fastText and scikit-learn the few lines that their documentation has for it. Seconds count all of that, imports
too. A second run goes on where the first one stopped. The rows lie in --work and are removed.
"""

import csv
import json
import math
import os
import pickle
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Final

import click
import numpy as np

from common import OURS, ROOT, about, headline, load_ours, read
from measure import Figures
from runner import CommandError, last_words, markdown_table
from scale_rows import held_out_rows, made_rows, write_rows
from state import RESTART, Cell, State, resume

DEFAULTS, FAST = "fastText, 2-grams", "fastText, 2-grams, dim 50, lr 0.5"
LINEAR: Final = "hashing + SGD"
BOUNDED: Final = f"{OURS} --max-memory 4GB"
MODELS: Final = (BOUNDED, f"{BOUNDED} --ngrams none", DEFAULTS, FAST, LINEAR)
FASTTEXT: Final[dict[str, dict[str, Any]]] = {
    DEFAULTS: {"wordNgrams": 2},
    FAST: {"wordNgrams": 2, "dim": 50, "bucket": 200_000, "lr": 0.5},
}
# Rows that scikit-learn is given at a time; how many it sees at least, in at most so many passes.
CHUNK, SEEN, MOST_PASSES = 50_000, 1_000_000, 5
SAMPLED_SECONDS: Final = 0.2
NOTES = """\
Seconds: of the whole process by the clock, and of processor time, all threads together; there are two cores, so half of
the latter is the least that the clock could show. Peak MB: the most resident memory; anonymous: without pages of files,
which the system takes back when it needs them (textcls keeps its rows there). MB: the saved model. Accuracy in percent
on pieces of real, held-out texts. The training rows are pieces of {real:,} real texts with words left out, swapped and
misspelt (`benchmarks/scale_rows.py`), so more of them bring hardly more knowledge: accuracy says that a model holds up,
not that it gains. textcls reports calibration and explains its answers; the others give labels. Exponent: of processor
time against rows, from 100,000 rows on, by least squares of the logarithms.
"""


# Peers


def rows_of(path: Path) -> Iterator[list[str]]:
    """Yield text and label of each row."""
    with path.open(encoding="utf-8", newline="") as file:
        rows = csv.reader(file)
        next(rows)
        yield from rows


def fasttext_line(text: str) -> str:
    """Return a text as the tutorial of fastText prepares it: signs by themselves, in lower case."""
    return " ".join(re.sub(r"([.!?,'/()])", r" \1 ", text).lower().split())


def train_fasttext(name: str, data: Path, model: Path) -> None:
    """Train on a CSV file, written as the lines that it reads."""
    import fasttext

    lines = model.with_suffix(".txt")
    with lines.open("w", encoding="utf-8") as file:
        file.writelines(f"__label__{label} {fasttext_line(text)}\n" for text, label in rows_of(data))
    fasttext.train_supervised(str(lines), verbose=0, thread=2, **FASTTEXT[name]).save_model(str(model))
    lines.unlink()


def train_linear(data: Path, model: Path) -> None:
    """Train a linear model on hashed words and bigrams, some rows at a time."""
    from sklearn.feature_extraction.text import HashingVectorizer
    from sklearn.linear_model import SGDClassifier

    vectorizer = HashingVectorizer(ngram_range=(1, 2), n_features=2**20)
    classifier = SGDClassifier(loss="log_loss", alpha=1e-6, random_state=0)
    count = Counter(label for _, label in rows_of(data))
    for _ in range(min(MOST_PASSES, -(-SEEN // count.total()))):
        rows = rows_of(data)
        while chunk := list(islice(rows, CHUNK)):
            texts, labels = zip(*chunk, strict=True)
            classifier.partial_fit(vectorizer.transform(texts), labels, classes=sorted(count))
    model.write_bytes(pickle.dumps((vectorizer, classifier)))


def train_peer(name: str, data: str, model: str) -> None:
    """Train a peer in this process."""
    if name in FASTTEXT:
        train_fasttext(name, Path(data), Path(model))
    else:
        train_linear(Path(data), Path(model))


def answers(name: str, model: Path, texts: Sequence[str]) -> list[str]:
    """Return the labels that a saved model gives."""
    if name.startswith(OURS):
        return load_ours(model).predict(texts)
    if name in FASTTEXT:
        import fasttext

        found, _ = fasttext.load_model(str(model)).predict([fasttext_line(text) for text in texts])
        return [best[0].removeprefix("__label__") for best in found]
    vectorizer, classifier = pickle.loads(model.read_bytes())
    return list(classifier.predict(vectorizer.transform(texts)))


# Measuring


class Watch(threading.Thread):
    """Looks again and again how much memory a process has; what `wait4` says would hold that of this one, too."""

    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self.status, self.peak_mb, self.anonymous_mb = Path(f"/proc/{pid}/status"), 0.0, 0.0

    def run(self) -> None:
        while found := self._kilobytes():
            self.peak_mb = max(self.peak_mb, found.get("VmHWM", 0) * 1024 / 1e6)
            self.anonymous_mb = max(self.anonymous_mb, found.get("RssAnon", 0) * 1024 / 1e6)
            time.sleep(SAMPLED_SECONDS)

    def _kilobytes(self) -> dict[str, int]:
        try:
            return {name: int(size) for name, size in re.findall(r"(\w+):\s+(\d+) kB", self.status.read_text())}
        except OSError:
            return {}


def timed(command: Sequence[str], work: Path) -> Figures:
    """Run a command; return what it took.

    Raises:
        CommandError: it failed.
    """
    errors = work / "errors.txt"
    with errors.open("w") as file:
        start = time.perf_counter()
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=file)
        watch = Watch(process.pid)
        watch.start()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        seconds = time.perf_counter() - start
    if process.returncode:
        raise CommandError(last_words(errors.read_text(), process.returncode))
    return {
        "seconds": seconds,
        "processor_s": usage.ru_utime + usage.ru_stime,
        "peak_mb": watch.peak_mb,
        "anonymous_mb": watch.anonymous_mb,
    }


def measure(cell: Cell, data: Path, test: Path, work: Path) -> Figures:
    """Train and score one model.

    Raises:
        CommandError: its process failed.
    """
    model = work / "model"
    if cell.ours:
        model = model.with_suffix(".onnx")
        tool = str(Path(sys.executable).parent / "textcls")
        command = [tool, "train", str(data), "--output", str(model), "--quiet", *cell.model.split()[1:]]
    else:
        request = json.dumps([cell.model, str(data), str(model)])
        command = [sys.executable, __file__, "--peer", request]
    figures = timed(command, work)
    rows = list(rows_of(test))
    found = answers(cell.model, model, [text for text, _ in rows])
    right = sum(label == gold for label, (_, gold) in zip(found, rows, strict=True))
    figures |= {"accuracy": 100 * right / len(rows), "mb": model.stat().st_size / 1e6}
    model.unlink()
    return figures


def prepared(folder: Path, size: int, work: Path) -> Path:
    """Return the file of so many made rows; those of other sizes are removed."""
    path = work / f"{size}.csv"
    if not path.exists():
        for other in work.glob("*.csv"):
            other.unlink()
        real = read(folder / "train.csv")
        write_rows(path, made_rows(real.texts, real.labels, size, seed=0))
    return path


# The report


def exponent(figures: dict[int, Figures]) -> float:
    """Return the exponent of processor time against rows, from 100,000 rows on; NaN of fewer than two sizes."""
    points = [(math.log(rows), math.log(found["processor_s"])) for rows, found in figures.items() if rows >= 100_000]
    return float(np.polyfit(*zip(*points, strict=True), 1)[0]) if len(points) > 1 else math.nan


def table(state: State) -> list[str]:
    """Return the lines of the tables: every training, and the exponents."""
    by_model: dict[str, dict[int, Figures]] = {}
    for cell, found in state.figures.items():
        by_model.setdefault(cell.model, {})[cell.rows or 0] = found
    rows = []
    for cell, found in sorted(state.figures.items(), key=lambda item: item[0].rows or 0):
        shown = [f"{found[name]:,.0f}" for name in ("peak_mb", "anonymous_mb")]
        times = [f"{found[name]:,.1f}" for name in ("seconds", "processor_s")]
        rows.append([f"{cell.rows:,}", cell.model, f"{found['accuracy']:.2f}", *times, *shown, f"{found['mb']:,.1f}"])
    header = ("rows", "model", "accuracy", "seconds", "processor s", "peak MB", "anonymous MB", "MB")
    exponents = [[name, f"{exponent(found):.2f}"] for name, found in by_model.items() if len(found) > 1]
    return [*markdown_table(header, rows), "", *markdown_table(("model", "exponent"), exponents)]


@click.command()
@click.argument("data", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--rows", default="10000,100000,1000000,3000000,10000000", show_default=True, help="Numbers of rows.")
@click.option("--models", default=";".join(MODELS), show_default=True, help="What is trained.")
@click.option("--work", type=click.Path(exists=True, file_okay=False, path_type=Path), help="Where the rows lie.")
@click.option(
    "--output",
    default=ROOT / "benchmarks" / "scale",
    type=click.Path(path_type=Path),
    help="Without suffix.  [default: benchmarks/scale]",
)
@RESTART
def main(data: Path, rows: str, models: str, work: Path | None, output: Path, restart: bool) -> None:
    """Train on made rows of DATA, in growing numbers."""
    saved = output.with_name(output.name + ".json")
    state = resume(saved, about(), restart)
    real, held_out = read(data / "train.csv"), read(data / "test.csv")
    cells = [Cell(data.name, model, 0, int(size)) for size in rows.split(",") for model in models.split(";")]
    with tempfile.TemporaryDirectory(dir=work) as folder:
        place = Path(folder)
        test = place / "test"
        write_rows(test, held_out_rows(held_out.texts, held_out.labels, seed=1))
        state.run(cells, lambda cell: measure(cell, prepared(data, cell.rows or 0, place), test, place), saved)
    notes = NOTES.format(real=len(real.texts))
    markdown = "\n".join([headline(state.about), "", *table(state), *state.failures(), "", notes])
    output.with_name(output.name + ".md").write_text(markdown, encoding="utf-8")
    click.echo(markdown)
    sys.exit(1 if state.errors else 0)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--peer"]:
        train_peer(*json.loads(sys.argv[2]))
    else:
        main()
