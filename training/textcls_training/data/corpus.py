"""Tokens of many texts as numbers of distinct tokens ("types"), in flat arrays."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from textcls import tokenizer
from textcls_training.data.arrays import Bools, Int32, Int64, ranges, starts


@dataclass(frozen=True, slots=True)
class Corpus:
    """Tokens of many texts: `types[token[start[i]:start[i + 1]]]` are those of text i; `full` ones reach the limit."""

    types: list[str]
    token: Int32
    start: Int64
    full: Bools

    def __len__(self) -> int:
        return len(self.start) - 1

    def lengths(self) -> Int64:
        """Number of tokens of each text."""
        return np.diff(self.start)

    @classmethod
    def of(cls, texts: Sequence[str], max_tokens: int) -> "Corpus":
        """Tokenise `texts`; of each, the first `max_tokens` tokens are read."""
        number: dict[str, int] = {}
        found, flat = [], []
        for text in texts:
            tokens = tokenizer.tokenize(text)
            found.append(len(tokens))
            tokens = tokens[:max_tokens]
            flat.append(np.fromiter((number.setdefault(t, len(number)) for t in tokens), np.int32, len(tokens)))
        lengths = np.array(found, np.int64)
        token = np.concatenate([np.zeros(0, np.int32), *flat])
        return cls(list(number), token, starts(np.minimum(lengths, max_tokens)), lengths >= max_tokens)

    def places(self, which: Int64) -> Int64:
        """Return where the tokens of the texts `which` stand in `token`."""
        return ranges(self.start[which], self.lengths()[which])

    def select(self, which: Int64) -> "Corpus":
        """Return the texts `which`, with the same numbering of types."""
        return Corpus(self.types, self.token[self.places(which)], starts(self.lengths()[which]), self.full[which])
