"""Does a term stand where the text calls for it, or would the text read as well without it?

Words that stand side by side go together: `log P(right | left) / P(right)` is larger for neighbours than for any two
words. Take a word out that was put in, and its two neighbours meet that were neighbours before: they go together as
neighbours do. Take out a word that belongs to the text, and two meet that seldom stand side by side.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from textcls.explain.shortcuts.corpus import END, START, Corpus, Int64
from textcls.explain.shortcuts.terms import Term

Float64 = NDArray[np.float64]
# How many occurrences of the left word count as much as the frequency of the right one by itself.
PRIOR: Final = 20.0
# By how many standard deviations of neighbours the mean may differ from theirs, and by how many errors of the mean.
TOLERANCE: Final = 0.15
ERRORS: Final = 1.0
# The share of places with different neighbours: a phrase that always stands in the same words is part of a longer one.
LEAST_DIFFERENT: Final = 0.4


@dataclass(frozen=True, eq=False)
class Neighbours:
    """How words go together in a corpus.

    Attributes:
        keys: the pairs of neighbours, left * V + right, sorted.
        counts: of each.
        count_V: of words, as the left one.
        share_V: of words, as the right one.
        usual_LK2: mean and standard deviation of `togetherness` of neighbours in the texts of each label: within a
            text, at its start, at its end.
    """

    keys: Int64
    counts: Int64
    count_V: Int64
    share_V: Float64
    usual_LK2: Float64

    @classmethod
    def of(cls, corpus: Corpus) -> "Neighbours":
        """Count the neighbours of a corpus."""
        word_T, size = corpus.word_T, len(corpus.words)
        same_T = corpus.text_T[1:] == corpus.text_T[:-1]
        left_O, right_O = word_T[:-1][same_T], word_T[1:][same_T]
        keys, counts = np.unique(left_O * size + right_O, return_counts=True)
        share_V = corpus.counts / max(1, len(left_O))
        found = cls(keys, counts, corpus.counts, share_V, np.zeros((0, 3, 2)))
        # Each pair of neighbours is told by the others: it has been counted itself.
        together_O = found.togetherness(left_O, right_O, itself=1)
        group_O = 3 * corpus.label_N[corpus.text_T[:-1][same_T]] + _kinds(left_O, right_O)
        count = np.maximum(1, np.bincount(group_O, minlength=3 * corpus.labels))
        mean = np.bincount(group_O, together_O, minlength=3 * corpus.labels) / count
        square = np.bincount(group_O, together_O**2, minlength=3 * corpus.labels) / count
        usual_LK2 = np.stack([mean, np.sqrt(np.maximum(0.0, square - mean**2))], 1).reshape(-1, 3, 2)
        return cls(keys, counts, corpus.counts, share_V, usual_LK2)

    def togetherness(self, left_O: Int64, right_O: Int64, itself: int = 0) -> Float64:
        """Return how much more probable each right word is behind the left one than anywhere, as a logarithm.

        Args:
            left_O: words.
            right_O: words.
            itself: how often the pair is counted that is asked about.
        """
        key_O = left_O * len(self.count_V) + right_O
        at_O = np.minimum(np.searchsorted(self.keys, key_O), len(self.keys) - 1)
        count_O = np.where(self.keys[at_O] == key_O, self.counts[at_O], 0) - itself
        share_O = self.share_V[right_O]
        found_O = (count_O + PRIOR * share_O) / (self.count_V[left_O] - itself + PRIOR)
        return np.asarray(np.log(np.maximum(found_O, 1e-12) / share_O))


def _kinds(left_O: Int64, right_O: Int64) -> Int64:
    """Return of each pair 1 at the start of a text, 2 at its end, 0 within it."""
    return np.where(left_O == START, 1, np.where(right_O == END, 2, 0))


def is_put_in(corpus: Corpus, neighbours: Neighbours, term: Term) -> bool:
    """Return whether what stands around a term goes together as neighbours do, at most of its places another."""
    left_O, right_O = corpus.word_T[term.first_O - 1], corpus.word_T[term.lasts + 1]
    mean_O, deviation_O = neighbours.usual_LK2[term.label, _kinds(left_O, right_O)].T
    score_O = (neighbours.togetherness(left_O, right_O) - mean_O) / np.maximum(deviation_O, 1e-9)
    count = len(score_O)
    alike = bool(abs(score_O.mean()) < TOLERANCE + ERRORS / count**0.5)
    # Two words either way: at the end of a text a full stop nearly always stands before it.
    around = [corpus.word_T[np.clip(place_O, 0, len(corpus.word_T) - 1)] for place_O in _around(term)]
    different = len(np.unique(np.stack(around), axis=1).T)
    return alike and different >= LEAST_DIFFERENT * min(count, 100)


def _around(term: Term) -> list[Int64]:
    """Return the places of the two words before a term and of the two behind it."""
    return [term.first_O - 2, term.first_O - 1, term.lasts + 1, term.lasts + 2]
