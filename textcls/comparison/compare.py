"""A comparison of two classifiers on labelled rows: what `textcls compare` calls, and `textcls.compare` is."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from textcls.classifier import Classifier
from textcls.comparison.paired import Agreement, Bootstrap, Difference, numbered
from textcls.comparison.sides import Answers, ModelSide, Side, side_of
from textcls.comparison.words import EXPLAINED, ChangedWord, Flip, changed_words, explained
from textcls.errors import InputError
from textcls.evaluation.intervals import CHANCE
from textcls.evaluation.metrics import cross_entropy, expected_calibration_error

Int64 = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class SideReport:
    """What is known of one side alone.

    Attributes:
        name: what it is called.
        bytes: of its file; None where it is none.
        microseconds: a text took in this run; None where that says nothing.
        ece: expected calibration error; None where there are no probabilities.
        cross_entropy: in nats; None likewise, or where it does not know a label.
    """

    name: str
    bytes: int | None
    microseconds: float | None
    ece: float | None
    cross_entropy: float | None


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two classifiers on the same labelled rows.

    Attributes:
        rows: how many there are.
        sides: what is known of each alone.
        agreement: how many rows which side gets right.
        p_value: of McNemar's test.
        accuracy: of both.
        macro_f1: of both.
        labels: F1 of both for each label that a row or an answer has, with the number of its rows.
        flips: all rows that they answer differently, with the reasons of the first of them.
        words: which words changed; empty unless both are models.
    """

    rows: int
    sides: tuple[SideReport, SideReport]
    agreement: Agreement
    p_value: float
    accuracy: Difference
    macro_f1: Difference
    labels: dict[str, tuple[Difference, int]]
    flips: tuple[Flip, ...]
    words: tuple[ChangedWord, ...]

    @property
    def better(self) -> SideReport | None:
        """The side that is better by more than chance; None if none is."""
        if self.p_value >= CHANCE:
            return None
        return self.sides[self.agreement.second > self.agreement.first]

    def as_json(self) -> dict[str, Any]:
        """Return the comparison as plain data."""
        better = self.better
        return {
            "rows": self.rows,
            "sides": [asdict(side) for side in self.sides],
            "better": None if better is None else better.name,
            "agreement": asdict(self.agreement) | {"p_value": self.p_value},
            "accuracy": self.accuracy.as_json(),
            "macro_f1": self.macro_f1.as_json(),
            "labels": {name: one.as_json() | {"rows": rows} for name, (one, rows) in self.labels.items()},
            "flips": [flip._asdict() | {"kind": flip.kind} for flip in self.flips],
            "words": [word._asdict() for word in self.words],
        }


def compare(
    first: str | Path | Classifier, second: str | Path | Classifier, rows: Iterable[tuple[str, str]]
) -> Comparison:
    """Compare two classifiers on texts and their labels.

    Args:
        first: a model (its file, or loaded), a file of answers one a row, or the address of a service.
        second: likewise; differences are what it has more than the first.
        rows: a text and its label each, such as `zip(texts, labels)`.

    Raises:
        InputError: there are no rows, or a file of answers does not fit them.
        ArtifactError: a model file is missing or damaged.
        ConfigError: a model may give several labels a text.
        SurroundingsError: a service cannot be reached, or refuses.
        MissingExtraError: SciPy is not installed.
    """
    sides = (side_of(first), side_of(second))
    texts, right = _columns(rows)
    answers = (sides[0].answers(texts), sides[1].answers(texts))
    return compared(sides, texts, right, answers)


def compared(
    sides: tuple[Side, Side], texts: Sequence[str], right: Sequence[str], answers: tuple[Answers, Answers]
) -> Comparison:
    """Return the comparison of the answers of two sides."""
    names, (right_N, first_N, second_N) = numbered(right, answers[0].labels, answers[1].labels)
    agreement = Agreement.of(right_N, first_N, second_N)
    p_value = agreement.p_value()
    draws = Bootstrap(right_N, first_N, second_N, len(names))
    count_C = np.bincount(right_N, minlength=len(names)).tolist()
    of_labels = zip(names, draws.f1_of_labels(), count_C, strict=True)
    models = tuple(side.classifier if isinstance(side, ModelSide) else None for side in sides)
    flips = [
        Flip(i, texts[i], right[i], answers[0].labels[i], answers[1].labels[i])
        for i in np.flatnonzero(first_N != second_N).tolist()
    ]
    told = explained(islice(flips, EXPLAINED), models[0], models[1])
    words: Sequence[ChangedWord] = ()
    if models[0] is not None and models[1] is not None:
        words = changed_words(told, models[0], models[1])
    return Comparison(
        rows=len(texts),
        sides=(_report(sides[0], right, answers[0]), _report(sides[1], right, answers[1])),
        agreement=agreement,
        p_value=p_value,
        accuracy=draws.accuracy(),
        macro_f1=draws.macro_f1(),
        labels={name: (found, rows) for name, found, rows in of_labels},
        flips=(*told, *flips[len(told) :]),
        words=tuple(words),
    )


def _columns(rows: Iterable[tuple[str, str]]) -> tuple[list[str], list[str]]:
    texts, labels = [], []
    for text, label in rows:
        texts.append(text)
        labels.append(label)
    if not texts:
        raise InputError("There are no rows to compare on.")
    return texts, labels


def _report(side: Side, right: Sequence[str], answers: Answers) -> SideReport:
    size = side.bytes if isinstance(side, ModelSide) else None
    if answers.probabilities is None:
        return SideReport(side.name, size, answers.microseconds, None, None)
    number = {name: i for i, name in enumerate(answers.names)}
    # A label that it does not know counts as wrong.
    label_N = np.array([number.get(label, len(number)) for label in right], np.int64)
    ece = expected_calibration_error(answers.probabilities, label_N)
    return SideReport(side.name, size, answers.microseconds, ece, cross_entropy(answers.probabilities, label_N))
