"""Tokens of many texts as numbers of distinct tokens ("types"), in flat arrays."""

from array import array
from collections import defaultdict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from textcls import tokenizer
from textcls_training.data.arrays import Bools, Int32, Int64, ranges, starts
from textcls_training.data.earlier_counts import EarlierCounts


@dataclass(frozen=True, slots=True)
class Corpus:
    """Tokens of many texts: `types[token[start[i]:start[i + 1]]]` are those of text i; `full` ones reach the limit.

    `earlier` is what is known of texts that are not here; their types come first. `of_types` is what somebody has found
    out of the types, by whatever they call it: selections share it.
    """

    types: list[str]
    token: Int32
    start: Int64
    full: Bools
    earlier: EarlierCounts | None = None
    of_types: dict[Hashable, Any] = field(default_factory=dict, compare=False, repr=False)

    def __len__(self) -> int:
        return len(self.start) - 1

    def lengths(self) -> Int64:
        """Number of tokens of each text."""
        return np.diff(self.start)

    @classmethod
    def of(cls, texts: Sequence[str], max_tokens: int, types: Sequence[str] = ()) -> "Corpus":
        """Tokenise `texts`; of each, the first `max_tokens` tokens are read. Tokens are numbered from `types` on."""
        number: defaultdict[str, int] = defaultdict(None, zip(types, range(len(types)), strict=True))
        number.default_factory = number.__len__  # A new token has the next number.
        found, flat = [], array("i")
        for text in texts:
            tokens = tokenizer.tokenize(text)
            found.append(len(tokens))
            flat.extend(map(number.__getitem__, tokens[:max_tokens]))
        lengths = np.array(found, np.int64)
        token = np.array(flat, np.int32)
        return cls(list(number), token, starts(np.minimum(lengths, max_tokens)), lengths >= max_tokens)

    def places(self, which: Int64) -> Int64:
        """Return where the tokens of the texts `which` stand in `token`."""
        return ranges(self.start[which], self.lengths()[which])

    def select(self, which: Int64) -> "Corpus":
        """Return the texts `which`, with the same numbering of types."""
        return Corpus(
            self.types,
            self.token[self.places(which)],
            starts(self.lengths()[which]),
            self.full[which],
            self.earlier,
            self.of_types,
        )

    def type_count(self) -> Int64:
        """Return how often each type occurs, in earlier texts, too."""
        count = np.bincount(self.token, minlength=len(self.types))
        if self.earlier is not None:
            count[: len(self.earlier.count)] += self.earlier.count
        return count
