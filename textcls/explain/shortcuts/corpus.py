"""Texts as word numbers, in bounded memory.

Shapes: T tokens including the two edges of each text, N texts, V words, L labels of the texts, text by text.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from textcls.model import tokenizer

Int64 = NDArray[np.int64]
# Texts of up to this many characters in all are kept; of more, a sample.
CHARACTERS: Final = 25_000_000
# The edges of a text, as words; and any run of digits, if these are read as one.
START, END = 0, 1
NUMBER: Final = "\u27e8number\u27e9"
# The digits of a key, such as INC004211; 1st and covid19 are words.
KEY_DIGITS: Final = 3
_DIGITS: Final = re.compile(r"\d+")


def numbers_alike(token: str) -> str:
    """Return a token as itself, a number as `NUMBER`; the key INC004211 as inc followed by a number."""
    if token.isdigit():
        return NUMBER
    return _DIGITS.sub(NUMBER, token) if sum(sign.isdigit() for sign in token) >= KEY_DIGITS else token


class Sample:
    """A sample of texts with their labels, each kept with equal probability; all of them while they are few.

    Args:
        characters: the most characters kept.
    """

    def __init__(self, characters: int = CHARACTERS) -> None:
        self.most, self.seen, self.held = characters, 0, 0
        self.share = 1.0
        self.rows: list[tuple[str, tuple[int, ...]]] = []
        self._random = np.random.default_rng(0)

    def add(self, text: str, labels: tuple[int, ...]) -> None:
        """Add a text with the numbers of its labels."""
        self.seen += 1
        if self.share < 1 and self._random.random() >= self.share:
            return
        self.rows.append((text, labels))
        self.held += len(text)
        while self.held > self.most and len(self.rows) > 1:
            kept = self._random.random(len(self.rows)) < 0.5
            self.rows = [row for row, stays in zip(self.rows, kept.tolist(), strict=True) if stays]
            self.held = sum(len(text) for text, _ in self.rows)
            self.share /= 2


def distinct(numbers: Int64) -> Int64:
    """Return the distinct numbers, sorted: for millions, in a hundredth of the time of `np.unique` with a hash."""
    found = np.sort(numbers)
    once: Int64 = found[np.diff(found, prepend=found[:1] - 1) != 0]
    return once


@dataclass(frozen=True, eq=False)
class Corpus:
    """Labelled texts as numbers.

    Attributes:
        texts: the texts as given.
        label_L: numbers of their labels: one per text, or several, or none.
        owner_L: the number of the text that has each of these.
        labels: how many labels there are.
        words: in lower case, by number; the first two stand for the edges of a text.
        word_T: the word of each token of all texts, end to end, with each text between `START` and `END`.
        text_T: the number of its text.
        reading: maps a token to the word that it counts as.
    """

    texts: Sequence[str]
    label_L: Int64
    owner_L: Int64
    labels: int
    words: Sequence[str]
    word_T: Int64
    text_T: Int64
    reading: Callable[[str], str] = str

    @classmethod
    def of(cls, rows: Iterable[tuple[str, Sequence[int]]], labels: int, max_tokens: int) -> "Corpus":
        """Return the corpus of texts with the numbers of their labels; at most `max_tokens` tokens of each are read."""
        texts: list[str] = []
        label_L: list[int] = []
        count_N = []
        number: dict[str, int] = {"\u27e8start\u27e9": START, "\u27e8end\u27e9": END}
        word_T, length_N = [], []
        for text, carried in rows:
            tokens = tokenizer.tokenize(text)[:max_tokens]
            texts.append(text)
            label_L += carried
            count_N.append(len(carried))
            word_T += [START, *(number.setdefault(token, len(number)) for token in tokens), END]
            length_N.append(len(tokens) + 2)
        text_T = np.repeat(np.arange(len(texts)), length_N)
        return cls(
            texts,
            np.array(label_L, np.int64),
            np.repeat(np.arange(len(texts)), count_N).astype(np.int64),
            labels,
            list(number),
            np.array(word_T, np.int64),
            text_T.astype(np.int64),
        )

    def read_again(self, reading: Callable[[str], str]) -> "Corpus":
        """Return the corpus with tokens counted as other words."""
        number: dict[str, int] = {}
        number_V = np.array([number.setdefault(reading(word), len(number)) for word in self.words])
        return replace(self, words=list(number), word_T=number_V[self.word_T], reading=reading)

    @cached_property
    def priors(self) -> NDArray[np.float64]:
        """The share of texts of each label."""
        return np.bincount(self.label_L, minlength=self.labels) / max(1, len(self.texts))

    @cached_property
    def starts(self) -> Int64:
        """The index in `label_L` at which the labels of each text begin, and the end of all."""
        return np.searchsorted(self.owner_L, np.arange(len(self.texts) + 1))

    def of_label(self, label: int) -> NDArray[np.bool_]:
        """Return for each text whether it has a label."""
        found: NDArray[np.bool_] = np.zeros(len(self.texts), np.bool_)
        found[self.owner_L[self.label_L == label]] = True
        return found

    def labels_of(self, rows: Int64) -> tuple[Int64, Int64]:
        """Return each label of each of these texts: the index of the text in `rows`, and the number of the label."""
        first_R = self.starts[rows]
        count_R = self.starts[rows + 1] - first_R
        place = np.repeat(np.arange(len(rows)), count_R)
        within = np.arange(len(place)) - np.repeat(np.cumsum(count_R) - count_R, count_R)
        return place, self.label_L[first_R[place] + within]

    @cached_property
    def numbers(self) -> dict[str, int]:
        """The number of each word."""
        return {word: number for number, word in enumerate(self.words)}

    @cached_property
    def counts(self) -> Int64:
        """How often each word occurs in the texts."""
        return np.bincount(self.word_T, minlength=len(self.words))

    @cached_property
    def lengths(self) -> Int64:
        """The number of tokens of each text."""
        return np.bincount(self.text_T, minlength=len(self.texts)) - 2
