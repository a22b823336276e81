"""Does the text call for a term where it occurs, or would the text read as well without it?

Adjacent words go together: `log P(right | left) / P(right)` is larger for neighbours than for any two words. When a
word that was put in is taken out, its two neighbours become adjacent again as they were before: they go together as
neighbours do. When a word that belongs to the text is taken out, its neighbours seldom occur side by side.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from textcls.explain.shortcuts.corpus import END, START, Corpus, Int64
from textcls.explain.shortcuts.terms import Term

Float64 = NDArray[np.float64]
# The number of occurrences of the left word that weigh as much as the frequency of the right one by itself.
PRIOR: Final = 20.0
# By how many standard deviations of neighbours, and by how many standard errors, the mean may differ from theirs.
TOLERANCE: Final = 0.15
ERRORS: Final = 1.0
# The least share of places with different neighbours: a phrase with always the same context is part of a longer one.
LEAST_DIFFERENT: Final = 0.4
MOST_DEVIATIONS: Final = 4.0
# The least deviation: texts that all begin alike differ only by rounding.
LEAST_DEVIATION: Final = 0.05


@dataclass(frozen=True, eq=False)
class Neighbours:
    """How words go together in a corpus.

    Attributes:
        keys: the pairs of neighbours, left * V + right, sorted.
        counts: the counts of each.
        count_V: the counts of words as the left one.
        share_V: the shares of words as the right one.
        told_NK3: for each text the number of neighbours, the sum of their `togetherness` and that of its squares:
            within a text, at its start, at its end.
        told_LK3: the same for all texts of a label.
    """

    keys: Int64
    counts: Int64
    count_V: Int64
    share_V: Float64
    told_NK3: Float64
    told_LK3: Float64

    @classmethod
    def of(cls, corpus: Corpus) -> "Neighbours":
        """Count the neighbours of a corpus."""
        word_T, size = corpus.word_T, len(corpus.words)
        same_T = corpus.text_T[1:] == corpus.text_T[:-1]
        left_O, right_O = word_T[:-1][same_T], word_T[1:][same_T]
        keys, counts = np.unique(left_O * size + right_O, return_counts=True)
        share_V = corpus.counts / max(1, len(left_O))
        nothing: Float64 = np.zeros((0, 3, 3), np.float64)
        # Each pair of neighbours is judged by the others: it has been counted itself.
        together_O = cls(keys, counts, corpus.counts, share_V, nothing, nothing).togetherness(left_O, right_O, itself=1)
        group_O = 3 * corpus.text_T[:-1][same_T] + _kinds(left_O, right_O)
        groups = 3 * len(corpus.texts)
        powers = (np.ones(len(together_O)), together_O, together_O**2)
        parts = [np.bincount(group_O, power_O, groups) for power_O in powers]
        told_NK3: Float64 = np.stack(parts, 1).reshape(-1, 3, 3).astype(np.float64)
        told_LK3 = np.stack([told_NK3[corpus.of_label(label)].sum(0) for label in range(corpus.labels)])
        return cls(keys, counts, corpus.counts, share_V, told_NK3, told_LK3)

    def usual(self, corpus: Corpus, term: Term) -> tuple[Float64, Float64]:
        """Return mean and standard deviation [3] of `togetherness` in the texts of a term's label that lack the term.

        What was put into many of them has the same neighbours again and again: it would be judged by itself.
        """
        told_K3 = self.told_LK3[term.label] - self.told_NK3[term.rows_of_label(corpus)].sum(0)
        mean_K, square_K = told_K3[:, 1:].T / np.maximum(1, told_K3[:, 0])
        return mean_K, np.sqrt(np.maximum(0.0, square_K - mean_K**2))

    def togetherness(self, left_O: Int64, right_O: Int64, itself: int = 0) -> Float64:
        """Return how much more probable each right word is after the left one than anywhere, as a logarithm.

        Args:
            left_O: the left words.
            right_O: the right words.
            itself: how many of the counts are those of the pair itself.
        """
        key_O = left_O * len(self.count_V) + right_O
        at_O = np.minimum(np.searchsorted(self.keys, key_O), len(self.keys) - 1)
        count_O = np.where(self.keys[at_O] == key_O, self.counts[at_O], 0) - itself
        share_O = self.share_V[right_O]
        found_O = (count_O + PRIOR * share_O) / (self.count_V[left_O] - itself + PRIOR)
        return np.asarray(np.log(np.maximum(found_O, 1e-12) / share_O))


def _kinds(left_O: Int64, right_O: Int64) -> Int64:
    """Return for each pair 1 at the start of a text, 2 at its end, 0 within it."""
    return np.where(left_O == START, 1, np.where(right_O == END, 2, 0))


def misfit(corpus: Corpus, neighbours: Neighbours, term: Term) -> float:
    """Return how far a term is from having been put into its texts, in units of chance; up to 1 it was put in.

    The context of such a term goes together as neighbours do, and differs from place to place.
    """
    left_O, right_O = corpus.word_T[term.first_O - 1], corpus.word_T[term.lasts + 1]
    mean_O, deviation_O = (usual_K[_kinds(left_O, right_O)] for usual_K in neighbours.usual(corpus, term))
    score_O = (neighbours.togetherness(left_O, right_O) - mean_O) / np.maximum(deviation_O, LEAST_DEVIATION)
    count = len(score_O)
    # If nearly all texts end alike, one that does not would count for hundreds.
    score_O = np.clip(score_O, -MOST_DEVIATIONS, MOST_DEVIATIONS)
    apart = abs(float(score_O.mean())) / (TOLERANCE + ERRORS / count**0.5)
    different = len(np.unique(_around(corpus, term, left_O == START, right_O == END), axis=0))
    return float(max(apart, LEAST_DIFFERENT * min(count, 100) / different))


def _around(corpus: Corpus, term: Term, first_O: NDArray[np.bool_], last_O: NDArray[np.bool_]) -> Int64:
    """Return the context of a term [O, 4]: two words on either side, or four words of the text at its edge.

    Two, since at the end of a text a full stop nearly always precedes it.
    """
    before_O4, behind_O4 = term.first_O[:, None] - [4, 3, 2, 1], term.lasts[:, None] + [1, 2, 3, 4]
    inner_O4 = np.concatenate([before_O4[:, 2:], behind_O4[:, :2]], 1)
    place_O4 = np.where(first_O[:, None], behind_O4, np.where(last_O[:, None], before_O4, inner_O4))
    found: Int64 = corpus.word_T[np.clip(place_O4, 0, len(corpus.word_T) - 1)]
    return found
