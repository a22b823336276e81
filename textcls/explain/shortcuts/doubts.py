"""Judge, from the texts alone, what speaks against a term being a shortcut, and how strongly."""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import numpy as np

from textcls.explain.shortcuts.coherence import Coherence
from textcls.explain.shortcuts.corpus import Corpus
from textcls.explain.shortcuts.placement import Neighbours, misfit
from textcls.explain.shortcuts.terms import FIXED, Term

# A term that occurs anywhere has to predict its label this surely, and in this many texts: in fewer, some word that
# belongs there looks by chance as if it did not.
SURE: Final = 0.98
ANYWHERE: Final = 40
# For a misspelt word: the least number of letters, and how often the right one occurs for each of its occurrences.
LEAST_LETTERS: Final = 3
RIGHT: Final = 0.5
# Doubts of this strength or more need no further examination.
CERTAIN: Final = 2.0
BELONGS, ALIKE, FEW, OTHERS = "belongs", "alike", "few", "others"


class Judged(NamedTuple):
    """A term, and the strongest doubt whether it was put into its texts.

    Attributes:
        term: the term, which predicts a label.
        doubt: None if there is none; `belongs` if its context calls for it, `alike` if its texts have a subject in
            common, `few` if it is in few texts, `others` if some of another label contain it, too.
        strength: the strength of the doubt: the further above 1, the more it belongs to what is said.
    """

    term: Term
    doubt: str | None
    strength: float


def judged(corpus: Corpus, terms: Sequence[Term]) -> list[Judged]:
    """Return each term with what speaks against it; among those that overlap in most of their texts, the longest."""
    if not terms:
        return []
    neighbours, coherence = Neighbours.of(corpus), Coherence(corpus)
    every = [_judge(corpus, neighbours, coherence, term) for term in terms]
    # The words of a phrase that was put in were put in, too; a phrase that belongs says nothing about its words.
    every.sort(key=lambda one: (one.doubt is not None, -len(one.term.words)))
    found: list[Judged] = []
    for one in every:
        if not any(_overlap(corpus, one, other) for other in found):
            found.append(one)
    return found


def _judge(corpus: Corpus, neighbours: Neighbours, coherence: Coherence, term: Term) -> Judged:
    doubts = list(_doubts(corpus, neighbours, coherence, term))
    strength, doubt = max(((strength, doubt) for doubt, strength in doubts), default=(0.0, ""))
    return Judged(term, doubt if strength > 1 else None, strength)


def _doubts(corpus: Corpus, neighbours: Neighbours, coherence: Coherence, term: Term) -> Iterator[tuple[str, float]]:
    # A misspelt word occurs where the right one would.
    if not _is_misspelt(corpus, term):
        belonging = misfit(corpus, neighbours, term)
        yield BELONGS, belonging
        if belonging < CERTAIN:  # else nothing more needs to be asked, which takes its time
            yield ALIKE, coherence.kinship(term)
    if term.place(corpus) == "anywhere":
        yield FEW, ANYWHERE / term.texts
        yield OTHERS, (1 - term.of_label / term.texts) / (1 - SURE)


def _is_misspelt(corpus: Corpus, term: Term) -> bool:
    """Return whether a term is a word with two letters swapped, and the texts contain the right one, too."""
    word = corpus.words[term.words[0]]
    if len(term.words) > 1 or len(word) < LEAST_LETTERS or not word.isalpha():
        return False
    swapped = {word[:i] + word[i + 1] + word[i] + word[i + 2 :] for i in range(len(word) - 1)} - {word}
    right = [corpus.numbers[other] for other in swapped if other in corpus.numbers]
    return bool(corpus.counts[right].sum() > RIGHT * len(term.first_O))


def _overlap(corpus: Corpus, one: Judged, other: Judged) -> bool:
    """Return whether a term is part of another one, a doubted one contains an undoubted one, or both are pieces of one
    phrase: they share words and nearly all texts.
    """
    words, others = set(one.term.words), set(other.term.words)
    if one.doubt is not None and other.doubt is None and others <= words:
        return True
    if words <= others:
        return one.term.texts < 1.25 * other.term.texts
    if not words & others or one.term.label != other.term.label:
        return False
    rows, theirs = one.term.rows(corpus), other.term.rows(corpus)
    return len(np.intersect1d(rows, theirs)) > FIXED * max(len(rows), len(theirs))
