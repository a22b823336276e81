"""Train one cell and measure it: accuracy, size, time, cost against length, and how faithful its contributions are.

    python -m textcls_training.studies.ablation.measure REQUEST

REQUEST is the file of a JSON object; the last line printed is the figures in JSON. Each cell has a process of its own.
"""

import json
import math
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from textcls.classifier import Classifier
from textcls.data import Labelled
from textcls.errors import TextclsError
from textcls.evaluation import metrics
from textcls_training.data.labelled_texts import LabelledTexts
from textcls_training.pipeline import run
from textcls_training.studies.ablation.cells import Cell, CellSettings
from textcls_training.studies.ablation.pictures import pictures_of
from textcls_training.studies.explanations import faithfulness
from textcls_training.studies.explanations.explained_text import explained_texts
from textcls_training.studies.runner import Figures, figures_of, microseconds

LENGTHS: Final = (16, 32, 64, 128, 256, 512, 1024, 2048)
ALONE_TEXTS: Final = 200
EXPLAINED_TEXTS: Final = 100
# Texts of one length, fewer of long ones.
REPEATS, LONG, LONG_REPEATS = 15, 512, 7
FAITHFULNESS: Final = ("comprehensiveness", "sufficiency", "loo_tau")


def measure(cell: Cell, settings: CellSettings, train: Labelled, test: Labelled) -> Figures:
    """Return the figures of a cell, measured in another process.

    Raises:
        CommandError: that process failed.
    """
    with tempfile.TemporaryDirectory() as folder:
        request = Path(folder) / "request.json"
        fields = {
            "cell": _fields(cell),
            "settings": _fields(settings),
            "train": _rows(train),
            "test": _rows(test),
        }
        request.write_text(json.dumps(fields), encoding="utf-8")
        return figures_of([sys.executable, "-m", __name__, str(request)])


def _rows(of: Labelled) -> dict[str, list[str]]:
    return {"texts": list(of.texts), "labels": of.labels}


def _fields(of: Cell | CellSettings) -> dict[str, Any]:
    return {name: getattr(of, name) for name in of.__slots__}


def figures(cell: Cell, settings: CellSettings, train: Labelled, test: Labelled) -> Figures:
    """Train a cell and return what was found; accuracies in percent, times in microseconds a text."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        start, start_cpu = time.perf_counter(), time.process_time()
        done = run(LabelledTexts(texts=train.texts, labels=train.labels), path, settings.config(cell))
        seconds, cpu_seconds = time.perf_counter() - start, time.process_time() - start_cpu
        classifier = Classifier.load(path)
        report = _score(classifier, test)
        found: Figures = {
            "accuracy": 100 * report.accuracy,
            "macro_f1": 100 * report.macro_f1,
            "cross_entropy": report.cross_entropy,
            "perplexity": report.perplexity,
            "gate": done.report.gate,
            "parameters": done.report.parameters,
            "mixing_parameters": done.report.mixing_parameters,
            "bytes": done.report.file_bytes,
            "train_s": seconds,
            "train_cpu_s": cpu_seconds,
            "alone_us": _microseconds(classifier, test.texts[:ALONE_TEXTS]),
            "length_us": _cost(classifier, train),
            **_faithful(classifier, test.texts[:EXPLAINED_TEXTS]),
        }
        if cell.seed == 0:
            found["pictures"] = pictures_of(done, test.texts)
        return found


def _score(classifier: Classifier, test: Labelled) -> metrics.ClassificationReport:
    unknown = sorted(set(test.labels) - set(classifier.labels))
    number = {name: i for i, name in enumerate([*classifier.labels, *unknown])}
    probabilities = np.array([answer.probabilities for answer in classifier.predict(test.texts)])
    labels = np.array([number[label] for label in test.labels], np.int64)
    return metrics.report(probabilities, labels, classifier.labels, unknown)


def _microseconds(classifier: Classifier, texts: Sequence[str]) -> float:
    """Time of the processor, so that other work on the machine does not count; a classifier has one thread."""
    return microseconds(
        lambda batch: classifier.predict(batch, explain=True), [[text] for text in texts], time.process_time
    )


def _cost(classifier: Classifier, train: Labelled) -> dict[str, float]:
    """Return the microseconds of one text by its number of tokens, made of words of the training texts."""
    chance = np.random.default_rng(0)
    words = sorted({word for text in train.texts[:1000] for word in text.split() if word.isalnum()}) or ["word"]
    found = {}
    for length in LENGTHS:
        repeats = REPEATS if length <= LONG else LONG_REPEATS
        texts = [" ".join(words[i] for i in chance.integers(len(words), size=length)) for _ in range(repeats)]
        found[str(length)] = _microseconds(classifier, texts)
    return found


def _faithful(classifier: Classifier, texts: Sequence[str]) -> dict[str, float | None]:
    """Return the means over texts of the field's measures (`faithfulness`), None where none is defined."""
    measured = []
    for case in explained_texts(classifier, texts, classifier.info.max_tokens):
        explanation = classifier.predict(case.text, explain=True).explanation
        if explanation is not None:
            scores = explanation.evidence(classifier.labels[case.label]).astype(np.float64)
            drops = faithfulness.drops(classifier, case, "delete")
            measured += faithfulness.measure(classifier, case, [scores], drops, "delete")
    found = {}
    for name in FAITHFULNESS:
        values = [value for value in (getattr(one, name) for one in measured) if not math.isnan(value)]
        found[name] = float(np.mean(values)) if values else None
    return found


def main(path: str) -> None:
    """Print the figures that the request in the file at `path` asks for."""
    request = json.loads(Path(path).read_text(encoding="utf-8"))
    settings = request["settings"]
    settings["ngram_sizes"] = None if settings["ngram_sizes"] is None else tuple(settings["ngram_sizes"])
    train, test = (Labelled(**request[name]) for name in ("train", "test"))
    try:
        found = figures(Cell(**request["cell"]), CellSettings(**settings), train, test)
    except TextclsError as error:
        sys.exit(str(error))
    sys.stdout.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    main(sys.argv[1])
