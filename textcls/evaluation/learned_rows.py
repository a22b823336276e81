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

T = TypeVar("T")


class LearnedRows:
    """Counts, as rows go by, how many of them a model has learned from."""

    def __init__(self, info: ModelInfo) -> None:
        found = LearnedTexts.of_model(info) or LearnedTexts((), 0.0)
        self._hashes, self._recurring = frozenset(found.hashes), found.recurring
        self._most = found.most
        self._looked_at = self._seen = 0

    def over(self, rows: Iterable[tuple[str, T]]) -> Iterator[tuple[str, T]]:
        """Yield rows, each a text as the model reads it and what it should get."""
        for row in rows:
            self.add(row[0])
            yield row

    def add(self, text: str) -> None:
        """Take a text in, as the model reads it."""
        if (number := hash_of(text)) <= self._most:
            self._looked_at += 1
            self._seen += number in self._hashes

    @property
    def share(self) -> float:
        """About which share of the rows was learned from; 0 where that is no more than is to be expected of new rows of
        the same kind, whose texts may recur.
        """
        if self._seen < _LEAST:
            return 0.0
        found = intervals.share(self._seen, self._looked_at)
        return found.value if found.low > self._recurring + _TOLD else 0.0
