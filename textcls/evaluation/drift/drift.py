"""Measure what new texts show to have changed since the training, for `textcls drift`.

Shapes: N rows.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np

from textcls.data.given_labels import Labels, with_labels_if_known
from textcls.errors import InputError
from textcls.evaluation import intervals
from textcls.evaluation.drift.columns import ColumnCounts, ColumnShare
from textcls.evaluation.drift.distance import Distance
from textcls.evaluation.drift.expected_accuracy import expected_accuracy, of_another_kind
from textcls.evaluation.drift.summary import HeldOutSummary
from textcls.evaluation.drift.tally import Tally, differences
from textcls.evaluation.drift.unknown import UnknownTokens
from textcls.evaluation.drift.words import Word, WordCounts, changed_words
from textcls.evaluation.intervals import CHANCE, Estimate
from textcls.evaluation.learned_rows import LearnedRows
from textcls.jobs.batch.chunks import chunked
from textcls.model import tokenizer
from textcls.model.artifact import ModelInfo
from textcls.model.classifier import Classifier, Text, require_classifier
from textcls.model.explanation import Explanation

# Texts count as being of another kind if the accuracy may be off by this much because of it.
_OFF: Final = 0.05
# The precision, plus or minus, to which labels should determine an accuracy, if it is about 80 %.
_WITHIN, _USUAL = 0.05, 0.8
LABELS_TO_TELL: Final = math.ceil((intervals.DEVIATE / _WITHIN) ** 2 * _USUAL * (1 - _USUAL) / 10) * 10


class LabelShare(NamedTuple):
    """The share of rows that are answered with a label.

    Attributes:
        label: its name.
        before: share of held-out rows; None if the file keeps no counts because there are too many labels.
        now: share of new rows. If a text may have several labels, the shares of all labels add up to more than 1.
    """

    label: str
    before: float | None
    now: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Drift:
    """What has changed since the training.

    Attributes:
        rows: number of new rows.
        held_out: the summary in the file of the rows that the new ones are compared with.
        labels: shares of the labels that rows are answered with, those that changed most first.
        distances: by what they compare: these shares, or those of label sets (missing if the file keeps no counts
            because there are too many labels, or if no label set was assigned to `LEAST_OF_SET` held-out rows); the
            scores of answers; the lengths of texts in tokens.
        unknown: tokens that the model does not know; None if it knows every token.
        words: the words that show the change: more frequent than before, or unknown if `before` is not given.
        against_texts: whether words were compared with texts of the training.
        confidence: the mean score of the answers.
        another_kind: how far the accuracy may be off because texts are of another kind, as a standard deviation.
        expected_accuracy: on the new rows; None if there were too few held-out rows, or if a text may have several
            labels, whose probabilities do not show which occur together.
        labelled: how many new rows have a label, or labels.
        accuracy: on these; with several labels per text, the share assigned exactly their labels; None without any.
        unknown_labels: labels of these rows that the model does not know: such rows count as errors.
        columns: the changes in the columns beside the text; empty if the model reads no such columns.
        learned: the approximate share of the rows that the model has learned from (`LearnedRows.share`).
    """

    rows: int
    held_out: HeldOutSummary
    labels: tuple[LabelShare, ...]
    distances: dict[str, Distance]
    unknown: UnknownTokens | None
    words: tuple[Word, ...]
    against_texts: bool
    confidence: float
    another_kind: float
    expected_accuracy: Estimate | None
    labelled: int
    accuracy: Estimate | None
    unknown_labels: tuple[str, ...]
    columns: tuple[ColumnShare, ...] = ()
    learned: float = 0.0

    @property
    def several(self) -> bool:
        """Whether a text may have several labels."""
        return self.held_out.sets is not None

    @property
    def labels_a_text(self) -> tuple[float | None, float]:
        """The mean number of labels assigned per text, then and now; then is None if the file has no such counts."""
        then = None if self.held_out.labels is None else sum(self.held_out.labels) / self.held_out.rows
        return then, sum(one.now for one in self.labels)

    def above(self, psi: float) -> list[str]:
        """Return what is further away than `psi`, and further than by chance alone, and the columns of which more than
        this share is lost.
        """
        far = [name for name, one in self.distances.items() if one.psi > psi and one.p_value < CHANCE]
        return [*far, *(f"column {one.name!r}" for one in self.columns if one.lost > psi)]

    @property
    def is_of_another_kind(self) -> bool:
        """Whether texts are so different that scores say little about accuracy."""
        return intervals.DEVIATE * self.another_kind >= _OFF

    def as_json(self) -> dict[str, Any]:
        """Return all of it as plain data."""
        unknown, expected, accuracy = self.unknown, self.expected_accuracy, self.accuracy
        then, now = self.labels_a_text
        return {
            "rows": self.rows,
            **({"labels_a_text": {"before": then, "now": now}} if self.several else {}),
            "held_out_rows": self.held_out.rows,
            "held_out_accuracy": self.held_out.accuracy,
            "confidence": self.confidence,
            "another_kind": self.another_kind,
            "expected_accuracy": None if expected is None else expected.as_json(),
            "labelled_rows": self.labelled,
            "accuracy": None if accuracy is None else accuracy.as_json(),
            "unknown_labels": list(self.unknown_labels),
            "distances": {name: one.as_json() for name, one in self.distances.items()},
            "labels": [one._asdict() for one in self.labels],
            "unknown_tokens": None if unknown is None else unknown._asdict() | {"is_sure": unknown.is_sure},
            "against_texts": self.against_texts,
            "words": [word.as_json() for word in self.words],
            **({"columns": [one._asdict() for one in self.columns]} if self.columns else {}),
            **({"learned": self.learned} if self.learned else {}),
        }


def measure_drift(
    classifier: Classifier,
    rows: Iterable[tuple[Text, str | Labels | None]],
    before: Iterable[str] | None = None,
) -> Drift:
    """Measure how new texts differ from held-out rows, and which accuracy is to be expected on them.

    Args:
        classifier: a model that `textcls train` has made.
        rows: the new texts, each with its label, or its labels if a text may have several; None if not known.
        before: texts of the training, whose words are then compared.

    Raises:
        InputError: there are no rows, or one is not a pair of a text and its label, or its labels, or None; or the
            model file keeps no summary of held-out rows.
        ConfigError: the model was taught labels after its training.
        ArtifactError: the summary is damaged.
    """
    require_classifier(classifier)
    held_out = HeldOutSummary.of_model(classifier.info)
    seen, learned = _Seen(classifier.info), LearnedRows(classifier.info)
    for chunk in chunked(learned.over(with_labels_if_known(classifier.read_rows(rows), classifier.info))):
        explanations = classifier.explain([text for text, _ in chunk])
        for (_, label), explanation in zip(chunk, explanations, strict=True):
            seen.add(explanation, label)
    if not seen.scores:
        raise InputError("There are no rows to hold against the training.")
    earlier = None if before is None else WordCounts.of(before, classifier.info.max_tokens)
    scores = np.array(seen.scores)
    # With one label per text, each row has been assigned exactly one.
    answer_N = [i for (i,) in seen.assigned] if held_out.sets is None else held_out.sets.bins(seen.assigned)
    count_C = np.bincount([i for labels in seen.assigned for i in labels], minlength=len(classifier.labels))
    found = differences(held_out, Tally.of(held_out, answer_N, scores, seen.lengths, seen.unknown))
    columns = tuple(seen.columns.shares())
    another_kind = of_another_kind(found, max((one.lost for one in columns), default=0.0))
    return Drift(
        rows=len(scores),
        held_out=held_out,
        labels=_shares(classifier.labels, held_out, (count_C / len(scores)).tolist()),
        distances=found.distances,
        unknown=found.unknown,
        words=changed_words(seen.words, earlier, seen.unknown_words),
        against_texts=earlier is not None,
        confidence=float(scores.mean()),
        another_kind=another_kind,
        expected_accuracy=None if held_out.sets is not None else expected_accuracy(held_out, scores, another_kind),
        labelled=len(seen.right),
        accuracy=intervals.share(sum(seen.right), len(seen.right)) if seen.right else None,
        unknown_labels=tuple(sorted(seen.unknown_labels)),
        columns=columns,
        learned=learned.share,
    )


class _Seen:
    """What is kept of each new row, and of all words."""

    def __init__(self, info: ModelInfo) -> None:
        self._names = info.labels
        self._thresholds = None if info.thresholds is None else np.array(info.thresholds, np.float32)
        self.assigned: list[tuple[int, ...]] = []
        self.scores: list[float] = []
        self.right: list[bool] = []
        self.unknown_labels: set[str] = set()
        self.lengths: list[int] = []
        self.unknown: list[int] = []
        self.words = WordCounts()
        self.unknown_words: set[str] = set()
        self.columns = ColumnCounts(info)

    def add(self, explanation: Explanation, label: str | frozenset[str] | None) -> None:
        words = [tokenizer.lower(explanation.text[start:end]) for start, end in explanation.spans]
        unknown = {word for word, known in zip(words, explanation.known.tolist(), strict=True) if not known}
        assigned = self._assigned(explanation)
        self.assigned.append(assigned)
        self.scores.append(float(explanation.probability_values.max()))
        if label is not None:
            right = {label} if isinstance(label, str) else label
            self.right.append(right == {self._names[i] for i in assigned})
            self.unknown_labels |= right - set(self._names)
        self.lengths.append(len(words))
        self.unknown.append(int((~explanation.known).sum()))
        self.words.add(set(words))
        self.unknown_words |= unknown
        self.columns.add(explanation)

    def _assigned(self, explanation: Explanation) -> tuple[int, ...]:
        """Return the numbers of the labels that a text is answered with."""
        if self._thresholds is None:
            return (int(explanation.probability_values.argmax()),)
        return tuple(np.flatnonzero(explanation.probability_values >= self._thresholds).tolist())


def _shares(labels: Sequence[str], held_out: HeldOutSummary, now: Sequence[float]) -> tuple[LabelShare, ...]:
    """Return the shares of rows that are answered with each label, those that changed most first."""
    earlier: Sequence[float | None] = [None] * len(labels)
    if held_out.labels is not None:
        earlier = [count / held_out.rows for count in held_out.labels]
    found = [LabelShare(*one) for one in zip(labels, earlier, now, strict=True)]
    return tuple(sorted(found, key=lambda one: (-abs(one.now - (one.before or 0.0)), one.label)))
