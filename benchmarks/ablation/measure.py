"""Train cells and measure them: accuracy, size, time, cost against length, and how faithful contributions are."""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from ablation.cells import Cell, CellSettings
from faithfulness import faithfulness
from faithfulness.explained_text import explained_texts
from runner import Figures, microseconds
from textcls.data import Labelled
from textcls.evaluation import metrics
from textcls.model.classifier import Classifier
from textcls_training.data.labelled_texts import LabelledTexts
from textcls_training.pipeline.trials import Fold, Trained, Trial, Trials

LENGTHS: Final = (16, 32, 64, 128, 256, 512, 1024, 2048)
ALONE_TEXTS: Final = 200
EXPLAINED_TEXTS: Final = 100
# Texts of one length, fewer of long ones.
REPEATS, LONG, LONG_REPEATS = 15, 512, 7
FAITHFULNESS: Final = ("comprehensiveness", "sufficiency", "loo_tau")


@dataclass(frozen=True, slots=True)
class Measuring:
    """What workers do with each cell.

    Attributes:
        trials: of the rows.
        settings: that all cells share.
    """

    trials: Trials[Figures]
    settings: CellSettings

    @classmethod
    def of(cls, train: Labelled, test: Labelled, settings: CellSettings) -> "Measuring":
        """Learn from the rows `train`, and test on `test`."""
        LabelledTexts(texts=train.texts, labels=train.labels).label_names()  # wrong for one variant is wrong for all
        given = LabelledTexts(texts=[*train.texts, *test.texts], labels=[*train.labels, *test.labels])
        first, rows = len(train.texts), len(given.texts)
        return cls(Trials(given, [Fold(np.arange(first), np.arange(first, rows))], figures), settings)

    def ready(self) -> Callable[[Cell], Figures]:
        """Return what trains and measures a cell."""
        do = self.trials.ready()
        return lambda cell: do(Trial(str(cell), self.settings.config(cell)))


def figures(trained: Trained) -> Figures:
    """Return what is found of a trained cell; accuracies in percent, times in microseconds a text."""
    classifier, done, test = trained.classifier, trained.run, trained.held_out
    report = _score(classifier, test)
    return {
        "accuracy": 100 * report.accuracy,
        "macro_f1": 100 * report.macro_f1,
        "cross_entropy": report.cross_entropy,
        "perplexity": report.perplexity,
        "gate": done.report.gate,
        "parameters": done.report.parameters,
        "mixing_parameters": done.report.mixing_parameters,
        "bytes": done.report.file_bytes,
        "train_s": trained.seconds,
        "train_cpu_s": trained.cpu_seconds,
        "alone_us": _microseconds(classifier, test.texts[:ALONE_TEXTS]),
        "length_us": _cost(classifier, trained.train.texts),
        **_faithful(classifier, test.texts[:EXPLAINED_TEXTS]),
    }


def _score(classifier: Classifier, test: LabelledTexts) -> metrics.ClassificationReport:
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


def _cost(classifier: Classifier, train: Sequence[str]) -> dict[str, float]:
    """Return the microseconds of one text by its number of tokens, made of words of the training texts."""
    chance = np.random.default_rng(0)
    words = sorted({word for text in train[:1000] for word in text.split() if word.isalnum()}) or ["word"]
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
