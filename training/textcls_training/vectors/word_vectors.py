"""A vector for each of some words, as training reads them from a file. Shapes as in `textcls_training.vectors`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class WordVectors:
    """Vectors of words.

    Attributes:
        words: tokens as `textcls.model.tokenizer` makes them, in lower case, all different, the most frequent first.
        row_VD: a vector for each, finite and not zero; its length is the weight of the word, and the greatest is 1.
        about: where they come from, as text: `source`, `licence`, `how`, and what else is known.
        sha256: the SHA-256 of the file they were read from.
    """

    words: Sequence[str]
    row_VD: NDArray[np.float32]
    about: Mapping[str, str]
    sha256: str
    _number: dict[str, int] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_number", {word: number for number, word in enumerate(self.words)})

    @property
    def dim(self) -> int:
        """Return the width D of a vector."""
        return int(self.row_VD.shape[1])

    def numbers(self, words: Sequence[str]) -> NDArray[np.int32]:
        """Return the number of each of `words`; -1 for one that has no vector."""
        return np.fromiter((self._number.get(word, -1) for word in words), np.int32, len(words))
