"""What unlabelled texts and a teacher bring where labels are few.

    pip install 'textcls[teacher]'
    python benchmarks/few_labels.py DATA/trec6 DATA/sst2 --teacher all-MiniLM-L6-v2 --vectors english.vectors

DATA is as for compare.py. Of the training rows, 10,000 at most, some are drawn as labelled ones, and the others lose
their labels. Trained on them are the model without vectors (labels alone) and the one with the vectors that few rows of
English get unasked (default); with --teacher the one that teaches itself (self-training), and the student of the
teacher, a sentence encoder under logistic regression, which is scored, too, and the model with the teacher's vectors of
English words, fitted to the texts without labels (vectors + texts); with --vectors also the model and the student with
these vectors. All together is what `--unlabelled` and `--teacher` do: the default and students with vectors and without
are compared. Of student and labels alone the test rows score what held-out rows preferred. Written are .json and .md.
A second run goes on where the first one stopped; what earlier ones have measured may stand --beside it in the table.
"""

import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import mean
from typing import Any, Final, NamedTuple

import click
import numpy as np
from rich.console import Console

from common import FOLDERS, OURS, ROOT, about, data_sets, headline, read
from measure import Figures
from runner import markdown_table, mean_and_spread
from state import RESTART, Cell, State, resume
from textcls import Classifier
from textcls.display.terminal.progress import progress_on
from textcls_training.cli.vectors import DIMS
from textcls_training.config.settings import TrainConfig, from_options
from textcls_training.data.dataset import Dataset
from textcls_training.data.english import english
from textcls_training.data.labelled_texts import LabelledTexts
from textcls_training.data.split import hashes_of
from textcls_training.data.unlabelled import UnlabelledText, UnlabelledTexts
from textcls_training.distillation.teachers import EncoderTeacher
from textcls_training.pipeline.training import train
from textcls_training.vectors import distil, file
from textcls_training.vectors.sentence_encoder import SentenceEncoder

MOST_ROWS: Final = 10_000
ALONE, ITSELF, STUDENT, TEACHER = OURS, f"{OURS} self-training", f"{OURS} student", "teacher"
DEFAULT = f"{OURS} default"
VECTORS, FITTED, BOTH = f"{OURS} vectors", f"{OURS} vectors and texts", f"{OURS} vectors and student"
TOGETHER = f"{OURS} all together"
HEADINGS: Final = {
    ALONE: "labels alone",
    DEFAULT: "default",
    ITSELF: "self-training",
    TEACHER: "teacher",
    STUDENT: "student",
    VECTORS: "vectors",
    FITTED: "vectors + texts",
    BOTH: "vectors and student",
    TOGETHER: "all together",
}
# Who learns from unlabelled texts.
LEARNERS: Final = (ITSELF, STUDENT, BOTH, TOGETHER)
PACKAGES: Final = ("textcls", "torch", "sentence-transformers", "onnxruntime", "scikit-learn", "numpy")
NOTES = """\
Accuracy on the whole test set in percent, the mean over the draws, ± their standard deviation. Used: in how many draws
held-out rows kept what has learned from unlabelled texts: {used}. Seconds: processor time of the
whole training of the student, sentence vectors counted if the cache has none. Mean: of labels alone over the sets of
which everything was measured, then the differences to it.
"""


class Given(NamedTuple):
    """What the trainings are given beside labelled rows: see the options."""

    teacher: str | None
    vectors: Path | None = None
    other: Path | None = None
    most: int | None = None

    def options(self, model: str) -> dict[str, Any]:
        """Return the options of a training of `model`."""
        return {
            "teacher": self.teacher if model in (STUDENT, BOTH, TOGETHER) else None,
            "vectors": self._vectors(model),
            "unlabelled_rows": self.most,
            "device": "cpu",
        }

    def _vectors(self, model: str) -> Path | str | None:
        if model in (DEFAULT, TOGETHER):
            return None
        return (self.vectors or "english") if model in (VECTORS, BOTH) else "none"


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


def measure(folder: Path, cell: Cell, given: Given) -> Figures:
    """Train what the cell says, and score it on the test rows."""
    rows = draw(folder, cell.rows or MOST_ROWS, cell.seed, given.other)
    if cell.model == TEACHER and given.teacher is not None:
        return {"accuracy": teacher_accuracy(rows, given.teacher)}
    config = from_options(given.options(cell.model))
    start = time.process_time()
    unlabelled = None
    if cell.model in (*LEARNERS, FITTED):
        texts = (UnlabelledText(text) for text in rows.unlabelled)
        unlabelled = UnlabelledTexts.sample(texts, config.unlabelled_rows, rows.labelled.texts)
    with tempfile.TemporaryDirectory() as temporary:
        path = Path(temporary) / "model.onnx"
        if cell.model == FITTED and given.teacher is not None and unlabelled is not None:
            config = replace(config, vectors=Path(temporary) / "fitted.vectors")
            fitted_vectors(given.teacher, unlabelled.texts, Path(temporary) / "fitted.vectors")
            unlabelled = None
        report = train(rows.labelled, path, config, unlabelled=unlabelled)
        seconds = time.process_time() - start
        answers = Classifier.load(path).predict(rows.test.texts)
    right = [answer.label == label for answer, label in zip(answers, rows.test.labels, strict=True)]
    found = {"accuracy": 100 * mean(right), "seconds": seconds}
    if report.distillation is not None:
        found["weight"] = report.distillation.weight
        for score in report.distillation.scores:
            name = score.name.replace(" ", "_")
            found |= {f"{name}_held_out": 100 * score.accuracy, f"{name}_cross_entropy": score.cross_entropy}
    return found


def fitted_vectors(place: str, texts: list[str], path: Path) -> None:
    """Write the teacher's vectors of the English words that come along, fitted to `texts`."""
    with progress_on(Console(stderr=True, quiet=True)) as progress:
        words, row_VD = distil.distilled(place, english().words, texts, DIMS, progress)
    file.save(path, words, row_VD, {}, 8)


def teacher_accuracy(rows: Draw, place: str) -> float:
    """Return the accuracy of the teacher itself on the test rows."""
    encoder = SentenceEncoder(place)
    texts = [*rows.labelled.texts, *rows.test.texts]
    names = rows.labelled.label_names()
    labelled = Dataset.of(rows.labelled, names, TrainConfig().max_tokens)
    teacher = EncoderTeacher(encoder.name, encoder.encode(texts), hashes_of(texts), len(names))
    asked = np.arange(len(labelled.labels), len(texts))
    answers = teacher.answers(np.arange(len(labelled.labels)), labelled, asked)
    return 100 * mean(names[i] == right for i, right in zip(answers.argmax(1).tolist(), rows.test.labels, strict=True))


def table(state: State) -> list[str]:
    """Return the lines of the table: a line a set and number of rows, and one a number of rows of all sets."""
    lines: dict[tuple[str, int], dict[str, list[Figures]]] = {}
    for cell, figures in state.measured():
        lines.setdefault((cell.set, cell.rows or 0), {}).setdefault(cell.model, []).append(figures)
    models = _models(state)
    learners = [model for model in LEARNERS if model in models]
    rows = []
    for (name, size), found in lines.items():
        accuracies = [_shown([one["accuracy"] for one in found.get(model, [])]) for model in models]
        used = [f"{sum(one['weight'] > 0 for one in found.get(model, []))}" for model in learners]
        seconds = [one["seconds"] for one in found.get(STUDENT, found.get(TOGETHER, []))]
        rows.append([name, f"{size:,}", *accuracies, ", ".join(used), f"{mean(seconds):.0f}" if seconds else "-"])
    rows += [line for size in sorted({size for _, size in lines}) if (line := _differences(lines, models, size))]
    return markdown_table(("set", "labelled rows", *(HEADINGS[model] for model in models), "used", "s"), rows)


def notes(state: State) -> str:
    """Return what is to be known of the table."""
    models = _models(state)
    return NOTES.format(used=", ".join(HEADINGS[model] for model in LEARNERS if model in models))


def joined(runs: Sequence[State]) -> State:
    """Return what the runs have measured; of a cell that several have, what the first of them says."""
    figures = {cell: found for run in reversed(runs) for cell, found in run.figures.items()}
    sets = list(dict.fromkeys(cell.set for run in runs for cell in run.figures))
    order = sorted(figures, key=lambda cell: (sets.index(cell.set), cell.rows or 0))
    return State(runs[0].about, {cell: figures[cell] for cell in order})


def _headline(run: State, *, several: bool) -> str:
    """Return the line that says when a run was; of several also what it has measured."""
    measured = ", ".join(HEADINGS[model] for model in _models(run))
    return f"{measured}: {headline(run.about)}" if several else headline(run.about)


def _models(state: State) -> list[str]:
    """Return what was measured, in the order of the columns."""
    measured = {cell.model for cell in state.figures}
    return [model for model in HEADINGS if model in measured]


def _differences(
    lines: Mapping[tuple[str, int], Mapping[str, Sequence[Figures]]], models: Sequence[str], size: int
) -> list[str]:
    """Return the line of all sets at so many rows, if one has all models of that size with as many draws."""
    sets = [found for (_, rows), found in lines.items() if rows == size]
    measured = [model for model in models if any(model in found for found in sets)]
    whole = [found for found in sets if len({len(found.get(model, [])) for model in measured}) == 1]
    if not whole or ALONE not in measured:
        return []
    means = {model: mean(mean(one["accuracy"] for one in found[model]) for found in whole) for model in measured}
    others = (f"{means[model] - means[ALONE]:+.2f}" if model in means else "-" for model in models if model != ALONE)
    return ["mean", f"{size:,}", f"{means[ALONE]:.2f}", *others, "", ""]


def _shown(values: Sequence[float]) -> str:
    return mean_and_spread(values) if values else "-"


@click.command()
@FOLDERS
@click.option(
    "--teacher",
    "place",
    help="Folder or name of a sentence-transformers model: measures it, and who learns from unlabelled texts.",
)
@click.option(
    "--vectors",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A file of word vectors: measures them, too, and the student with them.",
)
@click.option("--rows", default="100,300,1000", show_default=True, help="Numbers of labelled rows.")
@click.option("--draws", type=click.IntRange(1), default=2, show_default=True)
@click.option(
    "--unlabelled",
    "other",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="The data set whose texts are the unlabelled ones.  [default: the other training rows]",
)
@click.option("--unlabelled-rows", "most", type=click.IntRange(1), help="As of textcls train.")
@click.option("--only", help="The columns that are measured, with commas.  [default: all that is given allows]")
@click.option(
    "--beside",
    multiple=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="The .json of an earlier run, which stands in the table, too, where this one has measured nothing.",
)
@click.option(
    "--output",
    default=ROOT / "benchmarks" / "few_labels",
    type=click.Path(path_type=Path),
    help="Without suffix.  [default: benchmarks/few_labels]",
)
@RESTART
def main(
    data: tuple[Path, ...],
    place: str | None,
    vectors: Path | None,
    rows: str,
    draws: int,
    other: Path | None,
    most: int | None,
    only: str | None,
    beside: tuple[Path, ...],
    output: Path,
    restart: bool,
) -> None:
    """Measure labels alone, self-training, teacher and student, with vectors or without, on the data sets in DATA."""
    given = Given(place, vectors, other, most)
    possible = {ALONE, DEFAULT, *((STUDENT, TEACHER, ITSELF, FITTED, TOGETHER) if place else ())}
    possible |= {VECTORS, BOTH} if vectors else set()
    wanted = only.split(",") if only else [HEADINGS[model] for model in possible]
    models = [model for model, heading in HEADINGS.items() if model in possible and heading in wanted]
    sets, saved = data_sets(data), output.with_name(output.name + ".json")
    state = resume(saved, about(packages=PACKAGES), restart)
    cells = [
        Cell(name, model, seed, int(size))
        for size in rows.split(",")
        for seed in range(draws)
        for name in sets
        for model in models
    ]
    state.run(cells, lambda cell: measure(sets[cell.set], cell, given), saved)
    runs = [state, *map(State.load, beside)]
    shown = joined(runs)
    heads = [line for run in runs for line in (_headline(run, several=len(runs) > 1), "")]
    markdown = "\n".join([*heads, *table(shown), *state.failures(), "", notes(shown)])
    output.with_name(output.name + ".md").write_text(markdown, encoding="utf-8")
    click.echo(markdown)
    sys.exit(1 if state.errors else 0)


if __name__ == "__main__":
    main()
