"""Columns beside the text: textcls with and without them, beside a pipeline of scikit-learn and LightGBM on the same.

    pip install -r benchmarks/requirements.txt
    python benchmarks/columns.py DATA

DATA is a folder with the sets disaster_tweets, clothing_reviews and ag_news, each a train.csv and a test.csv. Each run
draws nine tenths of the training rows (3,000 of ag_news) by its seed. ag_news has no columns: one that tells the label
of half of the rows, and ten of noise, are made. The pipeline has TF-IDF of words and pairs of each text column, a
feature a category, scaled numbers, and a logistic regression whose C is the best of three by cross-validation; LightGBM
has the same features and stops by a tenth of the rows. Written are .json and .md. A second run goes on where the first
one stopped. The test files of two sets are small: with --folds 5 each fifth of the training rows is answered by models
of the others, and the test files stay unread.
"""

import csv
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import mean
from typing import Any, Final, NamedTuple

import click
import numpy as np
from lightgbm import LGBMClassifier, early_stopping
from numpy.typing import NDArray
from scipy import sparse
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import textcls
from common import OURS, about, headline
from measure import Figures, Float
from runner import markdown_table, mean_and_spread
from state import RESTART, Cell, resume
from textcls.model.classifier import Text

NOISE: Final = tuple(f"noise {i}" for i in range(10))
ROWS_OF_NEWS: Final = 3000
OURS_ALONE: Final = f"{OURS}, text alone"
Row = dict[str, str]


class Case(NamedTuple):
    """What is learned of a set: the text columns, those beside the text, and the label."""

    set: str
    texts: Sequence[str]
    columns: Sequence[str]
    numbers: Sequence[str] = ()
    label: str = "label"


_CLOTHES: Final = ("age", "helpful_votes", "division", "department", "class")
CASES: Final = {
    "disaster tweets": Case("disaster_tweets", ["text"], ["keyword", "location"]),
    "clothing reviews": Case("clothing_reviews", ["title", "review"], _CLOTHES, ["age", "helpful_votes"]),
    "clothing reviews, with the rating": Case(
        "clothing_reviews", ["title", "review"], [*_CLOTHES, "rating"], ["age", "helpful_votes", "rating"]
    ),
    "clothing reviews, the department": Case(
        "clothing_reviews",
        ["title", "review"],
        ["age", "helpful_votes", "rating"],
        ["age", "helpful_votes", "rating"],
        "department",
    ),
    "news, half told and ten of noise": Case("ag_news", ["text"], ["half", *NOISE], NOISE[::2]),
    "news, ten of noise": Case("ag_news", ["text"], NOISE, NOISE[::2]),
}


class Split(NamedTuple):
    """Training and test rows."""

    train: list[Row]
    test: list[Row]


def drawn(data: Path, case: Case, seed: int) -> Split:
    """Draw the training rows of a run, and make the columns that there are not."""
    train, test = map(_read, _files(data / case.set))
    draw = np.random.default_rng(seed)
    rows = ROWS_OF_NEWS if case.set == "ag_news" else round(0.9 * len(train))
    train = [train[i] for i in draw.permutation(len(train))[:rows]]
    if case.set == "ag_news":
        for row in (*train, *test):
            row["half"] = row["label"] if draw.random() < 0.5 else "?"
            row |= {name: str(draw.normal()) if name in case.numbers else str(draw.integers(20)) for name in NOISE}
    return Split(train, test)


def held_out(data: Path, case: Case, seed: int, folds: int) -> list[Split]:
    """Return the training rows in turn as test rows of models of the others; of ag_news as many as are drawn."""
    rows = drawn(data, case, seed).train if case.set == "ag_news" else _read(_files(data / case.set)[0])
    part = np.random.default_rng(seed).permutation(np.arange(len(rows)) % folds)
    return [
        Split(*([row for row, its in zip(rows, part, strict=True) if (its == k) == test] for test in (False, True)))
        for k in range(folds)
    ]


def _read(path: Path) -> list[Row]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def _files(folder: Path) -> tuple[Path, Path]:
    return folder / "train.csv", folder / "test.csv"


def _ours(case: Case, split: Split, seed: int, *, columns: bool) -> Float:
    names = [f"{name}:number" if name in case.numbers else f"{name}:category" for name in case.columns]
    wanted = [*case.texts, *(case.columns if columns else ())]

    def rows(given: list[Row]) -> list[Text]:
        return [{name: row[name] for name in wanted} for row in given]

    with tempfile.TemporaryDirectory() as folder:
        labels = [row[case.label] for row in split.train]
        model = textcls.train(
            rows(split.train), labels, Path(folder) / "m.onnx", columns=names if columns else (), seed=seed
        )
        found = model.predict(rows(split.test))
    return np.array([answer.probabilities for answer in found], np.float64)


def _features(case: Case, split: Split) -> tuple[Any, Any]:
    """Return the features of training and test rows."""
    parts: list[tuple[Any, Any]] = []
    for name in case.texts:
        words = TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True, min_df=2)
        parts.append((words.fit_transform(_cells(split.train, name)), words.transform(_cells(split.test, name))))
    categories = [name for name in case.columns if name not in case.numbers]
    if categories:
        values = OneHotEncoder(handle_unknown="ignore", min_frequency=2)
        train, test = (_table(rows, categories) for rows in split)
        parts.append((values.fit_transform(train), values.transform(test)))
    if case.numbers:
        scale = StandardScaler()
        train, test = (_table(rows, case.numbers).astype(float) for rows in split)
        parts.append((scale.fit_transform(train), scale.transform(test)))
    train, test = (sparse.csr_matrix(sparse.hstack(side)) for side in zip(*parts, strict=True))
    return train, test


def _cells(rows: list[Row], name: str) -> list[str]:
    return [row[name] for row in rows]


def _table(rows: list[Row], names: Sequence[str]) -> NDArray[Any]:
    return np.array([[row[name] for name in names] for row in rows], object)


def _pipeline(case: Case, split: Split, seed: int) -> Float:
    train, test = _features(case, split)
    found = GridSearchCV(LogisticRegression(max_iter=2000), {"C": [1, 10, 100]}, cv=5, scoring="neg_log_loss")
    found.fit(train, _cells(split.train, case.label))
    return np.asarray(found.predict_proba(test))


def _boosting(case: Case, split: Split, seed: int) -> Float:
    train, test = _features(case, split)
    labels = np.array(_cells(split.train, case.label))
    fit, stop = train_test_split(np.arange(len(labels)), test_size=0.1, random_state=seed, stratify=labels)
    model = LGBMClassifier(n_estimators=1000, learning_rate=0.05, random_state=seed, verbose=-1, n_jobs=2)
    model.fit(
        train[fit].astype(np.float32),
        labels[fit],
        eval_set=[(train[stop].astype(np.float32), labels[stop])],
        callbacks=[early_stopping(50, verbose=False)],
    )
    return np.asarray(model.predict_proba(test.astype(np.float32)))


MODELS: Final[dict[str, Callable[[Case, Split, int], Float]]] = {
    OURS_ALONE: lambda case, split, seed: _ours(case, split, seed, columns=False),
    f"{OURS}, with columns": lambda case, split, seed: _ours(case, split, seed, columns=True),
    "TF-IDF, one-hot, logistic regression": _pipeline,
    "LightGBM on the same": _boosting,
}


def measure(data: Path, name: str, model: str, seeds: Sequence[int], folds: int) -> Figures:
    """Train with each seed, and answer the test rows, or those of each fold."""
    case = CASES[name]
    found: dict[str, list[float]] = {"accuracy": [], "cross_entropy": [], "seconds": []}
    for seed in seeds:
        start = time.perf_counter()
        is_right, right = [], []
        for split in held_out(data, case, seed, folds) if folds else [drawn(data, case, seed)]:
            known = sorted({row[case.label] for row in split.train})
            rows = [i for i, row in enumerate(split.test) if row[case.label] in known]
            gold = np.array([known.index(split.test[i][case.label]) for i in rows])
            probability_RC = MODELS[model](case, split, seed)[rows]
            is_right += (probability_RC.argmax(1) == gold).tolist()
            right += probability_RC[np.arange(len(gold)), gold].tolist()
        found["seconds"].append(time.perf_counter() - start)
        found["accuracy"].append(100 * mean(is_right))
        found["cross_entropy"].append(float(-np.log(np.maximum(right, 1e-6)).mean()))
    return {
        "accuracy": mean_and_spread(found["accuracy"]),
        "cross_entropy": f"{mean(found['cross_entropy']):.3f}",
        "seconds": f"{mean(found['seconds']):.1f}",
    }


@click.command()
@click.argument("data", type=click.Path(path_type=Path, exists=True, file_okay=False))
@click.option("--seeds", default="1,2,3", show_default=True, help="Of the draws and of the trainings.")
@click.option("--folds", default=0, help="Answer each of so many folds of the training rows; 0 answers the test files.")
@click.option(
    "--case", "cases", multiple=True, type=click.Choice([*CASES]), help="Measure this one alone; may be repeated."
)
@click.option("--output", type=click.Path(path_type=Path), default=Path(__file__).with_suffix(""))
@RESTART
def main(data: Path, seeds: str, folds: int, cases: tuple[str, ...], output: Path, restart: bool) -> None:
    """Measure textcls with and without columns, and its peers, on the sets in DATA."""
    saved = output.with_name(output.name + ".json")
    drawn_by = [int(seed) for seed in seeds.split(",")]
    state = resume(saved, about() | {"seeds": seeds, "folds": folds}, restart)
    state.run(
        [Cell(name, model) for name in cases or CASES for model in MODELS],
        lambda cell: measure(data, cell.set, cell.model, drawn_by, folds),
        saved,
    )
    lines = [[cell.set, cell.model, *map(str, figures.values())] for cell, figures in state.measured()]
    table = markdown_table(("set", "model", "accuracy, %", "cross-entropy", "training and answers, s"), lines)
    how = f"Seeds {seeds}." + (
        f" Each of {folds} folds of the training rows answered by models of the others." if folds else ""
    )
    markdown = "\n".join([headline(state.about), how, "", *table, *state.failures(), ""])
    output.with_name(output.name + ".md").write_text(markdown, encoding="utf-8")
    click.echo(markdown)
    sys.exit(1 if state.errors else 0)


if __name__ == "__main__":
    main()
