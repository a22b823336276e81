"""Whether rows are some that a model has learned from, which it answers better than new ones."""

from collections.abc import Iterable, Iterator
from typing import Final, TypeVar

from textcls.evaluation import intervals
from textcls.model.artifact import ModelInfo
from textcls.model.learned_texts import LearnedTexts, hash_of

# Rows are told of if more of them than that were learned from for certain, beyond those whose texts recur anyway; and
# of these so many were recognised at least.
_TOLD: Final = 0.1
_LEAST: Final = 2
# Hashes that are held at most.
_MOST_LOOKED_AT: Final = 100_000

T = TypeVar("T")


class LearnedRows:
    """Counts, as rows go by, how many of their distinct texts a model has learned from."""

    def __init__(self, info: ModelInfo) -> None:
        found = LearnedTexts.of_model(info) or LearnedTexts((), 0.0)
        self._info, self._learned = info, found
        self._hashes = frozenset(found.hashes)
        self._looked_at: set[int] = set()
        self._rows = 0

    def over(self, rows: Iterable[tuple[str, T]]) -> Iterator[tuple[str, T]]:
        """Yield rows, each a row as the model reads it and what it should get."""
        for row in rows:
            self.add(row[0])
            yield row

    def add(self, row: str) -> None:
        """Take a row in, as the model reads it."""
        self._rows += 1
        number = hash_of(self._info.text_of(row))
        if number <= self._learned.most and len(self._looked_at) < _MOST_LOOKED_AT:
            self._looked_at.add(number)

    @property
    def share(self) -> float:
        """About which share of the texts was learned from; 0 where that is no more than is to be expected of new rows
        of the same kind, whose texts may recur. All, where rows are as many as in the training, and each is known.
        """
        seen = len(self._looked_at & self._hashes)
        if seen == len(self._looked_at) > 0 and self._rows == self._info.training.get("rows"):
            return 1.0
        if seen < _LEAST:
            return 0.0
        found = intervals.share(seen, len(self._looked_at))
        return found.value if found.low > self._learned.recurring + _TOLD else 0.0
