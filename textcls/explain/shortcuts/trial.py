"""Test what would be found in these very texts: made-up words and numbers are put into copies of them.

Whether a model relies on them is not tested: it has not seen them. All numbers are read as one here.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

import numpy as np

from textcls.explain.shortcuts.corpus import NUMBER, Corpus, Int64
from textcls.explain.shortcuts.doubts import judged
from textcls.explain.shortcuts.terms import FIXED, candidates

# Shares of the texts of a label. Each share meets each kind in one of three copies: with all of them in one, too few
# texts would be left to compare them with.
SHARES: Final = (0.01, 0.05, 0.2)
KINDS: Final = ("word", "pair", "number")
PLACES: Final = ("start", "anywhere", "end")
# Longer corpora get a single copy.
MOST_TOKENS: Final = 1_000_000
# This many labels get plants, the commonest.
LABELS: Final = 2


class Trial(NamedTuple):
    """A plant, and whether it would be found if the model relied on it.

    Attributes:
        kind: `word`, `pair`, or `number`, a sign before any number.
        place: its position: `start`, `end`, `anywhere`.
        share: the share of a label's texts that got it.
        texts: the number of these texts.
        found: whether it would be reported beyond doubt.
    """

    kind: str
    place: str
    share: float
    texts: int
    found: bool


class _Plant(NamedTuple):
    kind: str
    place: str
    share: float
    label: int
    rows: Int64
    words: tuple[int, ...]


def trials(corpus: Corpus) -> tuple[Trial, ...]:
    """Return which plants of each kind would be found, in each share of the texts of a label; in very many texts, in
    one share each.

    Args:
        corpus: the texts, read by `numbers_alike`.
    """
    random = np.random.default_rng(0)
    copies = len(SHARES) if len(corpus.word_T) <= MOST_TOKENS else 1
    return tuple(trial for copy in range(copies) for trial in _trials(corpus, copy, random))


def _trials(corpus: Corpus, copy: int, random: np.random.Generator) -> Iterator[Trial]:
    plants = list(_plants(corpus, copy, random))
    planted = _planted(corpus, plants, random)
    terms, _ = candidates(planted, holding=range(len(corpus.words), len(planted.words)))
    called = [one.term for one in judged(planted, terms) if one.doubt is None]
    for plant in plants:
        found = any(
            term.label == plant.label and np.isin(term.rows(planted), plant.rows).mean() > FIXED for term in called
        )
        yield Trial(plant.kind, plant.place, plant.share, len(plant.rows), found)


def _plants(corpus: Corpus, copy: int, random: np.random.Generator) -> Iterator[_Plant]:
    """Yield what is put into a copy: at most one thing into each text of a label, each at another place."""
    word = len(corpus.words)
    for label in np.argsort(-corpus.priors, kind="stable")[:LABELS].tolist():
        free = random.permutation(np.flatnonzero(corpus.of_label(label)))
        label_texts = len(free)
        for i, (kind, place) in enumerate(zip(KINDS, random.permutation(PLACES).tolist(), strict=True)):
            share = SHARES[(i + copy) % len(SHARES)]
            size = round(share * label_texts)
            rows, free = free[:size], free[size:]
            # Words that occur in no text, with the next free numbers; except for the number after a new sign.
            behind = {"word": [], "pair": [word + 1], "number": [corpus.numbers.get(NUMBER, word + 1)]}[kind]
            yield _Plant(kind, place, share, label, rows, (word, *behind))
            word += 2


def _planted(corpus: Corpus, plants: Sequence[_Plant], random: np.random.Generator) -> Corpus:
    """Return a copy of a corpus that contains the plants, as word numbers only."""
    first_N = np.searchsorted(corpus.text_T, np.arange(len(corpus.texts))) + 1
    at, words, rows = [], [], []
    for plant in plants:
        length_R = corpus.lengths[plant.rows]
        offset_R = {"start": 0 * length_R, "end": length_R}.get(plant.place, random.integers(length_R + 1))
        at.append(np.repeat(first_N[plant.rows] + offset_R, len(plant.words)))
        rows.append(np.repeat(plant.rows, len(plant.words)))
        words.append(np.tile(plant.words, len(plant.rows)))
    place, word_P = np.concatenate(at), np.concatenate(words)
    made_up = max(0, word_P.max(initial=1) + 1 - len(corpus.words))
    return replace(
        corpus,
        words=[*corpus.words, *(f"\u27e8made up {i}\u27e9" for i in range(made_up))],
        word_T=np.insert(corpus.word_T, place, word_P),
        text_T=np.insert(corpus.text_T, place, np.concatenate(rows)),
    )
