"""What unlabelled texts and a teacher bring where labels are few.

    pip install 'textcls[teacher]'
    python benchmarks/few_labels.py DATA/trec6 DATA/sst2 --teacher all-MiniLM-L6-v2

DATA is as for compare.py. Of the training rows, 10,000 at most, some are drawn as labelled ones, and the others lose
their labels. Trained on them are the default model (labels alone), the default model that teaches itself
(self-training), and the student of the teacher, a sentence encoder under logistic regression, which is scored, too. Of
student and labels alone the test rows score what held-out rows preferred. Written are .json and .md. A second run goes
on where the first one stopped.
"""

import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import mean
from typing import Final, NamedTuple

import click
import numpy as np
from common import FOLDERS, OURS, ROOT, about, data_sets, headline, read
from measure import Figures
from state import RESTART, Cell, State, resume

from textcls import Classifier
from textcls_training.config.settings import from_options
from textcls_training.data.labelled_texts import LabelledTexts
from textcls_training.data.split import hashes_of
from textcls_training.data.unlabelled import UnlabelledText, UnlabelledTexts
from textcls_training.distillation.encoder import SentenceEncoder
from textcls_training.distillation.teachers import EncoderTeacher
from textcls_training.pipeline import train
from textcls_training.studies.runner import markdown_table, mean_and_spread

MOST_ROWS: Final = 10_000
ALONE, ITSELF, STUDENT, TEACHER = OURS, f"{OURS} self-training", f"{OURS} student", "teacher"
PACKAGES: Final = ("textcls", "torch", "sentence-transformers", "onnxruntime", "scikit-learn", "numpy")
NOTES = """\
Accuracy on the whole test set in percent, the mean over the draws, ± their standard deviation. Used: in how many draws
held-out rows kept self-training, and the student. Seconds: the whole student, sentence vectors counted if the cache has
none.
"""


class Draw(NamedTuple):
    """Rows with labels, texts of which the labels were forgotten, and test rows."""

    labelled: LabelledTexts
    unlabelled: list[str]
    test: LabelledTexts


def draw(folder: Path, rows: int, seed: int, other: Path | None = None) -> Draw:
    """Draw `rows` labelled rows of the training file in `folder`; unlabelled are the others, or those of `other`."""
    given, test = read(folder / "train.csv"), read(folder / "test.csv")
    texts, labels = given.texts, given.labels
    if len(texts) > MOST_ROWS:
        some = np.random.default_rng(0).permutation(len(texts))[:MOST_ROWS]
        texts, labels = [texts[i] for i in some], [labels[i] for i in some]
    order = np.random.default_rng(seed).permutation(len(texts)).tolist()
    labelled = LabelledTexts(texts=[texts[i] for i in order[:rows]], labels=[labels[i] for i in order[:rows]])
    unlabelled = [texts[i] for i in order[rows:]] if other is None else read(other / "train.csv").texts
    return Draw(labelled, unlabelled, LabelledTexts(texts=test.texts, labels=test.labels))


def measure(folder: Path, cell: Cell, place: str, other: Path | None = None, most: int | None = None) -> Figures:
    """Train what the cell says on at most `most` unlabelled texts, and score it on the test rows."""
    rows = draw(folder, cell.rows or MOST_ROWS, cell.seed, other)
    if cell.model == TEACHER:
        return {"accuracy": teacher_accuracy(rows, place)}
    config = from_options(
        {"teacher": place if cell.model == STUDENT else None, "device": "cpu", "unlabelled_rows": most}
    )
    start = time.perf_counter()
    unlabelled = None
    if cell.model != ALONE:
        texts = (UnlabelledText(text) for text in rows.unlabelled)
        unlabelled = UnlabelledTexts.sample(texts, config.unlabelled_rows, rows.labelled.texts)
    with tempfile.TemporaryDirectory() as temporary:
        path = Path(temporary) / "model.onnx"
        report = train(rows.labelled, path, config, unlabelled=unlabelled)
        seconds = time.perf_counter() - start
        answers = Classifier.load(path).predict(rows.test.texts)
    right = [answer.label == label for answer, label in zip(answers, rows.test.labels, strict=True)]
    found = {"accuracy": 100 * mean(right), "seconds": seconds}
    if report.distillation is not None:
        found["weight"] = report.distillation.weight
        for score in report.distillation.scores:
            name = score.name.replace(" ", "_")
            found |= {f"{name}_held_out": 100 * score.accuracy, f"{name}_cross_entropy": score.cross_entropy}
    return found


def teacher_accuracy(rows: Draw, place: str) -> float:
    """Return the accuracy of the teacher itself on the test rows."""
    encoder = SentenceEncoder(place)
    texts = [*rows.labelled.texts, *rows.test.texts]
    names = rows.labelled.label_names()
    label = np.array([names.index(name) for name in rows.labelled.labels], np.int64)
    teacher = EncoderTeacher(encoder.name, encoder.encode(texts), hashes_of(texts), len(names))
    answers = teacher.answers(np.arange(len(label)), label, np.arange(len(label), len(texts)))
    return 100 * mean(names[i] == right for i, right in zip(answers.argmax(1).tolist(), rows.test.labels, strict=True))


def table(state: State) -> list[str]:
    """Return the lines of the table: a line a set and number of rows."""
    lines: dict[tuple[str, int], dict[str, list[Figures]]] = {}
    for cell, figures in state.measured():
        lines.setdefault((cell.set, cell.rows or 0), {}).setdefault(cell.model, []).append(figures)
    rows = []
    for (name, size), found in lines.items():
        accuracies = [_shown([one["accuracy"] for one in found.get(m, [])]) for m in (ALONE, ITSELF, TEACHER, STUDENT)]
        used = [f"{sum(one['weight'] > 0 for one in found.get(m, []))}" for m in (ITSELF, STUDENT)]
        seconds = [one["seconds"] for one in found.get(STUDENT, [])]
        rows.append([name, f"{size:,}", *accuracies, ", ".join(used), f"{mean(seconds):.0f}" if seconds else "-"])
    return markdown_table(
        ("set", "labelled rows", "labels alone", "self-training", TEACHER, "student", "used", "s"), rows
    )


def _shown(values: Sequence[float]) -> str:
    return mean_and_spread(values) if values else "-"


@click.command()
@FOLDERS
@click.option("--teacher", "place", required=True, help="Folder or name of a sentence-transformers model.")
@click.option("--rows", default="100,300", show_default=True, help="Numbers of labelled rows.")
@click.option("--draws", type=click.IntRange(1), default=2, show_default=True)
@click.option(
    "--unlabelled",
    "other",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="The data set whose texts are the unlabelled ones.  [default: the other training rows]",
)
@click.option("--unlabelled-rows", "most", type=click.IntRange(1), help="As of textcls train.")
@click.option(
    "--output",
    default=ROOT / "benchmarks" / "few_labels",
    type=click.Path(path_type=Path),
    help="Without suffix.  [default: benchmarks/few_labels]",
)
@RESTART
def main(
    data: tuple[Path, ...],
    place: str,
    rows: str,
    draws: int,
    other: Path | None,
    most: int | None,
    output: Path,
    restart: bool,
) -> None:
    """Measure labels alone, self-training, teacher and student on the data sets in DATA."""
    sets, saved = data_sets(data), output.with_name(output.name + ".json")
    state = resume(saved, about(packages=PACKAGES), restart)
    cells = [
        Cell(name, model, seed, int(size))
        for size in rows.split(",")
        for seed in range(draws)
        for name in sets
        for model in (ALONE, STUDENT, TEACHER, ITSELF)
    ]
    state.run(cells, lambda cell: measure(sets[cell.set], cell, place, other, most), saved)
    markdown = "\n".join([headline(state.about), "", *table(state), *state.failures(), "", NOTES])
    output.with_name(output.name + ".md").write_text(markdown, encoding="utf-8")
    click.echo(markdown)
    sys.exit(1 if state.errors else 0)


if __name__ == "__main__":
    main()
