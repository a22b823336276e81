"""Are the texts of a term about the same thing, beyond their label?

Words that belong to a subject occur in texts of that subject, which share other words as well, some these and some
those. What was put into texts occurs in texts that share no more than any of the label, except for what was put in with
it, which all of them share. Texts are compared by the cosine of their words, rarer ones weighing more (TF-IDF).
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from textcls.explain.shortcuts.corpus import Corpus, Int64, distinct
from textcls.explain.shortcuts.terms import FIXED, Term

Float64 = NDArray[np.float64]
# The number of texts compared, and of samples of as many texts of the label that they are compared with.
MOST_TEXTS: Final = 300
SAMPLES: Final = 16
# The number of standard deviations of those samples beyond which texts have a common subject.
DEVIATIONS: Final = 2.5


class Coherence:
    """The words of each text with their weights, of unit length."""

    def __init__(self, corpus: Corpus) -> None:
        self.corpus, size, texts = corpus, len(corpus.words), len(corpus.texts)
        inner_T = corpus.word_T > 1
        held = distinct(corpus.text_T[inner_T] * size + corpus.word_T[inner_T])
        text_E, self.word_E = held // size, held % size
        rarity_V = np.log(texts / np.maximum(1, np.bincount(self.word_E, minlength=size)))
        weight_E = rarity_V[self.word_E]
        length_N = np.sqrt(np.bincount(text_E, weight_E**2, minlength=texts))
        self.weight_E = weight_E / np.maximum(length_N, 1e-9)[text_E]
        self.start_N = np.searchsorted(text_E, np.arange(texts + 1))
        self._usual: dict[tuple[int, int], tuple[float, float]] = {}

    def likeness(self, rows: Int64, without: tuple[int, ...] = ()) -> float:
        """Return the mean cosine of any two of these texts, without some words."""
        sum_V, squares = np.zeros(len(self.corpus.words)), 0.0
        for row in rows.tolist():
            part = slice(self.start_N[row], self.start_N[row + 1])
            word_E, weight_E = self.word_E[part], self.weight_E[part]
            if without:
                weight_E = np.where(np.isin(word_E, without), 0.0, weight_E)
            sum_V[word_E] += weight_E
            squares += float(weight_E @ weight_E)
        return (float(sum_V @ sum_V) - squares) / max(1, len(rows) * (len(rows) - 1))

    def kinship(self, term: Term) -> float:
        """Return how much more alike the texts of a term are than others of its label; up to 1 may be chance."""
        random = np.random.default_rng(0)
        rows = random.permutation(term.rows_of_label(self.corpus))[:MOST_TEXTS]
        mean, deviation = self._usual_likeness(term.label, len(rows))
        likeness = self.likeness(rows, (*term.words, *self._companions(rows)))
        return (likeness - mean) / (DEVIATIONS * deviation)

    def _companions(self, rows: Int64) -> list[int]:
        """Return the words that occur in nearly all of these texts."""
        words = [self.word_E[self.start_N[row] : self.start_N[row + 1]] for row in rows.tolist()]
        found, counts = np.unique(np.concatenate(words), return_counts=True)
        kept: list[int] = found[counts > FIXED * len(rows)].tolist()
        return kept

    def _usual_likeness(self, label: int, count: int) -> tuple[float, float]:
        """Return mean and standard deviation over samples of about this many texts of a label."""
        # Sizes in steps of a quarter, so that few need to be measured.
        every = np.flatnonzero(self.corpus.of_label(label))
        size = min(len(every), max(2, round(1.25 ** round(np.log(max(2, count)) / np.log(1.25)))))
        if (label, size) not in self._usual:
            random = np.random.default_rng(1)
            found = [self.likeness(random.choice(every, size, replace=False)) for _ in range(SAMPLES)]
            self._usual[label, size] = float(np.mean(found)), max(float(np.std(found)), 1e-9)
        return self._usual[label, size]
