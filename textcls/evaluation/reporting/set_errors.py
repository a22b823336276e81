"""Labels that rows have and were not assigned, and superfluous labels, by the words behind them.

A word, or a cell beside the text, speaks for a label by what it added to its logit. The one that added most is behind a
superfluous label, the one that subtracted most is behind a missed one.

Shapes: N rows, C labels.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import asdict, dataclass
from heapq import nsmallest
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from textcls.evaluation.reporting.answers import NOWHERE, REASONS
from textcls.evaluation.reporting.errors import EXAMPLES, GROUPS, LEAST, SUREST
from textcls.evaluation.reporting.set_answers import NO_WORD, Int32
from textcls.explain.global_explanation.explainer import named_parts
from textcls.model.classifier import Classifier
from textcls.model.excerpts import Excerpt, excerpt
from textcls.model.explanation import Explanation, added_by_parts

Bools = NDArray[np.bool_]


class LabelErrorGroup(NamedTuple):
    """Rows in which the same word is behind the same error in a label.

    Attributes:
        word: the word, in lower case, or the cell, `product = lamp`: for superfluous labels, the one that speaks most
            for the label; for missed ones, the one that speaks most against it.
        label: the label.
        errors: the number of rows in which the label is wrong.
        right: the number of rows in which the same word is behind the label, or behind its absence, and that is right.
        instead: for superfluous labels, those that these rows have and were not assigned; for missed ones, those that
            they were assigned and do not have; with the number of rows of each, the most frequent first.
        none: the number of these rows in which there is no such label.
        examples: passages in which the word occurs.
    """

    word: str
    label: str
    errors: int
    right: int
    instead: tuple[tuple[str, int], ...]
    none: int
    examples: tuple[Excerpt, ...]

    def as_json(self) -> dict[str, Any]:
        """Return all of it as plain data."""
        return self._asdict() | {"instead": dict(self.instead), "examples": [asdict(one) for one in self.examples]}


class SureLabelError(NamedTuple):
    """A label that a row has and the model is sure is absent, or the reverse: one of the two is wrong.

    Attributes:
        row: its number, from 0.
        text: the text of the row.
        labels: the labels that it has.
        assigned: the labels that it was assigned.
        label: the label that is missed, or superfluous.
        probability: its probability according to the model.
        words: those that speak most for it if it is superfluous, and most against it if it is missed.
        place: start and end of the first that occurs in the text; both 0 if none does.
    """

    row: int
    text: str
    labels: tuple[str, ...]
    assigned: tuple[str, ...]
    label: str
    probability: float
    words: tuple[str, ...]
    place: tuple[int, int]

    def as_json(self) -> dict[str, Any]:
        """Return all of it as plain data."""
        return self._asdict() | {"labels": list(self.labels), "assigned": list(self.assigned)}


@dataclass(frozen=True, slots=True)
class LabelErrors:
    """Errors of one kind.

    Attributes:
        count: the number of errors.
        rows: the number of rows with errors.
        groups: by the words behind them, the largest first.
        surest: the errors that the model is surest of.
    """

    count: int
    rows: int
    groups: tuple[LabelErrorGroup, ...]
    surest: tuple[SureLabelError, ...]

    def as_json(self) -> dict[str, Any]:
        """Return all of it as plain data."""
        return {
            "count": self.count,
            "rows": self.rows,
            "groups": [group.as_json() for group in self.groups],
            "surest": [error.as_json() for error in self.surest],
        }


class Judged(NamedTuple):
    """Answers together with the right labels.

    Attributes:
        texts: the texts of the rows.
        labels: the model's labels, followed by those that it does not know.
        right: the labels of each row.
        gold: which of `labels` each row has [rows, labels].
        assigned: which of them it was assigned [rows, labels].
        probabilities: the probabilities of the model's labels [rows, its labels].
    """

    texts: Sequence[str]
    labels: Sequence[str]
    right: Sequence[Collection[str]]
    gold: Bools
    assigned: Bools
    probabilities: NDArray[np.float32]


def too_many(classifier: Classifier, judged: Judged, word_NC: Int32, words: Sequence[str]) -> LabelErrors:
    """Return the labels that rows were assigned and do not have.

    Args:
        classifier: explains the examples.
        judged: the answers.
        word_NC: the number of the word that speaks most for each label in each row.
        words: the words by number.
    """
    wrong, right = judged.assigned & ~judged.gold, judged.assigned & judged.gold
    return _Kind(classifier, judged, word_NC, words, 1, judged.gold & ~judged.assigned).errors(wrong, right)


def missed(classifier: Classifier, judged: Judged, word_NC: Int32, words: Sequence[str]) -> LabelErrors:
    """Return the labels that rows have and were not assigned; each word of `word_NC` speaks most against its label."""
    wrong, right = judged.gold & ~judged.assigned, ~judged.gold & ~judged.assigned
    return _Kind(classifier, judged, word_NC, words, -1, judged.assigned & ~judged.gold).errors(wrong, right)


class _Kind(NamedTuple):
    """Errors of one kind: `sign` is 1 where words speak for a label and -1 where they speak against it."""

    classifier: Classifier
    judged: Judged
    word_NC: Int32
    words: Sequence[str]
    sign: int
    instead_NC: Bools

    def errors(self, wrong_NC: Bools, right_NC: Bools) -> LabelErrors:
        rows = int(wrong_NC.any(1).sum())
        # No word speaks for labels that the model does not know, and there is nothing to be sure of.
        known = self.judged.probabilities.shape[1]
        told_NC = wrong_NC[:, :known]
        groups = self._groups(told_NC, right_NC[:, :known])
        return LabelErrors(int(wrong_NC.sum()), rows, groups, self._surest(told_NC))

    def _groups(self, wrong_NC: Bools, right_NC: Bools) -> tuple[LabelErrorGroup, ...]:
        largest = nsmallest(GROUPS, self._counted(wrong_NC, right_NC))
        return tuple(self._group(wrong_NC, word, of, right) for _, right, _, _, word, of in largest)

    def _counted(self, wrong_NC: Bools, right_NC: Bools) -> Iterator[tuple[int, int, str, str, int, int]]:
        """Yield each word that is behind several errors of a label, with keys that sort the largest groups first."""
        # All words of a label are counted in one pass over its rows: there are as many groups as rows have words.
        for of in np.flatnonzero(wrong_NC.any(0)).tolist():
            word_N, label = self.word_NC[:, of], self.judged.labels[of]
            has_word_N = word_N != NO_WORD
            wrong_V = np.bincount(word_N[wrong_NC[:, of] & has_word_N], minlength=len(self.words))
            right_V = np.bincount(word_N[right_NC[:, of] & has_word_N], minlength=len(self.words))
            for word in np.flatnonzero(wrong_V >= LEAST).tolist():
                yield -int(wrong_V[word]), int(right_V[word]), self.words[word], label, word, of

    def _group(self, wrong_NC: Bools, word: int, label: int, right: int) -> LabelErrorGroup:
        rows = np.flatnonzero(wrong_NC[:, label] & (self.word_NC[:, label] == word))
        instead_C = self.instead_NC[rows].sum(0)
        order = [int(i) for i in np.argsort(-instead_C, kind="stable") if instead_C[i]]
        return LabelErrorGroup(
            word=self.words[word],
            label=self.judged.labels[label],
            errors=len(rows),
            right=right,
            instead=tuple((self.judged.labels[i], int(instead_C[i])) for i in order),
            none=int((~self.instead_NC[rows].any(1)).sum()),
            examples=tuple(self._example(int(row), self.words[word], label) for row in rows[:EXAMPLES]),
        )

    def _example(self, row: int, word: str, label: int) -> Excerpt:
        """Return the place of a word in a row: that of its token that counts most."""
        explanation = self.classifier.explain(self.judged.texts[row]).readable()
        start, end = next(place for name, place, _ in self._ranked(explanation, label) if name == word)
        return excerpt(explanation.text, start, end)

    def _ranked(self, explanation: Explanation, label: int) -> list[tuple[str, tuple[int, int], float]]:
        """Return the parts of a row, those that count most first: the name, the place and the contribution of each."""
        values = self.sign * added_by_parts(explanation)[:, label]
        parts = zip(*named_parts(explanation), values.tolist(), strict=True)
        return sorted(parts, key=lambda part: -part[2])

    def _surest(self, wrong_NC: Bools) -> tuple[SureLabelError, ...]:
        row, label = np.nonzero(wrong_NC)
        order = np.argsort(-self.sign * self.judged.probabilities[row, label], kind="stable")[:SUREST]
        return tuple(self._sure(int(row[i]), int(label[i])) for i in order)

    def _sure(self, row: int, label: int) -> SureLabelError:
        judged = self.judged
        explanation = self.classifier.explain(judged.texts[row]).readable()
        speak: dict[str, tuple[int, int]] = {}
        for name, place, value in self._ranked(explanation, label):
            if value > 0:
                speak.setdefault(name, place)
        words = tuple(speak)[:REASONS]
        return SureLabelError(
            row=row,
            text=explanation.text,
            labels=tuple(sorted(judged.right[row])),
            assigned=tuple(judged.labels[i] for i in np.flatnonzero(judged.assigned[row]).tolist()),
            label=judged.labels[label],
            probability=float(judged.probabilities[row, label]),
            words=words,
            place=next((speak[word] for word in words if speak[word] != NOWHERE), NOWHERE),
        )
