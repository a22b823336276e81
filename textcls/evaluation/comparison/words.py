"""Which words changed sides between two models, on the texts that they answer differently.

If the first model says x and the second one y, the evidence that a token adds for y over x is one number in each model,
an exact part of their sums (`textcls.model.explanation`). With several labels per text it is what the token adds to the
labels that only the second model assigns, minus what it adds to those that only the first one assigns. A cell of a
column beside the text, `product = lamp`, counts like a word.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from textcls.evaluation.comparison.sides import Labels
from textcls.explain.global_explanation.explainer import curves, named_parts
from textcls.model.classifier import Classifier, Text
from textcls.model.explanation import Explanation, added_by_parts

Float64 = NDArray[np.float64]

# The number of texts, the first ones, that are explained; and the number of words reported per text.
EXPLAINED: Final = 500
SHOWN: Final = 3


class Flip(NamedTuple):
    """A row that the two sides answer differently.

    Attributes:
        row: its number, from 0.
        text: the text of the row.
        right: its label, or labels.
        first: the answer of the first side.
        second: the answer of the second side.
        reasons: for each side that is a model, the words that speak most for its answer over the other's: with several
            labels, for those that only it assigns, and against those that only the other side assigns.
    """

    row: int
    text: str
    right: Labels
    first: Labels
    second: Labels
    reasons: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())

    @property
    def kind(self) -> str:
        """The kind of change: `mended`, `broken`, or `other` if both are wrong."""
        return "mended" if self.second == self.right else "broken" if self.first == self.right else "other"

    @property
    def lost(self) -> tuple[str, ...]:
        """The labels that only the first side gives."""
        return _alone(self.first, self.second)

    @property
    def gained(self) -> tuple[str, ...]:
        """The labels that only the second side gives."""
        return _alone(self.second, self.first)


class ChangedWord(NamedTuple):
    """What a word adds to the second side's answers over the first side's, summed over the texts with it.

    Attributes:
        word: the token in lower case, or the cell, `product = lamp`, or a column of numbers or dates.
        texts: how many of the changed texts contain it.
        before: its sum in the first model, in logits.
        after: its sum in the second model.
    """

    word: str
    texts: int
    before: float
    after: float


def explained(
    flips: Iterable[Flip], rows: Sequence[Text], first: Classifier | None, second: Classifier | None
) -> list[Flip]:
    """Return flips with their reasons, except those of a side that is not a model, or does not know one of the labels.

    Args:
        flips: the flips to be explained.
        rows: all rows, in the form in which the models were asked about them.
        first: the model of the first side, if it is one.
        second: likewise.
    """
    found = []
    for flip in flips:
        why = tuple(
            reasons(model, rows[flip.row], own, other)
            for model, own, other in ((first, flip.lost, flip.gained), (second, flip.gained, flip.lost))
        )
        found.append(flip._replace(reasons=(why[0], why[1])))
    return found


def reasons(model: Classifier | None, row: Text, own: Sequence[str], other: Sequence[str]) -> tuple[str, ...]:
    """Return the words, and cells beside the text, that most favour the labels `own` over `other`."""
    if model is None or not {*own, *other} <= set(model.labels):
        return ()
    explanation = model.explain(row).readable()
    contrast_P, (names, _) = _over(explanation, own, other), named_parts(explanation)
    order = (-contrast_P).argsort(kind="stable").tolist()
    return tuple(dict.fromkeys(names[p] for p in order if contrast_P[p] > 0))[:SHOWN]


def changed_words(
    flips: Iterable[Flip], rows: Sequence[Text], first: Classifier, second: Classifier
) -> list[ChangedWord]:
    """Return the words of flips, those whose sums changed most first; `rows` as in `explained`."""
    before: defaultdict[str, float] = defaultdict(float)
    after: defaultdict[str, float] = defaultdict(float)
    texts: defaultdict[str, set[int]] = defaultdict(set)
    known = set(first.labels) & set(second.labels)
    for flip in flips:
        if not {*flip.lost, *flip.gained} <= known:
            continue
        for sums, model in ((before, first), (after, second)):
            explanation = model.explain(rows[flip.row]).readable()
            added = _over(explanation, flip.gained, flip.lost).tolist()
            for word, value in zip(named_parts(explanation, curves(model.info))[0], added, strict=True):
                sums[word] += value
                texts[word].add(flip.row)
    found = [ChangedWord(word, len(rows), before[word], after[word]) for word, rows in texts.items()]
    return sorted(found, key=lambda word: (-abs(word.after - word.before), word.word))


def _over(explanation: Explanation, own: Sequence[str], other: Sequence[str]) -> Float64:
    """Return what each part of a row, tokens and then cells, adds to `own` over `other` labels [parts], in logits."""
    weight_C = np.zeros(len(explanation.labels))
    weight_C[[explanation.labels.index(label) for label in own]] += 1.0
    weight_C[[explanation.labels.index(label) for label in other]] -= 1.0
    return np.asarray(added_by_parts(explanation).astype(np.float64) @ weight_C)


def _alone(labels: Labels, others: Labels) -> tuple[str, ...]:
    there = (others,) if isinstance(others, str) else others
    return tuple(label for label in ((labels,) if isinstance(labels, str) else labels) if label not in there)
