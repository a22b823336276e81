"""Sums of evidence by word or pair, in bounded memory."""

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from textcls.explain.global_explanation.summary import TermAttribution
from textcls.model.excerpts import AROUND, Excerpt, excerpt

Float64 = NDArray[np.float64]

KEYS: Final = 200_000
CELLS: Final = 4_000_000
# The number of examples kept per key, those with the largest contributions: they usually include a typical one.
EXAMPLES: Final = 3
# The strength of a missing example, and its place.
_NONE: Final = -1.0
_NOWHERE: Final = ("", 0, 0)
_Place = tuple[str, int, int]


class Sums:
    """Sums of evidence by key; bounded, by forgetting the rarest."""

    def __init__(self, labels: int, keys: int, cells: int = CELLS) -> None:
        self.most = max(2, min(keys, cells // labels))
        self.number: dict[str, int] = {}
        self.evidence = np.zeros((64, labels))
        self.count = np.zeros(64, np.int64)
        # For each kept example: its largest contribution to any label, that to each, and its place, as text and span.
        # Objects in place of these arrays and strings would keep the garbage collector busy.
        self._strength = np.full((64, EXAMPLES), _NONE)
        self._added = np.zeros((64, EXAMPLES, labels), np.float32)
        self._places: list[list[_Place]] = [[] for _ in range(EXAMPLES)]
        self.dropped = 0

    def add(self, keys: Sequence[str], added: Float64, text: str, spans: Sequence[tuple[int, int]]) -> None:
        """Add the evidence [keys, labels] of one text's keys, which are at `spans`."""
        if not keys:
            return
        number, known = self.number, len(self.number)
        numbers = np.array([number.setdefault(key, len(number)) for key in keys])
        self._grow(len(number))
        np.add.at(self.evidence, numbers, added)
        np.add.at(self.count, numbers, 1)
        strength = np.abs(added).max(1)
        # Most keys of a text are new.
        first = np.flatnonzero(np.diff(np.maximum.accumulate(numbers), prepend=known - 1) * (numbers >= known))
        self._strength[known : len(number), 0] = strength[first]
        self._added[known : len(number), 0] = added[first]
        self._places[0] += [_place(text, *spans[i]) for i in first.tolist()]
        for places in self._places[1:]:
            places += [_NOWHERE] * len(first)
        again = strength > self._strength[numbers].min(1)
        again[first] = False
        for i in np.flatnonzero(again).tolist():
            self._keep(int(numbers[i]), float(strength[i]), added[i], text, spans[i])
        if len(number) > self.most:
            self._forget()

    def ranked(self, label: int, sign: int, top: int, least: int) -> tuple[TermAttribution, ...]:
        """The `top` keys that occur `least` times and whose evidence has this sign, strongest first."""
        size = len(self.number)
        evidence = sign * self.evidence[:size, label]
        able = np.flatnonzero((self.count[:size] >= least) & (evidence > 0))
        # Ties stay in order of appearance; only the few that matter are sorted.
        if len(able) > top:
            bound = -np.partition(-evidence[able], top - 1)[top - 1] if top else np.inf
            able = able[evidence[able] >= bound]
        order = able[np.argsort(-evidence[able], kind="stable")][:top].tolist()
        texts = list(self.number)  # Keys are numbered in the order in which they were added.
        return tuple(
            TermAttribution(
                texts[i],
                float(self.evidence[i, label]),
                float(self.evidence[i, label] / self.count[i]),
                int(self.count[i]),
                self.example(i, label, sign),
            )
            for i in order
        )

    def example(self, number: int, label: int, sign: int) -> Excerpt:
        """Return the kept example with the largest contribution for the label (`sign` 1) or against it (-1)."""
        kept = sorted(np.flatnonzero(self._strength[number] > _NONE).tolist(), key=lambda i: -self._strength[number, i])
        return excerpt(*self._places[max(kept, key=lambda i: sign * float(self._added[number, i, label]))][number])

    def _keep(self, number: int, strength: float, added: Float64, text: str, span: tuple[int, int]) -> None:
        kept = self._strength[number]
        weakest = int(kept.argmin())
        if strength > kept[weakest]:
            kept[weakest] = strength
            self._added[number, weakest] = added
            self._places[weakest][number] = _place(text, *span)

    def _grow(self, size: int) -> None:
        if size > len(self.count):
            more = max(size, 2 * len(self.count)) - len(self.count)
            self.evidence, self.count, self._added = (
                np.concatenate([each, np.zeros((more, *each.shape[1:]), each.dtype)])
                for each in (self.evidence, self.count, self._added)
            )
            self._strength = np.concatenate([self._strength, np.full((more, EXAMPLES), _NONE)])

    def _forget(self) -> None:
        """Keep the more frequent half; among equally frequent keys, the earlier."""
        size = len(self.number)
        kept = np.sort(np.argsort(-self.count[:size], kind="stable")[: self.most // 2])
        keys, numbers = list(self.number), kept.tolist()
        self.number = {keys[i]: new for new, i in enumerate(numbers)}
        self._places = [[places[i] for i in numbers] for places in self._places]
        self.evidence, self.count = self.evidence[kept], self.count[kept]
        self._strength, self._added = self._strength[kept], self._added[kept]
        self.dropped += size - len(kept)


def _place(text: str, start: int, end: int) -> _Place:
    """Return as much of the text around a span as an excerpt may need, and the place of the span in it."""
    first = max(0, start - AROUND - 1)
    return text[first : end + AROUND + 1], start - first, end - first
