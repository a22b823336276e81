"""Texts as numbers of words, in bounded memory. Shapes: T tokens with the two edges of each text, N texts, V words."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from textcls.model import tokenizer

Int64 = NDArray[np.int64]
# Texts of so many characters are held; of more, a sample.
CHARACTERS: Final = 25_000_000
# The edges of a text, as words; and any run of digits, where these are read as one.
START, END = 0, 1
NUMBER: Final = "\u27e8number\u27e9"


def same(token: str) -> str:
    """Return a token as itself."""
    return token


def numbers_alike(token: str) -> str:
    """Return a token as itself, any run of digits as `NUMBER`."""
    return NUMBER if token.isdigit() else token


class Sample:
    """A sample of texts with their labels, each kept with the same chance; all of them while they are few.

    Args:
        characters: how many are held at the most.
    """

    def __init__(self, characters: int = CHARACTERS) -> None:
        self.most, self.seen, self.held = characters, 0, 0
        self.share = 1.0
        self.rows: list[tuple[str, int]] = []
        self._random = np.random.default_rng(0)

    def add(self, text: str, label: int) -> None:
        """Add a text with the number of its label."""
        self.seen += 1
        if self.share < 1 and self._random.random() >= self.share:
            return
        self.rows.append((text, label))
        self.held += len(text)
        while self.held > self.most and len(self.rows) > 1:
            kept = self._random.random(len(self.rows)) < 0.5
            self.rows = [row for row, stays in zip(self.rows, kept.tolist(), strict=True) if stays]
            self.held = sum(len(text) for text, _ in self.rows)
            self.share /= 2


@dataclass(frozen=True, eq=False)
class Corpus:
    """Labelled texts as numbers.

    Attributes:
        texts: as they were given.
        label_N: number of the label of each.
        labels: how many labels there are.
        words: in lower case, by number; the first two stand for the edges of a text.
        word_T: of each token of all texts, end to end, each text between `START` and `END`.
        text_T: the number of its text.
        reading: as which word a token counts.
    """

    texts: Sequence[str]
    label_N: Int64
    labels: int
    words: Sequence[str]
    word_T: Int64
    text_T: Int64
    reading: Callable[[str], str] = same

    @classmethod
    def of(
        cls, rows: Iterable[tuple[str, int]], labels: int, max_tokens: int, reading: Callable[[str], str] = same
    ) -> "Corpus":
        """Return the corpus of texts with the numbers of their labels, of which so many tokens are read."""
        texts, label_N = [], []
        number: dict[str, int] = {"\u27e8start\u27e9": START, "\u27e8end\u27e9": END}
        word_T, length_N = [], []
        for text, label in rows:
            tokens = [reading(token) for token in tokenizer.tokenize(text)[:max_tokens]]
            texts.append(text)
            label_N.append(label)
            word_T += [START, *(number.setdefault(token, len(number)) for token in tokens), END]
            length_N.append(len(tokens) + 2)
        text_T = np.repeat(np.arange(len(texts)), length_N)
        return cls(
            texts,
            np.array(label_N, np.int64),
            labels,
            list(number),
            np.array(word_T, np.int64),
            text_T.astype(np.int64),
            reading,
        )

    @cached_property
    def priors(self) -> NDArray[np.float64]:
        """The share of texts of each label."""
        return np.bincount(self.label_N, minlength=self.labels) / max(1, len(self.label_N))

    @cached_property
    def counts(self) -> Int64:
        """How often each word stands in the texts."""
        return np.bincount(self.word_T, minlength=len(self.words))

    @cached_property
    def lengths(self) -> Int64:
        """Tokens of each text."""
        return np.bincount(self.text_T, minlength=len(self.texts)) - 2
