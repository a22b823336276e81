"""Find the words, pairs and phrases that predict a label: candidates, by counts alone.

Shapes: O places of a term, K terms, C labels.
"""

from collections.abc import Container, Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from textcls.explain.shortcuts.corpus import END, START, Corpus, Int64, distinct

Float64 = NDArray[np.float64]
# A term has to occur in this many texts, and in this share of the texts of its label; rarer ones matter little.
LEAST_TEXTS: Final = 12
LEAST_SHARE: Final = 0.003
# At least this share of its texts has to have its label.
PURITY: Final = 0.8
# The probability that any of all terms is this pure by accident.
CHANCE: Final = 0.05
# If this share of a word's occurrences is followed by the same word, they are one phrase.
FIXED: Final = 0.8
LONGEST: Final = 8
# If a term is at the edge of this share of its texts, that is its place.
AT_EDGE: Final = 0.8


@dataclass(frozen=True, eq=False)
class Term:
    """A word, a pair or a longer phrase that predicts a label.

    Attributes:
        words: the numbers of its words.
        first_O: the positions in the corpus at which its occurrences begin.
        label: number of the label that it predicts.
        texts: how many texts contain it.
        of_label: how many of them have the label.
    """

    words: tuple[int, ...]
    first_O: Int64
    label: int
    texts: int
    of_label: int

    @property
    def lasts(self) -> Int64:
        """The positions at which its occurrences end."""
        return self.first_O + len(self.words) - 1

    def rows(self, corpus: Corpus) -> Int64:
        """Return the numbers of the texts that contain it."""
        return distinct(corpus.text_T[self.first_O])

    def rows_of_label(self, corpus: Corpus) -> Int64:
        """Return the numbers of those that have its label."""
        rows = self.rows(corpus)
        return rows[corpus.of_label(self.label)[rows]]

    def place(self, corpus: Corpus) -> str:
        """Return its position in nearly all of its texts: `start`, `end`, or `anywhere`."""
        if np.mean(corpus.word_T[self.first_O - 1] == START) > AT_EDGE:
            return "start"
        return "end" if np.mean(corpus.word_T[self.lasts + 1] == END) > AT_EDGE else "anywhere"


def candidates(corpus: Corpus, holding: Container[int] | None = None) -> tuple[list[Term], int]:
    """Return the terms that predict a label beyond chance, and how many terms were examined.

    A pair is left out if it only repeats one of its words that predicts the same label.

    Args:
        corpus: the texts.
        holding: each returned term has to contain one of these words; None for any.
    """
    words, pairs = _Kind.of(corpus, 1), _Kind.of(corpus, 2)
    tested = len(words.keys) + len(pairs.keys)
    found: dict[tuple[int, ...], Term] = {}
    for kind in (words, pairs):
        for k, label in kind.telling(corpus, tested):
            if holding is not None and not any(word in holding for word in kind.words(k, corpus)):
                continue
            first_O = kind.places(k)
            if kind.length == 2 and not _adds(words, kind, k, label, tested, corpus):
                continue
            for term in _phrases(corpus, first_O, kind.length):
                checked = _checked(corpus, *term, tested)
                if checked is not None:
                    found.setdefault(checked.words, checked)
    return sorted(found.values(), key=lambda term: (-term.texts, term.words)), tested


def least_texts(prior: float, texts: int, tested: int) -> int:
    """Return how many texts of a label, of this share of all texts, must contain a term for it to be reported."""
    found = max(LEAST_TEXTS, int(np.ceil(LEAST_SHARE * prior * texts)))
    if 0 < prior < 1:
        found = max(found, int(np.ceil(np.log(CHANCE / max(1, tested)) / np.log(prior))))
    return found


@dataclass(frozen=True, eq=False)
class _Kind:
    """All terms of one length that occur in enough texts.

    Attributes:
        length: in words.
        keys: the word, or word * V + word.
        place_O: the positions at which they begin, sorted by term.
        start_K: the first of the places of each term, and the end of all.
        text_K: the number of texts that contain each.
        text_KC: the number of these with each label.
    """

    length: int
    keys: Int64
    place_O: Int64
    start_K: Int64
    text_K: Int64
    text_KC: Int64

    @classmethod
    def of(cls, corpus: Corpus, length: int) -> "_Kind":
        word_T, size = corpus.word_T, len(corpus.words)
        inner_T = word_T > 1
        if length == 1:
            place_O = np.flatnonzero(inner_T)
            key_O = word_T[place_O]
        else:
            place_O = np.flatnonzero(inner_T[:-1] & inner_T[1:])
            key_O = word_T[place_O] * size + word_T[place_O + 1]
        order = np.argsort(key_O, kind="stable")
        place_O, key_O = place_O[order], key_O[order]
        keys, start_K, count_K = np.unique(key_O, return_index=True, return_counts=True)
        often = count_K >= LEAST_TEXTS
        place_O = place_O[np.repeat(often, count_K)]
        keys, count_K = keys[often], count_K[often]
        start_K = np.concatenate([[0], np.cumsum(count_K)])
        term_O = np.repeat(np.arange(len(keys)), count_K)
        texts = max(1, len(corpus.texts))
        held = distinct(term_O * texts + corpus.text_T[place_O])
        term_H, row_H = held // texts, held % texts
        text_KC = np.zeros((len(keys), corpus.labels), np.int64)
        place, label = corpus.labels_of(row_H)
        np.add.at(text_KC, (term_H[place], label), 1)
        return cls(length, keys, place_O, start_K, np.bincount(term_H, minlength=len(keys)), text_KC)

    def telling(self, corpus: Corpus, tested: int) -> Iterator[tuple[int, int]]:
        """Yield the number of each term that predicts a label, and that of the label."""
        text_K = self.text_K
        share_KC = self.text_KC / np.maximum(1, text_K)[:, None]
        label_K = (share_KC - corpus.priors).argmax(1)
        for k in np.flatnonzero((text_K >= LEAST_TEXTS) & (share_KC.max(1) >= FIXED)).tolist():
            label = int(label_K[k])
            if log_chance(int(self.text_KC[k, label]), int(text_K[k]), float(corpus.priors[label])) < np.log(
                CHANCE / tested
            ):
                yield k, label

    def places(self, k: int) -> Int64:
        return self.place_O[self.start_K[k] : self.start_K[k + 1]]

    def words(self, k: int, corpus: Corpus) -> tuple[int, ...]:
        first = self.places(k)[0]
        return tuple(corpus.word_T[first : first + self.length].tolist())


def log_chance(of_label: int, texts: int, prior: float) -> float:
    """Return a bound on the logarithm of the chance that this many of some texts have a label of this share of all.

    It is Chernoff's, exp(-n KL(k/n || p)), exact if all have it.
    """
    share = of_label / texts
    if share <= prior:
        return 0.0
    if prior <= 0:
        return -np.inf
    found = share * np.log(share / prior)
    if share < 1:
        found += (1 - share) * np.log((1 - share) / (1 - prior))
    return float(-texts * found)


def _adds(words: _Kind, pairs: _Kind, k: int, label: int, tested: int, corpus: Corpus) -> bool:
    """Return whether pair `k` predicts its label better than each of its words does elsewhere."""
    texts, of_label = int(pairs.text_K[k]), int(pairs.text_KC[k, label])
    prior = float(corpus.priors[label])
    for word in pairs.words(k, corpus):
        number = int(np.searchsorted(words.keys, word))
        elsewhere = int(words.text_K[number]) - texts
        if elsewhere > 0:
            share = (int(words.text_KC[number, label]) - of_label) / elsewhere
            # Smoothed: a few texts say little.
            prior = max(prior, (share * elsewhere + prior * LEAST_TEXTS) / (elsewhere + LEAST_TEXTS))
    return bool(log_chance(of_label, texts, prior) < np.log(CHANCE / tested))


def _phrases(corpus: Corpus, first_O: Int64, length: int) -> Iterator[tuple[Int64, int]]:
    """Yield the positions of a term, and its length; then with a word that nearly always adjoins it; and so on."""
    word_T = corpus.word_T
    while True:
        yield first_O, length
        if length == LONGEST:
            return
        before_O, behind_O = word_T[first_O - 1], word_T[first_O + length]
        before, behind = int(np.median(before_O)), int(np.median(behind_O))
        if before > 1 and np.mean(before_O == before) > FIXED:
            first_O, length = first_O[before_O == before] - 1, length + 1
        elif behind > 1 and np.mean(behind_O == behind) > FIXED:
            first_O, length = first_O[behind_O == behind], length + 1
        else:
            return


def _checked(corpus: Corpus, first_O: Int64, length: int, tested: int) -> Term | None:
    """Return the term at these positions if it predicts a label, and is nearly always the same."""
    rows = distinct(corpus.text_T[first_O])
    count_C = np.bincount(corpus.labels_of(rows)[1], minlength=corpus.labels)
    label = int((count_C / len(rows) - corpus.priors).argmax())
    of_label = int(count_C[label])
    of_all = float(corpus.priors[label]) * len(corpus.texts)
    if len(rows) < max(LEAST_TEXTS, LEAST_SHARE * of_all) or of_label < PURITY * len(rows):
        return None
    if log_chance(of_label, len(rows), float(corpus.priors[label])) >= np.log(CHANCE / tested):
        return None
    words = tuple(corpus.word_T[first_O[0] : first_O[0] + length].tolist())
    return Term(words, first_O, label, len(rows), of_label)
