"""The comparison of two classifiers on labelled rows, which `textcls compare` and `textcls.compare` run."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np

from textcls._util.in_notebooks import InNotebooks
from textcls.data.given_labels import Labels as LabelsOfRow
from textcls.data.given_labels import is_label_set, label_set, present, warned, with_one_label
from textcls.data.label_names import LabelNames
from textcls.data.rows import BadRows
from textcls.errors import InputError
from textcls.evaluation import label_set_metrics, metrics
from textcls.evaluation.comparison.figures import figures_of
from textcls.evaluation.comparison.paired import Agreement, Difference
from textcls.evaluation.comparison.sides import FileSide, Labels, ModelSide, Side, SideAnswers, is_several, sides_of
from textcls.evaluation.comparison.words import EXPLAINED, ChangedWord, Flip, changed_words, explained
from textcls.evaluation.intervals import CHANCE
from textcls.evaluation.label_set_evaluation import which_of
from textcls.evaluation.learned_rows import LearnedRows
from textcls.evaluation.unknown_labels import unknown_labels
from textcls.model.classifier import Classifier, Text
from textcls.model.sequences import pairs
from textcls.model.text_columns import JOINT


@dataclass(frozen=True, slots=True)
class SideReport:
    """The figures of one side by itself.

    Attributes:
        name: the name of the side.
        bytes: the size of its file in bytes; None if it is not a file.
        microseconds: the time per text in this run; None if that is not meaningful.
        ece: expected calibration error; None if there are no probabilities.
        cross_entropy: in nats; None likewise, or if the side does not know a label. With several labels per text it is
            the cross-entropy of a row, and `ece` is the mean over the labels.
        unknown_labels: labels of the rows that a model does not know.
        learned: the approximate share of the rows that a model has learned from (`LearnedRows.share`).
    """

    name: str
    bytes: int | None
    microseconds: float | None
    ece: float | None
    cross_entropy: float | None
    unknown_labels: tuple[str, ...] = ()
    learned: float = 0.0


@dataclass(frozen=True, slots=True)
class Comparison(InNotebooks):
    """Two classifiers on the same labelled rows.

    Attributes:
        rows: number of rows.
        sides: the figures of each side by itself.
        agreement: how many rows each side gets right; with several labels per row, with exactly its labels.
        p_value: of McNemar's test.
        accuracy: share of the rows that each side gets right, likewise.
        macro_f1: macro-F1 of both sides.
        labels: F1 of both sides for each label that a row or an answer has, with the number of its rows.
        flips: all rows that the sides answer differently, with the reasons for the first of them.
        words: the words whose contribution changed; empty unless both sides are models.
        micro_f1: with several labels per text, F1 of all labels of all rows together; else None.

    Examples:
        >>> found = textcls.compare("tickets.onnx", "tickets.onnx", [("where is my parcel", "shipping")])
        >>> found.better is None
        True
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
    micro_f1: Difference | None = None

    @property
    def better(self) -> SideReport | None:
        """The side that is significantly better; None if neither is."""
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
            **({} if self.micro_f1 is None else {"micro_f1": self.micro_f1.as_json()}),
            "macro_f1": self.macro_f1.as_json(),
            "labels": {name: one.as_json() | {"rows": rows} for name, (one, rows) in self.labels.items()},
            "flips": [flip._asdict() | {"kind": flip.kind} for flip in self.flips],
            "words": [word._asdict() for word in self.words],
        }


def compare(
    first: str | Path | Classifier,
    second: str | Path | Classifier,
    rows: Iterable[tuple[Text, str | LabelsOfRow]],
    *,
    label_separator: str | None = None,
) -> Comparison:
    """Compare two classifiers on texts and their labels.

    Args:
        first: a model (its file, or loaded), a file of answers with one per row, or the address of a service.
        second: likewise; a difference is the figure of the second side minus that of the first.
        rows: pairs of a text, or a row as `Classifier.predict` takes it, and its label, such as `zip(texts, labels)`;
            with several labels per text, pairs of a text and its labels, as a list, a set, or a mapping from labels to
            probabilities, of which those from 1/2 on count.
        label_separator: the separator between several labels in a cell of a file of answers, `json` if each cell is a
            JSON list; by default that of the training of a model, or else `;`, as `textcls predict` writes.

    Raises:
        InputError: there are no rows, or a file of answers does not match them; or rows have several labels and a model
            gives only one, or the reverse; or a side knows no label of the rows.
        ArtifactError: a model file is missing or damaged.
        ConfigError: a model gives one label per text, and the other side several.
        SurroundingsError: a service cannot be reached, or refuses.
        MissingExtraError: SciPy is not installed.

    Examples:
        >>> rows = [("where is my parcel", "shipping"), ("my card was charged twice", "billing")]
        >>> textcls.compare("tickets.onnx", "tickets.onnx", rows).agreement.same
        2
    """
    asked, given = _columns(rows)
    several = label_separator is not None or is_label_set(given[0])
    sides = sides_of(first, second, several=several, separator=label_separator)
    right: list[Labels]
    if is_several(sides):
        right = [tuple(sorted(present(label_set(labels, i)))) for i, labels in enumerate(given)]
    else:
        right = [label for _, label in with_one_label(zip(asked, given, strict=True))]
    with warned() as bad:
        return compared(sides, asked, [_text(row, sides) for row in asked], right, bad)


def compared(
    sides: tuple[Side, Side], rows: Sequence[Text], texts: Sequence[str], right: Sequence[Labels], bad: BadRows
) -> Comparison:
    """Return the comparison of the answers of two sides.

    Args:
        sides: the two sides.
        rows: what both are asked about: texts, or rows with the columns that the models read.
        texts: the texts of the rows, for display.
        right: the label of each, or its labels, sorted.
        bad: records labels that are spelt differently from those of the sides.

    Raises:
        InputError: a side knows no label of the rows; or, with several labels per row, no row and no answer has one; or
            a row lacks a column that a model reads.
        SurroundingsError: a service cannot be reached, or refuses.
        MissingExtraError: SciPy is not installed.
    """
    names = LabelNames.of_models(*(side.classifier.info for side in sides if isinstance(side, ModelSide)))
    spelt = _as_spelt(names, right)
    # Labels that one model was trained to treat as the same count as one label here.
    merged = names.merged
    names = names._replace(known=names.known - merged.keys())
    _check_labels(sides, [_named(labels, names, BadRows()) for labels in right], merged)
    answers = tuple(_answers(side, rows, right, spelt, bad).renamed(merged) for side in sides)
    right = _as_known(names, answers, right, bad)
    unknown = [_unknown_labels(side, right, answered) for side, answered in zip(sides, answers, strict=True)]
    first, second = answers[0].labels, answers[1].labels
    figures = figures_of(right, first, second)
    models = tuple(side.classifier if isinstance(side, ModelSide) else None for side in sides)
    flips = [
        Flip(i, texts[i], right[i], *pair)
        for i, pair in enumerate(zip(first, second, strict=True))
        if pair[0] != pair[1]
    ]
    with_reasons = explained(islice(flips, EXPLAINED), rows, models[0], models[1])
    words: Sequence[ChangedWord] = ()
    if models[0] is not None and models[1] is not None:
        words = changed_words(with_reasons, rows, models[0], models[1])
    return Comparison(
        rows=len(texts),
        sides=(
            _report(sides[0], rows, right, answers[0], unknown[0]),
            _report(sides[1], rows, right, answers[1], unknown[1]),
        ),
        p_value=figures.agreement.p_value(),
        flips=(*with_reasons, *flips[len(with_reasons) :]),
        words=tuple(words),
        **figures._asdict(),
    )


def _as_spelt(names: LabelNames, right: Sequence[Labels]) -> LabelNames:
    """Return the labels of the models, followed by those of the rows, by name; none if no side is a model."""
    unheard = BadRows()
    of_rows = {names.name(one, unheard) for labels in right for one in _names(labels)} if names.known else set()
    spelt = LabelNames.of_labels(sorted({*names.known, *of_rows}), "", {}, several=True)
    return spelt._replace(paths=names.paths, renamed=names.renamed)


def _answers(side: Side, rows: Sequence[Text], right: Sequence[Labels], spelt: LabelNames, bad: BadRows) -> SideAnswers:
    """Return the answers of a side; labels of a table or a service are spelt as the models and the rows spell them."""
    if not isinstance(side, FileSide):
        found = side.answers(rows)
    else:
        found = side.answers(rows, spelt.known | {one for labels in right for one in _names(labels)})
    if isinstance(side, ModelSide):
        return found
    return found._replace(labels=[_named(labels, spelt, bad) for labels in found.labels])


def _as_known(names: LabelNames, answers: Sequence[SideAnswers], right: Sequence[Labels], bad: BadRows) -> list[Labels]:
    """Return the labels of the rows as the models spell them; a label that a side answers with stays as it is."""
    answered = chain(*(_names(labels) for one in answers for labels in one.labels))
    names = names._replace(known={*names.known, *answered})
    return [_named(labels, names, bad) for labels in right]


def _named(labels: Labels, names: LabelNames, bad: BadRows) -> Labels:
    if isinstance(labels, str):
        return names.name(labels, bad)
    return tuple(sorted(names.name(one, bad) for one in labels))


def _text(row: Text, sides: Iterable[Side]) -> str:
    """Return the text of a row, from the columns of a model among the sides, or else from all of its strings."""
    if isinstance(row, str):
        return row
    models = (side.classifier.info.text_columns for side in sides if isinstance(side, ModelSide))
    return JOINT.join(value for name in next(models, row) if isinstance(value := row.get(name), str))


def _columns(rows: Iterable[tuple[Text, Any]]) -> tuple[list[Text], list[Any]]:
    asked, labels = list[Text](), []
    for row, label in pairs(rows):
        asked.append(row)
        labels.append(label)
    if not asked:
        raise InputError("There are no rows to compare on.")
    return asked, labels


def _check_labels(sides: Iterable[Side], right: Sequence[Labels], merged: Mapping[str, str]) -> None:
    """Refuse rows of which a model knows no label, before any is answered, which takes time.

    Raises:
        InputError: a model knows none of them.
    """
    given = {name for labels in right for name in _names(labels)}
    for side in sides:
        if isinstance(side, ModelSide):
            known = tuple(merged.get(label, label) for label in side.classifier.labels)
            unknown_labels(given, known, len(right), knows=f"{side.name} knows", tree=side.classifier.tree)


def _unknown_labels(side: Side, right: Sequence[Labels], answers: SideAnswers) -> tuple[str, ...]:
    """Return which labels of the rows a model does not know.

    Raises:
        InputError: it knows none of them; or a table or a service, which does not state its labels, answers with none.
    """
    given, answered = (chain(*map(_names, labels)) for labels in (right, answers.labels))
    if isinstance(side, ModelSide):
        tree = side.classifier.tree
        return unknown_labels(given, answers.names, len(right), knows=f"{side.name} knows", tree=tree)
    if known := sorted(set(answered)):
        unknown_labels(given, known, len(right), knows=f"{side.name} answers with", what="answers")
    return ()


def _names(labels: Labels) -> tuple[str, ...]:
    return (labels,) if isinstance(labels, str) else labels


def _learned(side: Side, rows: Sequence[Text]) -> float:
    """Return the approximate share of the rows that a side has learned from, if it is a model."""
    if not isinstance(side, ModelSide):
        return 0.0
    found = LearnedRows(side.classifier.info)
    for text, _ in side.classifier.read_rows((row, "") for row in rows):
        found.add(text)
    return found.share


def _report(
    side: Side, rows: Sequence[Text], right: Sequence[Labels], answers: SideAnswers, unknown: tuple[str, ...]
) -> SideReport:
    ece = loss = None
    names, probabilities = answers.names, answers.probabilities
    if probabilities is not None and isinstance(right[0], str):
        number = {name: i for i, name in enumerate(names)}
        # A label that the side does not know counts as wrong.
        label_N = np.array([number.get(str(label), len(number)) for label in right], np.int64)
        ece = metrics.expected_calibration_error(probabilities, label_N)
        loss = metrics.cross_entropy(probabilities, label_N)
    elif probabilities is not None:
        gold_NC = which_of(right, names)
        ece = label_set_metrics.calibration_error(probabilities, gold_NC)
        loss = label_set_metrics.cross_entropy(probabilities, gold_NC) if not unknown else None
    return SideReport(
        name=side.name,
        bytes=side.bytes if isinstance(side, ModelSide) else None,
        microseconds=answers.microseconds,
        ece=ece,
        cross_entropy=loss,
        unknown_labels=unknown,
        learned=_learned(side, rows),
    )
