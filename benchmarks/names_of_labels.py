"""What the names of labels bring where rows are few: accuracy of held-out rows without them and with them.

    python benchmarks/names_of_labels.py DATA/banking77 DATA/trec6 --rows 3 --rows 10 --draws 3

DATA is as for compare.py. Rows are drawn of its training part, and so are 2,000 others that judge. Printed are
lines, each of a set and a number of rows a label.
"""

import random
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path

import click
import numpy as np

from common import FOLDERS, data_sets, read
from textcls import Classifier, evaluate
from textcls_training.config.settings import TrainConfig
from textcls_training.data.labelled_texts import LabelledTexts
from textcls_training.pipeline import about_labels
from textcls_training.pipeline.training import train

JUDGES = 2_000


@click.command()
@FOLDERS
@click.option("--rows", multiple=True, default=(3, 10, 30), show_default=True, help="Rows of each label.")
@click.option("--draws", default=3, show_default=True)
def main(data: tuple[Path, ...], rows: tuple[int, ...], draws: int) -> None:
    """Train on few rows of each label, without names and with them."""
    about_labels.RARE_ROWS = 10**9  # type: ignore[misc]  # beyond where names teach, too
    warnings.simplefilter("ignore")
    for name, folder in data_sets(data).items():
        given = read(folder / "train.csv")
        pairs = [*zip(given.texts, given.labels, strict=True)]
        for number in rows:
            found = np.array([[*_accuracies(pairs, number, draw)] for draw in range(draws)])
            without, beside = 100 * found.mean(0)
            click.echo(f"{name}, {number} rows a label: {without:.1f} -> {beside:.1f}")


def _accuracies(pairs: list[tuple[str, str]], number: int, draw: int) -> Iterator[float]:
    """Yield the accuracy without names, and with them."""
    pairs = random.Random(draw).sample(pairs, len(pairs))
    seen: dict[str, int] = {}
    taught, judges = [], []
    for text, label in pairs:
        seen[label] = seen.get(label, 0) + 1
        (taught if seen[label] <= number else judges).append((text, label))
    given = LabelledTexts(texts=[text for text, _ in taught], labels=[label for _, label in taught])
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        for names in ("none", None):
            train(given, path, TrainConfig(label_names=names))
            yield evaluate(Classifier.load(path), judges[:JUDGES]).report.accuracy


if __name__ == "__main__":
    main()
