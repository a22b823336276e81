"""What texts without labels teach by themselves: vectors of words, learned from the texts of the training file.

    python benchmarks/pretraining.py DATA/trec6 DATA/sst2 --vectors WORK

The vectors are learned from all texts of train.csv, whose labels are not looked at, once a data set. Some rows are then
drawn as labelled ones, as few_labels.py draws them, and one model is trained on them with these vectors, one on
labels alone; beside them stand the figures of the default (English vectors where they suit) and of self-training.
Written are .json and .md. A second run goes on where the first one stopped.
"""

import sys
import tempfile
import time
from pathlib import Path
from statistics import mean
from typing import Final

import click

from common import FOLDERS, ROOT, about, data_sets, headline
from few_labels import ALONE, DEFAULT, ITSELF, draw
from measure import Figures
from runner import markdown_table, mean_and_spread
from state import RESTART, Cell, State, resume
from textcls import Classifier
from textcls_training.config.pretraining import PretrainConfig
from textcls_training.config.settings import from_options
from textcls_training.pipeline.training import train
from textcls_training.pretraining.run import pretrain
from textcls_training.pretraining.texts import read_texts

COUNTED: Final = "cooccurrence"
HEADINGS: Final = {
    ALONE: "labels alone",
    DEFAULT: "default",
    ITSELF: "self-training",
    COUNTED: COUNTED,
}
NOTES: Final = """\
Accuracy on the whole test set in percent, mean over the draws ± their standard deviation; default, self-training, and
labels alone where they were not measured anew, are those of few_labels.py at that time, of the same draws. Below:
processor seconds of learning.
"""


def learn(folder: Path, vectors: Path) -> Figures:
    """Learn vectors from the texts of a data set, and return how long that took, and of how many words."""
    texts, _ = read_texts([folder / "train.csv"], ["text"], limit=1_000_000)
    start = time.process_time()
    told = pretrain(texts, vectors, PretrainConfig()).to_json()
    return {"seconds": time.process_time() - start, "tokens": float(told["tokens"]), "words": float(told["words"])}


def accuracy(folder: Path, cell: Cell, vectors: Path | str) -> Figures:
    """Train on the labelled rows of the cell with `vectors`, and score the test rows."""
    rows = draw(folder, cell.rows or 0, cell.seed)
    start = time.process_time()
    with tempfile.TemporaryDirectory() as temporary:
        path = Path(temporary) / "model.onnx"
        train(rows.labelled, path, from_options({"vectors": vectors, "device": "cpu"}))
        seconds = time.process_time() - start
        answers = Classifier.load(path).predict(rows.test.texts)
    right = [answer.label == label for answer, label in zip(answers, rows.test.labels, strict=True)]
    return {"accuracy": 100 * mean(right), "seconds": seconds}


def others() -> dict[Cell, Figures]:
    """Return what few_labels.py has measured of labels alone, the default and self-training."""
    figures = State.load(ROOT / "benchmarks" / "few_labels.json").figures
    return {cell: found for cell, found in figures.items() if cell.model in (ALONE, DEFAULT, ITSELF)}


def accuracy_table(state: State, beside: dict[Cell, Figures]) -> list[str]:
    """Return the lines of accuracy: one a set and number of rows, and one a number of rows of all sets."""
    measured = {cell: figures for cell, figures in state.measured() if cell.rows}
    keys = sorted({(cell.set, cell.rows or 0) for cell in measured}, key=lambda key: key[1])
    everything = {**beside, **measured}
    lines, means = [], {}
    for name, size in keys:
        accuracies = {
            model: [f["accuracy"] for c, f in everything.items() if (c.set, c.rows, c.model) == (name, size, model)]
            for model in HEADINGS
        }
        lines.append([name, f"{size:,}", *(mean_and_spread(found) if found else "-" for found in accuracies.values())])
        for model, found in accuracies.items():
            if found:
                means.setdefault((size, model), {})[name] = mean(found)
    for size in sorted({size for _, size in keys}):
        sets = {name for name, rows in keys if rows == size}
        whole = [means.get((size, model), {}) for model in HEADINGS]
        cells = [f"{mean(found.values()):.2f}" if set(found) >= sets else "-" for found in whole]
        lines.append(["mean", f"{size:,}", *cells])
    return markdown_table(("set", "labelled rows", *HEADINGS.values()), lines)


def learning_table(state: State) -> list[str]:
    """Return the lines of what learning took: one a set."""
    lines = [
        [cell.set, f"{found['seconds']:.0f}", f"{found['words']:,.0f}"]
        for cell, found in state.measured()
        if not cell.rows
    ]
    return markdown_table(("set", "s", "words"), lines)


@click.command()
@FOLDERS
@click.option("--rows", default="100,300,1000", show_default=True, help="Numbers of labelled rows.")
@click.option("--draws", type=click.IntRange(1), default=3, show_default=True)
@click.option(
    "--vectors",
    "work",
    type=click.Path(file_okay=False, path_type=Path),
    required=True,
    help="A folder to keep the learned vectors in.",
)
@click.option(
    "--output",
    default=ROOT / "benchmarks" / "pretraining",
    type=click.Path(path_type=Path),
    help="Without suffix.  [default: benchmarks/pretraining]",
)
@RESTART
def main(data: tuple[Path, ...], rows: str, draws: int, work: Path, output: Path, restart: bool) -> None:
    """Measure vectors that were learned from the texts alone, on the data sets in DATA."""
    sets, saved = data_sets(data), output.with_name(output.name + ".json")
    work.mkdir(parents=True, exist_ok=True)
    state = resume(saved, about(), restart)

    def vectors_of(cell: Cell) -> Path:
        return work / f"{cell.set}.vectors"

    def measure(cell: Cell) -> Figures:
        folder, vectors = sets[cell.set], vectors_of(cell)
        if not cell.rows:
            return learn(folder, vectors)
        return accuracy(folder, cell, "none" if cell.model == ALONE else vectors)

    cells = [Cell(name, COUNTED) for name in sets]
    for model in (COUNTED, ALONE):
        sizes = [int(size) for size in rows.split(",")]
        cells += [Cell(name, model, seed, size) for size in sizes for name in sets for seed in range(draws)]
    state.run(cells, measure, saved)
    tables = [*accuracy_table(state, others()), "", *learning_table(state)]
    markdown = "\n".join([headline(state.about), "", *tables, *state.failures(), "", NOTES])
    output.with_name(output.name + ".md").write_text(markdown, encoding="utf-8")
    click.echo(markdown)
    sys.exit(1 if state.errors else 0)


if __name__ == "__main__":
    main()
