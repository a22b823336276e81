"""Find the training rows that are like an answer: rows whose words add to its label what its own words add.

A text is described by what each of its distinct words adds along one contrast, that of the explained answer. The
similarity of two texts is the cosine between these descriptions: 1 for the same words in the same proportions, 0 if
they share no word that counts. So "the" makes no texts alike, and every row comes with the words that do.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from heapq import nlargest
from itertools import islice
from math import hypot
from typing import Any, Final

import numpy as np

from textcls.data.given_labels import Labels, with_labels_if_known
from textcls.errors import InputError
from textcls.model import tokenizer
from textcls.model.classifier import Classifier, Text
from textcls.model.explanation import Attribution, Explanation

# The number of rows explained at once, and of shared words reported.
SOME: Final = 256
SHOWN_WORDS: Final = 8
LISTED: Final = 5

# A text, and its label or labels.
LabelledText = tuple[Text, str | Labels | None]


@dataclass(frozen=True, slots=True)
class SimilarRow:
    """A training row that is like the explained text.

    Attributes:
        row: its number in the file, from 1.
        labels: its label, or labels.
        text: the text of the row.
        alike: the similarity, 0 to 1.
        shared: the words that both contain, with what each adds in the explained text, the strongest first.
    """

    row: int
    labels: tuple[str, ...]
    text: str
    alike: float
    shared: tuple[tuple[str, float], ...]

    def as_json(self, *, texts: bool) -> dict[str, Any]:
        """Return it as plain data, with its text on request."""
        found = {
            "row": self.row,
            "labels": list(self.labels),
            "alike": self.alike,
            "shared": [{"word": word, "added": added} for word, added in self.shared],
        }
        return found | ({"text": self.text} if texts else {})


@dataclass(frozen=True, slots=True)
class SimilarRows:
    """The rows of a file that are most like a text.

    Attributes:
        label: the explained label.
        rows: how many were examined.
        same: the most similar rows of that label, the most similar first.
        other: likewise for other labels.
    """

    label: str
    rows: int
    same: tuple[SimilarRow, ...]
    other: tuple[SimilarRow, ...]

    def as_json(self, *, texts: bool = False) -> dict[str, Any]:
        """Return them as plain data, with their texts on request."""
        sides = {"same_label": self.same, "other_labels": self.other}
        listed = {name: [row.as_json(texts=texts) for row in side] for name, side in sides.items()}
        return {"label": self.label, "rows": self.rows, **listed}


def similar_rows(
    classifier: Classifier,
    explanation: Explanation,
    attribution: Attribution,
    rows: Iterable[LabelledText],
    *,
    most: int = LISTED,
) -> SimilarRows:
    """Return the rows that are most like an explained text.

    Args:
        classifier: the model.
        explanation: the explanation of the text, by tokens.
        attribution: the attribution of that explanation for the label that is explained.
        rows: texts with their labels, such as those of the training; read once, and not kept.
        most: at most this many are returned, of the label and of others.

    Raises:
        InputError: there are no rows, or one is not a pair of a text and its label, or its labels, or None.
    """
    labels = {explanation.labels[i] for i in explanation.below(attribution.label)}
    own = _added(explanation, attribution)
    size, count = _length(own), 0
    same: list[SimilarRow] = []
    other: list[SimilarRow] = []
    for row in _explained(classifier, rows, attribution):
        count = row.number
        alike = sum(value * row.added[word] for word, value in own.items() if word in row.added)
        if alike <= 0:
            continue
        shared = sorted(((word, own[word]) for word in own.keys() & row.added.keys()), key=lambda s: (-abs(s[1]), s[0]))
        similar = SimilarRow(
            row.number, row.labels, row.text, min(1.0, alike / (size * _length(row.added))), tuple(shared[:SHOWN_WORDS])
        )
        side = other if labels.isdisjoint(row.labels) else same
        side.append(similar)
        if len(side) > SOME:
            side[:] = _most_alike(side, most)
    if not count:
        raise InputError("There are no rows to look for texts like this one.")
    return SimilarRows(attribution.label, count, _most_alike(same, most), _most_alike(other, most))


def _most_alike(rows: list[SimilarRow], most: int) -> tuple[SimilarRow, ...]:
    return tuple(nlargest(most, rows, key=lambda row: (row.alike, -row.row)))


@dataclass(frozen=True, slots=True)
class _Row:
    number: int
    labels: tuple[str, ...]
    text: str
    added: dict[str, float]


def _explained(classifier: Classifier, rows: Iterable[LabelledText], attribution: Attribution) -> Iterator[_Row]:
    numbered = enumerate(with_labels_if_known(rows, classifier.info), 1)
    while some := list(islice(numbered, SOME)):
        explanations = classifier.explain([text for _, (text, _) in some])
        for (number, (_, label)), explanation in zip(some, explanations, strict=True):
            labels = (label,) if isinstance(label, str) else tuple(sorted(label or ()))
            yield _Row(number, labels, explanation.text, _added(explanation, attribution))


def _added(explanation: Explanation, attribution: Attribution) -> dict[str, float]:
    """Return what each distinct word adds along the contrast of an attribution."""
    found: defaultdict[str, float] = defaultdict(float)
    values = explanation.contributions.astype(np.float64) @ attribution.contrast
    lowered = tokenizer.lower(explanation.text)
    for (start, end), value in zip(explanation.spans, values.tolist(), strict=True):
        found[lowered[start:end]] += value
    return dict(found)


def _length(added: dict[str, float]) -> float:
    return hypot(*added.values()) or 1.0
