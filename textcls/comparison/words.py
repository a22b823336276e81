"""Which words changed sides between two models, on the texts that they answer differently.

Where the first model says x and the second one y, what a token adds to y over x is one number in each model, and it is
part of their sums exactly (`textcls.explanation`).
"""

from collections import defaultdict
from collections.abc import Iterable
from typing import Final, NamedTuple

from textcls.classifier import Classifier
from textcls.explanation import Explanation

# Texts that are explained for the words, the first ones; and words that are told of a text.
EXPLAINED: Final = 500
TOLD: Final = 3


class Flip(NamedTuple):
    """A row that the two sides answer differently.

    Attributes:
        row: its number, from 0.
        text: of the row.
        right: its label.
        first: the answer of the first side.
        second: the answer of the second side.
        reasons: of each side that is a model, the words that speak most for its answer over the other's.
    """

    row: int
    text: str
    right: str
    first: str
    second: str
    reasons: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())

    @property
    def kind(self) -> str:
        """What it means: `mended`, `broken`, or `other` where both are wrong."""
        return "mended" if self.second == self.right else "broken" if self.first == self.right else "other"


class ChangedWord(NamedTuple):
    """What a word adds to the second side's answers over the first side's, summed over the texts with it.

    Attributes:
        word: the token in lower case.
        texts: in how many of the texts that changed it stands.
        before: in logits, by the first model.
        after: by the second model.
    """

    word: str
    texts: int
    before: float
    after: float


def explained(flips: Iterable[Flip], first: Classifier | None, second: Classifier | None) -> list[Flip]:
    """Return flips with their reasons; without those of a side that is no model, or does not know one of the labels."""
    found = []
    for flip in flips:
        reasons = tuple(
            _reasons(model, flip.text, own, other)
            for model, own, other in ((first, flip.first, flip.second), (second, flip.second, flip.first))
        )
        found.append(flip._replace(reasons=(reasons[0], reasons[1])))
    return found


def _reasons(model: Classifier | None, text: str, own: str, other: str) -> tuple[str, ...]:
    if model is None or not {own, other} <= set(model.labels):
        return ()
    explanation = model.explain(text)
    contrast_T = explanation.contrast(own, other)
    order = (-contrast_T).argsort(kind="stable")[:TOLD]
    return tuple(_word(explanation, int(t)) for t in order if contrast_T[t] > 0)


def changed_words(flips: Iterable[Flip], first: Classifier, second: Classifier) -> list[ChangedWord]:
    """Return the words of flips, those first whose sums changed most."""
    before: defaultdict[str, float] = defaultdict(float)
    after: defaultdict[str, float] = defaultdict(float)
    texts: defaultdict[str, set[int]] = defaultdict(set)
    known = set(first.labels) & set(second.labels)
    for flip in flips:
        if not {flip.first, flip.second} <= known:
            continue
        for sums, model in ((before, first), (after, second)):
            explanation = model.explain(flip.text)
            for t, value in enumerate(explanation.contrast(flip.second, flip.first).tolist()):
                word = _word(explanation, t).lower()
                sums[word] += value
                texts[word].add(flip.row)
    found = [ChangedWord(word, len(rows), before[word], after[word]) for word, rows in texts.items()]
    return sorted(found, key=lambda word: (-abs(word.after - word.before), word.word))


def _word(explanation: Explanation, t: int) -> str:
    start, end = explanation.spans[t]
    return explanation.text[start:end]
