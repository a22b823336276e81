"""Tokens of many texts as the numbers of distinct tokens ("types"), in flat arrays."""

from array import array
from collections import defaultdict
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Final

import numpy as np

from textcls._util.spill import IN_MEMORY, Spill
from textcls.model import tokenizer
from textcls_training.data.arrays import Bools, Int32, Int64, blocks, ranges, starts
from textcls_training.data.earlier_counts import EarlierCounts
from textcls_training.data.split import hash_of_tokens

# If there are more types than this, the more frequent half is kept.
MOST_TYPES: Final = 2**21
# Replaces rare types: no text has this token, and its word has no feature.
RARE: Final = ""
# How many tokens are numbered at a time.
BLOCK: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class Corpus:
    """Tokens of many texts: `types[token[start[i]:start[i + 1]]]` are those of text i; `full` texts reach the limit.

    `hash` contains the hash of each text's tokens, truncated or not (`textcls_training.data.split`): it is the same for
    copies. With more than `MOST_TYPES` types the rarer ones become `RARE`, which is then type 0. `of_types` caches what
    callers have computed from the types, by a key of their own: selections share it. Arrays with one number per token
    are stored where `spill` says. `earlier` is what is known of texts that are not in this corpus.
    """

    types: list[str]
    token: Int32
    start: Int64
    full: Bools
    hash: Int64
    of_types: dict[Hashable, Any] = field(default_factory=dict, compare=False, repr=False)
    spill: Spill = field(default=IN_MEMORY, compare=False, repr=False)
    earlier: EarlierCounts | None = field(default=None, compare=False, repr=False)

    def __len__(self) -> int:
        return len(self.start) - 1

    def lengths(self) -> Int64:
        """Return the number of tokens of each text."""
        return np.diff(self.start)

    @classmethod
    def of(cls, texts: Sequence[str], max_tokens: int, spill: Spill = IN_MEMORY) -> "Corpus":
        """Tokenise `texts`; of each, the first `max_tokens` tokens are read."""
        numbering = _Numbering()
        found, hashes, flat, block = array("i"), array("q"), spill.growing(np.int32), array("i")
        for text in texts:
            tokens = tokenizer.tokenize(text)
            found.append(len(tokens))
            hashes.append(hash_of_tokens(tokens))
            block.extend(map(numbering.number.__getitem__, tokens[:max_tokens]))
            if len(block) >= BLOCK:
                flat.extend(numbering.count(block))
                block = array("i")
        flat.extend(numbering.count(block))
        lengths = np.array(found, np.int64)
        start = starts(np.minimum(lengths, max_tokens))
        types, token = numbering.types(flat.array())
        return cls(types, token, start, lengths >= max_tokens, np.array(hashes, np.int64), spill=spill)

    @property
    def has_rare(self) -> bool:
        """Return whether there were so many types that rare ones are merged."""
        return self.types[:1] == [RARE]

    def type_counts(self) -> Int64:
        """Return how often each type occurs, including earlier texts."""
        found = np.zeros(len(self.types), np.int64) if self.earlier is None else self.earlier.count.copy()
        for part in self.parts():
            found += np.bincount(part.token, minlength=len(found))
        return found

    def parts(self) -> Iterator["Corpus"]:
        """Yield some texts at a time, in their order."""
        for first, last in blocks(self.start):
            begin, end = self.start[first], self.start[last]
            yield Corpus(
                self.types,
                self.token[begin:end],
                self.start[first : last + 1] - begin,
                self.full[first:last],
                self.hash[first:last],
                self.of_types,
                self.spill,
            )

    def places(self, which: Int64) -> Int64:
        """Return the positions in `token` of the tokens of the texts `which`."""
        return ranges(self.start[which], self.lengths()[which])

    def padded(self, which: Int64) -> tuple[Int64, Bools]:
        """Return the type of each token of the texts `which` [texts, longest], 0 at padding, and what is real."""
        length = self.lengths()[which]
        mask: Bools = np.arange(max(1, length.max(initial=0))) < length[:, None]
        types = np.zeros(mask.shape, np.int64)
        types[mask] = self.token[self.places(which)]
        return types, mask

    def select(self, which: Int64) -> "Corpus":
        """Return the texts `which`, with the same numbering of types."""
        lengths = self.lengths()[which]
        start = starts(lengths)
        token: Int32 = self.spill.empty(int(start[-1]), np.int32)
        for first, last in blocks(start):
            places = ranges(self.start[which[first:last]], lengths[first:last])
            token[start[first] : start[last]] = self.token[places]
        return Corpus(
            self.types, token, start, self.full[which], self.hash[which], self.of_types, self.spill, self.earlier
        )


def sums_of_texts(token: Int32, start: Int64, of_type: Int64) -> Int64:
    """Return, for each text, the sum of `of_type` over its tokens; the other arguments are those of `Corpus`."""
    sum_N = np.empty(len(start) - 1, np.int64)
    for first, last in blocks(start):
        begin, end = start[first], start[last]
        sum_N[first:last] = np.diff(starts(of_type[token[begin:end]])[start[first : last + 1] - begin])
    return sum_N


class _Numbering:
    """Numbers of types in the order in which they first occur, and how often each has occurred.

    From time to time, when there are more than `MOST_TYPES`, the rarer half is forgotten (lossy counting; Manku and
    Motwani 2002): the count of a token that occurs again after that restarts, so the types kept at the end have
    occurred at least about as often as any that are not.
    """

    def __init__(self) -> None:
        self._next = count()
        self.number: defaultdict[str, int] = defaultdict(self._next.__next__)
        self._count = np.zeros(0, np.int64)
        self._forgets = False

    def count(self, block: "array[int]") -> Int32:
        """Count some tokens, given by their temporary numbers, and return their numbers."""
        token = np.array(block, np.int32)
        more = np.bincount(token, minlength=len(self._count)) if len(token) else np.zeros(len(self._count), np.int64)
        more[: len(self._count)] += self._count
        self._count = more
        if len(self.number) > MOST_TYPES:
            self._forget()
        return token

    def _forget(self) -> None:
        self._forgets = True
        number = np.fromiter(self.number.values(), np.int64, len(self.number))
        # With equal counts the later ones stay: they have had less time to occur.
        order = np.argsort(self._count[number], kind="stable")
        kept = np.zeros(len(number), np.bool_)
        kept[order[-(MOST_TYPES // 2) :]] = True
        pairs = [pair for pair, stays in zip(self.number.items(), kept.tolist(), strict=True) if stays]
        self.number = defaultdict(self._next.__next__, pairs)

    def types(self, token: Int32) -> tuple[list[str], Int32]:
        """Return the types, and the tokens as numbers of these types: the array itself, overwritten."""
        if not self._forgets:
            return list(self.number), token
        number = np.fromiter(self.number.values(), np.int64, len(self.number))
        new = np.zeros(len(self._count), np.int32)
        new[number] = np.arange(1, len(number) + 1)
        for first in range(0, len(token), BLOCK):
            token[first : first + BLOCK] = new[token[first : first + BLOCK]]
        return [RARE, *self.number], token
