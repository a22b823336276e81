"""How good labels are that are made of a few examples, and labels that are taught to a trained model.

    pip install 'textcls[teacher]'
    python benchmarks/prototypes.py DATA/banking77 DATA/trec6 --teacher all-MiniLM-L6-v2 --held-out banking77

DATA is as for compare.py. Few: so many rows of each label, drawn from the training rows, are all that is known.
Measured are the linear head (textcls), prototypes with attention over the support rows and with their plain mean, and,
with --teacher, sentence vectors by nearest mean and by the five nearest neighbours. Taught: a model is trained on all
rows of all labels but ten, which are then taught by so many examples; accuracy is that on test rows of the other labels
and of the ten, all labels being possible answers; beside it training anew on all these rows. Written are .json and .md.
A second run goes on where the first one stopped.
"""

import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import mean
from typing import Any, Final, NamedTuple

import click
import numpy as np

from common import FOLDERS, ROOT, about, data_sets, headline, read
from measure import Figures
from runner import markdown_table, mean_and_spread
from state import RESTART, Cell, State, resume
from textcls import Classifier
from textcls.model.teaching import teach
from textcls.model.teaching.scores import padded, scores
from textcls.model.teaching.support import Support
from textcls.model.teaching.teach import embed
from textcls_training.config.settings import from_options
from textcls_training.data.labelled_texts import LabelledTexts
from textcls_training.pipeline.training import train
from textcls_training.vectors.sentence_encoder import SentenceEncoder

PACKAGES: Final = ("textcls", "torch", "sentence-transformers", "onnxruntime", "scikit-learn", "numpy")
HELD_OUT: Final = 10
NEIGHBOURS: Final = 5
# Of a label, so many training rows are encoded where labels are taught.
ENCODED_ROWS: Final = 30
LINEAR, PROTOTYPES, SENTENCES = "textcls linear", "textcls prototypes", "sentence vectors"
ANEW, TAUGHT, TAUGHT_ENGLISH = "textcls anew", "textcls taught", "textcls taught, vectors"
NOTES = """\
Accuracy in percent on {test:,} test rows at most, the mean over the draws, ± their standard deviation. Few: so many
rows of each label are all that is known. Taught: old / new, the accuracy on test rows of the labels of the training and
on those of the ten that were taught; before: of the old ones before anything was taught. Seconds: of teaching all ten.
"""

Rows = tuple[list[str], list[str]]


class Given(NamedTuple):
    """What a run is given."""

    teacher: str | None
    test_rows: int


def few(rows: Rows, each: int, seed: int) -> Rows:
    """Return `each` rows of each label."""
    order = np.random.default_rng(seed).permutation(len(rows[0])).tolist()
    found: dict[str, list[int]] = defaultdict(list)
    for i in order:
        if len(found[rows[1][i]]) < each:
            found[rows[1][i]].append(i)
    which = sorted(i for numbers in found.values() for i in numbers)
    return [rows[0][i] for i in which], [rows[1][i] for i in which]


def test_rows(folder: Path, most: int) -> Rows:
    """Return at most so many test rows, evenly from all."""
    test = read(folder / "test.csv")
    which = np.unique(np.linspace(0, len(test.texts) - 1, most).astype(int)).tolist()
    return [test.texts[i] for i in which], [test.labels[i] for i in which]


def trained(rows: Rows, **options: Any) -> tuple[Classifier, bytes]:
    """Train on rows; return the model, and the content of its file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        train(LabelledTexts(texts=rows[0], labels=rows[1]), path, from_options({"device": "cpu", **options}))
        return Classifier.load(path), path.read_bytes()


def right(answers: Sequence[str], rows: Rows) -> float:
    """Return the share of right answers in percent."""
    return 100 * mean(answer == label for answer, label in zip(answers, rows[1], strict=True)) if rows[0] else 0.0


def answers_of(classifier: Classifier, rows: Rows) -> list[str]:
    """Return the most probable label of each row."""
    return [answer.label for answer in classifier.predict(rows[0])]


def averaged(classifier: Classifier, data: bytes, rows: Rows) -> list[str]:
    """Return the nearest label of each row where its prototype is the plain mean of its support rows."""
    support = Support.of_file(data, classifier.path)
    together = padded(np.concatenate(support.of_label), np.array(support.prototypes.counts))
    vectors = embed(classifier, rows[0])[0]
    found: list[str] = []
    for start in range(0, len(vectors), 64):
        cosine_BC = scores(vectors[start : start + 64], *together, 1e-6).cosine_BC
        found += [classifier.labels[i] for i in cosine_BC.argmax(1).tolist()]
    return found


def sentence_answers(teacher: str, known: Rows, rows: Rows) -> dict[str, list[str]]:
    """Return the label of the nearest mean of sentence vectors, and that of most of the nearest neighbours."""
    encoder = SentenceEncoder(teacher)
    vector_NF, query_RF = (_unit(np.asarray(encoder.encode(texts))) for texts in (known[0], rows[0]))
    names = sorted(set(known[1]))
    label_N = np.array([names.index(label) for label in known[1]])
    mean_CF = _unit(np.stack([vector_NF[label_N == i].mean(0) for i in range(len(names))]))
    cosine_RN = query_RF @ vector_NF.T
    nearest_RK = np.argsort(-cosine_RN, axis=1, kind="stable")[:, :NEIGHBOURS]
    votes_RC = np.zeros((len(query_RF), len(names)))
    for i, nearest_K in enumerate(nearest_RK):
        np.add.at(votes_RC[i], label_N[nearest_K], cosine_RN[i, nearest_K])
    best = {"mean": (query_RF @ mean_CF.T).argmax(1), "neighbours": votes_RC.argmax(1)}
    return {name: [names[i] for i in found.tolist()] for name, found in best.items()}


def _unit(vector_NF: Any) -> Any:
    return vector_NF / np.maximum(np.linalg.norm(vector_NF, axis=1, keepdims=True), 1e-12)


# Few rows a label


def measure_few(folder: Path, cell: Cell, given: Given) -> Figures:
    """Know `cell.rows` rows of each label, and nothing else."""
    all_rows = read(folder / "train.csv")
    known = few((all_rows.texts, all_rows.labels), cell.rows or 1, cell.seed)
    test = test_rows(folder, given.test_rows)
    if cell.model == LINEAR:
        return {"accuracy": right(answers_of(trained(known)[0], test), test)}
    if cell.model == PROTOTYPES:
        classifier, data = trained(known, head="prototypes")
        averages = right(averaged(classifier, data, test), test)
        return {"accuracy": right(answers_of(classifier, test), test), "averaging": averages}
    found = sentence_answers(given.teacher or "", known, test)
    return {name: right(answers, test) for name, answers in found.items()}


# Labels that are taught


class HeldOut(NamedTuple):
    """Training rows of old labels, examples of new ones, and test rows of both."""

    old: Rows
    new: dict[str, list[str]]
    old_test: Rows
    new_test: Rows


def held_out(folder: Path, each: int, seed: int, most: int) -> HeldOut:
    """Hold ten labels out, and draw `each` examples of them."""
    all_rows = read(folder / "train.csv")
    rows = all_rows.texts, all_rows.labels
    names = sorted(set(rows[1]))
    held = set(np.random.default_rng(100 + seed).choice(names, HELD_OUT, replace=False).tolist())
    new = few(_only(rows, lambda label: label in held), each, seed)
    examples: dict[str, list[str]] = {label: [] for label in sorted(held)}
    for text, label in zip(*new, strict=True):
        examples[label].append(text)
    test = read(folder / "test.csv")
    every = test.texts, test.labels
    old_test = _only(test_rows(folder, most), lambda label: label not in held)
    return HeldOut(
        _only(rows, lambda label: label not in held), examples, old_test, _only(every, lambda label: label in held)
    )


def _only(rows: Rows, wanted: Callable[[str], bool]) -> Rows:
    pairs = [(text, label) for text, label in zip(*rows, strict=True) if wanted(label)]
    return [text for text, _ in pairs], [label for _, label in pairs]


def _with_examples(old: Rows, new: dict[str, list[str]]) -> Rows:
    pairs = [(text, label) for label, texts in new.items() for text in texts]
    return old[0] + [text for text, _ in pairs], old[1] + [label for _, label in pairs]


_TRAINED: dict[tuple[str, int, str], tuple[Classifier, bytes]] = {}


def measure_taught(folder: Path, cell: Cell, given: Given) -> Figures:
    """Teach ten labels by `cell.rows` examples each to a model of the others, or do what stands beside that."""
    found = held_out(folder, cell.rows or 1, cell.seed, given.test_rows)
    if cell.model == ANEW:
        classifier, _ = trained(_with_examples(found.old, found.new))
        return _old_and_new(found, lambda rows: answers_of(classifier, rows))
    if cell.model == SENTENCES:
        known = _with_examples(few(found.old, ENCODED_ROWS, cell.seed), found.new)
        both = found.old_test[0] + found.new_test[0], found.old_test[1] + found.new_test[1]
        figures: Figures = {}
        for name, answers in sentence_answers(given.teacher or "", known, both).items():
            figures[f"old_{name}"] = right(answers[: len(found.old_test[0])], found.old_test)
            figures[f"new_{name}"] = right(answers[len(found.old_test[0]) :], found.new_test)
        return figures
    key = (folder.name, cell.seed, cell.model)
    if key not in _TRAINED:
        vectors = "english" if cell.model == TAUGHT_ENGLISH else None
        _TRAINED.clear()
        _TRAINED[key] = trained(found.old, head="prototypes", vectors=vectors)
    classifier, data = _TRAINED[key]
    start = time.perf_counter()
    taught = teach(classifier, data, found.new)
    seconds = time.perf_counter() - start
    figures = _old_and_new(found, lambda rows: answers_of(taught.classifier, rows))
    means = _old_and_new(found, lambda rows: averaged(taught.classifier, taught.content, rows))
    before = right(answers_of(classifier, found.old_test), found.old_test)
    return {**figures, **{f"averaging_{name}": value for name, value in means.items()}, "before": before, "s": seconds}


def _old_and_new(found: HeldOut, answer: Callable[[Rows], Sequence[str]]) -> Figures:
    return {name: right(answer(rows), rows) for name, rows in (("old", found.old_test), ("new", found.new_test))}


# The tables


def tables(state: State) -> list[str]:
    """Return the lines of both tables."""
    found: dict[tuple[str, int, str], list[Figures]] = defaultdict(list)
    for cell, figures in state.measured():
        found[cell.set, cell.rows or 0, cell.model].append(figures)
    lines: dict[str, list[list[str]]] = {"few": [], "taught": []}
    for name, size in dict.fromkeys((name, size) for name, size, _ in found):
        if "taught" in name:
            lines["taught"].append([f"{size}", *_taught_line({m: found[name, size, m] for m in _MODELS["taught"]})])
        else:
            of = {model: found[name, size, model] for model in _MODELS["few"]}
            lines["few"].append([name, f"{size}", *_few_line(of)])
    few_heads = ("set", "rows a label", "linear", "prototypes", "averaging", "nearest mean", "neighbours")
    taught_heads = ("examples", "anew", "taught", "averaging", "before", "taught, English vectors", "nearest mean",
                    "neighbours", "s")  # fmt: skip
    return [
        *markdown_table(few_heads, sorted(lines["few"], key=lambda line: (line[0], int(line[1])))),
        "",
        *markdown_table(taught_heads, sorted(lines["taught"], key=lambda line: int(line[0]))),
    ]


_MODELS: Final = {"few": (LINEAR, PROTOTYPES, SENTENCES), "taught": (ANEW, TAUGHT, TAUGHT_ENGLISH, SENTENCES)}


def _few_line(of: dict[str, list[Figures]]) -> list[str]:
    columns = ((LINEAR, "accuracy"), (PROTOTYPES, "accuracy"), (PROTOTYPES, "averaging"), (SENTENCES, "mean"))
    return [_shown(of[model], name) for model, name in (*columns, (SENTENCES, "neighbours"))]


def _taught_line(of: dict[str, list[Figures]]) -> list[str]:
    def both(model: str, before: str = "", behind: str = "") -> str:
        return " / ".join(_shown(of[model], f"{before}{which}{behind}") for which in ("old", "new"))

    return [
        both(ANEW), both(TAUGHT), both(TAUGHT, "averaging_"), _shown(of[TAUGHT], "before"), both(TAUGHT_ENGLISH),
        both(SENTENCES, "", "_mean"), both(SENTENCES, "", "_neighbours"), _shown(of[TAUGHT], "s"),
    ]  # fmt: skip


def _shown(figures: list[Figures], name: str) -> str:
    values = [one[name] for one in figures]
    return mean_and_spread(values) if values else "-"


@click.command()
@FOLDERS
@click.option("--teacher", help="Folder or name of a sentence-transformers model, for the sentence vectors.")
@click.option("--held-out", "held", multiple=True, help="A data set of which ten labels are taught, too.")
@click.option("--rows", default="1,5,10,50", show_default=True, help="Numbers of rows of a label.")
@click.option("--draws", type=click.IntRange(1), default=2, show_default=True)
@click.option("--test-rows", type=click.IntRange(1), default=1000, show_default=True, help="Test rows at most.")
@click.option(
    "--output",
    default=ROOT / "benchmarks" / "prototypes",
    type=click.Path(path_type=Path),
    help="Without suffix.  [default: benchmarks/prototypes]",
)
@RESTART
def main(
    data: tuple[Path, ...],
    teacher: str | None,
    held: tuple[str, ...],
    rows: str,
    draws: int,
    test_rows: int,
    output: Path,
    restart: bool,
) -> None:
    """Measure few rows a label on the data sets in DATA, and labels that are taught."""
    given, sets = Given(teacher, test_rows), data_sets(data)
    saved, sizes = output.with_name(output.name + ".json"), [int(size) for size in rows.split(",")]
    state = resume(saved, about(packages=PACKAGES), restart)
    cells = []
    for seed in range(draws):
        for model in (TAUGHT, TAUGHT_ENGLISH, *((SENTENCES,) if teacher else ()), ANEW):
            cells += [Cell(f"{name}, taught", model, seed, size) for name in held for size in sizes]
        for model in (LINEAR, PROTOTYPES, *((SENTENCES,) if teacher else ())):
            cells += [Cell(name, model, seed, size) for size in sizes for name in sets]

    def measure(cell: Cell) -> Figures:
        name, _, taught = cell.set.partition(", ")
        return (measure_taught if taught else measure_few)(sets[name], cell, given)

    state.run(cells, measure, saved)
    lines = [headline(state.about), "", *tables(state), *state.failures(), "", NOTES.format(test=test_rows)]
    output.with_name(output.name + ".md").write_text("\n".join(lines), encoding="utf-8")
    click.echo("\n".join(lines))
    sys.exit(1 if state.errors else 0)


if __name__ == "__main__":
    main()
