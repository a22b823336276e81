"""The words that get vectors: those that occur at least twice in the texts, the most frequent first.

Shapes: V words.
"""

from dataclasses import dataclass
from typing import Final, Self

import numpy as np

from textcls.errors import InputError
from textcls_training.data.arrays import Int32
from textcls_training.data.corpus import Corpus

# A word that occurs once has one context, which it shares with no other.
LEAST_COUNT: Final = 2


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """The most frequent words of a corpus, by number from 1 on; 0 is any other word.

    Attributes:
        words: the words; `words[n - 1]` has the number n.
        number_of_type: the number of each type of the corpus.
    """

    words: list[str]
    number_of_type: Int32

    @classmethod
    def of(cls, corpus: Corpus, most: int) -> Self:
        """Return the `most` frequent words, ties in the order in which the corpus numbers them.

        Raises:
            InputError: fewer than two words occur twice.
        """
        count = np.bincount(corpus.token, minlength=len(corpus.types))
        order = np.argsort(-count, kind="stable")[:most]
        order = order[count[order] >= LEAST_COUNT]
        if len(order) < 2:
            raise InputError("Fewer than two words occur twice in the texts; give more texts to learn from.")
        number = np.zeros(len(count), np.int32)
        number[order] = np.arange(1, len(order) + 1)
        return cls([corpus.types[i] for i in order], number)

    def __len__(self) -> int:
        return len(self.words)
