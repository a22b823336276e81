"""Where a text may have several labels: textcls beside one-against-the-rest models of scikit-learn and fastText.

    pip install -r benchmarks/requirements.txt
    python benchmarks/several_labels.py DATA/goemotions_multi DATA/banking77 --join DATA/banking77

DATA is as for compare.py; a cell of the column `label` holds several labels with ";" between them, or "none". A set of
one label a text that is named by --join as well is made into one of several: one to three of its texts, of different
labels and drawn at random, become one text, whose labels are known, 5,000 to train on and 3,000 to test. Thresholds of
the peers are chosen for F1 on a tenth of the training rows, by a model of the other nine tenths; at their own threshold
they are far worse. Written are .json and .md. A second run goes on where the first one stopped.
"""

import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import click
import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import precision_recall_curve
from sklearn.multiclass import OneVsRestClassifier
from sklearn.svm import LinearSVC

from common import FOLDERS, OURS, ROOT, about, data_sets, headline, read
from measure import Bool, Figures, Float
from runner import markdown_table
from state import RESTART, Cell, resume
from textcls import Classifier
from textcls.evaluation.label_set_metrics import report
from textcls.evaluation.metrics import calibration_gap
from textcls.model.tokenizer import tokenize
from textcls_training.config.settings import TrainConfig
from textcls_training.data.label_matrix import LabelMatrix
from textcls_training.data.labelled_texts import LabelledTexts
from textcls_training.pipeline.training import train

SEPARATOR, NO_LABEL = ";", "none"
JOINED_ROWS: Final = (5000, 3000)
FLOOR_DRAWS: Final = 20
WORDS: Final = {"ngram_range": (1, 2), "sublinear_tf": True, "token_pattern": r"(?u)\b\w+\b|[^\w\s]"}
CHARACTERS: Final = {"analyzer": "char_wb", "ngram_range": (2, 5), "sublinear_tf": True}
HEADINGS: Final = {
    "micro_f1": "micro-F1",
    "macro_f1": "macro-F1",
    "samples_f1": "samples-F1",
    "average_precision": "macro average precision",
    "ece": "ECE a label",
    "ece_floor": "its floor",
    "seconds": "training, s",
}
NOTES: Final = """\
F1 and average precision in percent, on the whole test set. ECE: the mean of the labels, and the one that labels drawn
from the very probabilities would have. Training: textcls with calibration, export and its checks, peers the fit alone.
"""

# From texts and their labels [rows, labels] to what scores other texts.
Fit = Callable[[Sequence[str], Bool], Callable[[Sequence[str]], Float]]


class Rows(NamedTuple):
    """Texts, and which labels each has [rows, labels]."""

    texts: list[str]
    gold: Bool


class Answers(NamedTuple):
    """What a model says of the test rows: scores, which labels it assigns, and how long its training took."""

    scores: Float
    thresholds: NDArray[np.float64]
    seconds: float


def several(folder: Path, joined: bool) -> tuple[list[str], Rows, Rows]:
    """Return the labels of a data set, its training rows and its test rows."""
    parts = [read(folder / f"{name}.csv") for name in ("train", "test")]
    rows = []
    for number, part in enumerate(parts):
        if joined:
            rows.append(join(part.texts, part.labels, JOINED_ROWS[number], number))
        else:
            names = [[name for name in cell.split(SEPARATOR) if name != NO_LABEL] for cell in part.labels]
            rows.append((part.texts, names))
    names = sorted({name for labels in rows[0][1] for name in labels})
    known = set(names)
    found = []
    for texts, labels in rows:
        sets = [dict.fromkeys(known.intersection(one), 1.0) for one in labels]
        found.append(Rows(texts, LabelMatrix.of(sets, names).gold()))
    return names, found[0], found[1]


def join(texts: Sequence[str], labels: Sequence[str], rows: int, seed: int) -> tuple[list[str], list[list[str]]]:
    """Return `rows` texts of one to three of `texts` with different labels, and the labels of each."""
    draw = np.random.default_rng(seed)
    names = sorted(set(labels))
    of_label = {name: [i for i, label in enumerate(labels) if label == name] for name in names}
    made: list[str] = []
    answers = []
    for _ in range(rows):
        chosen = [names[i] for i in draw.choice(len(names), draw.choice([1, 2, 3], p=[0.5, 0.3, 0.2]), replace=False)]
        made.append(" ".join(texts[draw.choice(of_label[name])] for name in chosen))
        answers.append(chosen)
    return made, answers


def ours(names: Sequence[str], taught: Rows, test: Rows) -> Answers:
    """Train textcls as it comes, and ask the file."""
    sets = [{names[i]: 1.0 for i in np.flatnonzero(row)} for row in taught.gold]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        start = time.perf_counter()
        train(LabelledTexts(texts=taught.texts, label_sets=sets), path, TrainConfig(device="cpu"))
        seconds = time.perf_counter() - start
        classifier = Classifier.load(path)
        scores = np.array([answer.probabilities for answer in classifier.predict(test.texts)])
    return Answers(scores, np.array(classifier.info.thresholds), seconds)


def peer(fit: Fit, taught: Rows, test: Rows) -> Answers:
    """Fit a peer on all training rows, and choose its thresholds on a tenth of them, by one of the others."""
    start = time.perf_counter()
    scores = fit(taught.texts, taught.gold)
    seconds = time.perf_counter() - start
    order = np.random.default_rng(0).permutation(len(taught.texts))
    held, kept = order[: len(order) // 10], order[len(order) // 10 :]
    part = fit([taught.texts[i] for i in kept], taught.gold[kept])
    found = best_thresholds(part([taught.texts[i] for i in held]), taught.gold[held])
    # Margins become numbers between 0 and 1; neither F1 nor average precision changes with that.
    return Answers(expit(scores(test.texts)), expit(found), seconds)


def best_thresholds(scores: Float, gold: Bool) -> NDArray[np.float64]:
    """Return the threshold of the highest F1 of each label; none is ever assigned that no row has."""
    found = np.full(scores.shape[1], np.inf)
    for i in np.flatnonzero(gold.any(0)):
        precision, recall, at = precision_recall_curve(gold[:, i], scores[:, i])
        f1 = 2 * precision * recall / np.maximum(precision + recall, 1e-12)
        found[i] = at[min(int(f1.argmax()), len(at) - 1)]
    return found


def one_against_rest(features: dict[str, Any], model: Any) -> Fit:
    """Return what fits a linear model for each label on TF-IDF features."""

    def fit(texts: Sequence[str], gold: Bool) -> Callable[[Sequence[str]], Float]:
        vectorizer = TfidfVectorizer(**features)
        fitted = OneVsRestClassifier(model).fit(vectorizer.fit_transform(texts), gold.astype(int))
        return lambda some: fitted.decision_function(vectorizer.transform(some))  # type: ignore[no-any-return]

    return fit


def fasttext_ova(texts: Sequence[str], gold: Bool) -> Callable[[Sequence[str]], Float]:
    """Fit fastText with one logistic loss a label."""
    import fasttext

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "train.txt"
        lines = []
        for text, row in zip(texts, gold, strict=True):
            lines.append(" ".join([*(f"__label__{i}" for i in np.flatnonzero(row)), " ".join(tokenize(text))]))
        path.write_text("\n".join(lines), encoding="utf-8")
        model = fasttext.train_supervised(str(path), loss="ova", wordNgrams=2, epoch=25, lr=0.5, thread=2, verbose=0)

    def scores(some: Sequence[str]) -> Float:
        found = np.zeros((len(some), gold.shape[1]))
        for row, text in zip(found, some, strict=True):
            for label, value in zip(*model.predict(" ".join(tokenize(text)), k=-1), strict=True):
                row[int(label.removeprefix("__label__"))] = value
        return found

    return scores


PEERS: Final[dict[str, Fit]] = {
    "SVM on words": one_against_rest(WORDS, LinearSVC()),
    "LR on words": one_against_rest(WORDS, LogisticRegression(C=10, max_iter=300)),
    "SVM on characters": one_against_rest(CHARACTERS, LinearSVC()),
    "fastText ova": fasttext_ova,
}


def measure(folder: Path, joined: bool, model: str) -> Figures:
    """Train a model on the rows of a data set, and score it on the test rows."""
    names, taught, test = several(folder, joined)
    found = ours(names, taught, test) if model == OURS else peer(PEERS[model], taught, test)
    scored = report(found.scores, test.gold, found.thresholds.tolist(), names)
    figures = {
        name: 100 * getattr(scored, name) for name in ("micro_f1", "macro_f1", "samples_f1", "average_precision")
    }
    if model == OURS:
        figures |= {"ece": scored.ece, "ece_floor": calibration_floor(found.scores)}
    return figures | {"seconds": found.seconds}


def calibration_floor(probabilities: Float) -> float:
    """Return the calibration error a label that would be expected if every probability were exactly right."""
    draw = np.random.default_rng(0)
    errors = []
    for _ in range(FLOOR_DRAWS):
        drawn = draw.random(probabilities.shape) < probabilities
        errors += [calibration_gap(probabilities[:, i], drawn[:, i]) for i in range(drawn.shape[1])]
    return float(np.mean(errors))


@click.command()
@FOLDERS
@click.option(
    "--join",
    "joined",
    multiple=True,
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="A data set of one label a text among DATA whose texts are joined.",
)
@click.option(
    "--output",
    default=ROOT / "benchmarks" / "several_labels",
    type=click.Path(path_type=Path),
    help="Without suffix.  [default: benchmarks/several_labels]",
)
@RESTART
def main(data: tuple[Path, ...], joined: tuple[Path, ...], output: Path, restart: bool) -> None:
    """Measure textcls and its peers on the data sets in DATA, whose texts have several labels."""
    sets, together = data_sets(data), set(data_sets(joined))
    saved = output.with_name(output.name + ".json")
    state = resume(saved, about(), restart)
    cells = [Cell(name, model) for name in sets for model in (OURS, *PEERS)]
    state.run(cells, lambda cell: measure(sets[cell.set], cell.set in together, cell.model), saved)
    lines = []
    for cell, figures in state.measured():
        name = f"{cell.set}, joined" if cell.set in together else cell.set
        lines.append([name, cell.model, *(_shown(column, figures.get(column)) for column in HEADINGS)])
    table = markdown_table(("set", "model", *HEADINGS.values()), lines)
    markdown = "\n".join([headline(state.about), "", *table, *state.failures(), "", NOTES])
    output.with_name(output.name + ".md").write_text(markdown, encoding="utf-8")
    click.echo(markdown)
    sys.exit(1 if state.errors else 0)


def _shown(column: str, value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:.4f}" if column.startswith("ece") else f"{value:.1f}" if column == "seconds" else f"{value:.2f}"


if __name__ == "__main__":
    main()
