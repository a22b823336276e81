"""Sums of evidence by word or pair, in bounded memory."""

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from textcls.explain.global_explanation.summary import TermAttribution
from textcls.model.excerpts import Excerpt, excerpt

Float64 = NDArray[np.float64]

KEYS: Final = 200_000
CELLS: Final = 4_000_000
# Examples kept of each key, those in which it contributed most: among them one of what it contributes as a rule.
EXAMPLES: Final = 3


class Sums:
    """Sums of evidence by key; bounded, by forgetting the rarest."""

    def __init__(self, labels: int, keys: int, cells: int = CELLS) -> None:
        self.most = max(2, min(keys, cells // labels))
        self.number: dict[str, int] = {}
        self.evidence = np.zeros((64, labels))
        self.count = np.zeros(64, np.int64)
        # How much an occurrence has to contribute to be kept as an example.
        self.bar = np.full(64, -1.0)
        self.examples: list[list[tuple[float, NDArray[np.float32], Excerpt]]] = []
        self.dropped = 0

    def add(self, keys: Sequence[str], added: Float64, text: str, spans: Sequence[tuple[int, int]]) -> None:
        """Add the evidence [keys, labels] of one text's keys, which stand at `spans`."""
        if not keys:
            return
        number = self.number
        numbers = np.array([number.setdefault(key, len(number)) for key in keys])
        self._grow(len(number))
        np.add.at(self.evidence, numbers, added)
        np.add.at(self.count, numbers, 1)
        strength = np.abs(added).max(1)
        for i in np.flatnonzero(strength > self.bar[numbers]).tolist():
            self._keep(int(numbers[i]), float(strength[i]), added[i], text, spans[i])
        if len(number) > self.most:
            self._forget()

    def ranked(self, label: int, sign: int, top: int, least: int) -> tuple[TermAttribution, ...]:
        """The `top` keys that occur `least` times and whose evidence has this sign, strongest first."""
        size = len(self.number)
        evidence = sign * self.evidence[:size, label]
        able = np.flatnonzero((self.count[:size] >= least) & (evidence > 0))
        # Ties in the order of appearance; the sort of the few that matter only.
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
        """Of the examples kept, the one of the largest contribution for the label (`sign` 1) or against it (-1)."""
        return max(self.examples[number], key=lambda kept: sign * float(kept[1][label]))[2]

    def _keep(self, number: int, strength: float, added: Float64, text: str, span: tuple[int, int]) -> None:
        kept = self.examples[number]
        if len(kept) == EXAMPLES and strength <= kept[-1][0]:
            return
        kept.append((strength, added.astype(np.float32), excerpt(text, *span)))
        kept.sort(key=lambda example: -example[0])
        del kept[EXAMPLES:]
        if len(kept) == EXAMPLES:
            self.bar[number] = kept[-1][0]

    def _grow(self, size: int) -> None:
        self.examples += [[] for _ in range(size - len(self.examples))]
        if size > len(self.count):
            more = max(size, 2 * len(self.count)) - len(self.count)
            self.evidence = np.concatenate([self.evidence, np.zeros((more, self.evidence.shape[1]))])
            self.count = np.concatenate([self.count, np.zeros(more, np.int64)])
            self.bar = np.concatenate([self.bar, np.full(more, -1.0)])

    def _forget(self) -> None:
        """Keep the more frequent half; of those equally frequent, the earlier."""
        size = len(self.number)
        kept = np.sort(np.argsort(-self.count[:size], kind="stable")[: self.most // 2])
        keys = list(self.number)
        self.number = {keys[i]: new for new, i in enumerate(kept.tolist())}
        self.examples = [self.examples[i] for i in kept.tolist()]
        self.evidence, self.count, self.bar = self.evidence[kept], self.count[kept], self.bar[kept]
        self.dropped += size - len(kept)
