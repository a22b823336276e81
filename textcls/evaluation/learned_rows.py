"""Detect rows that a model has learned from, which it answers better than new ones."""

from collections.abc import Iterable, Iterator, Set
from typing import Final, TypeVar

from textcls.evaluation import intervals
from textcls.model.artifact import ModelInfo
from textcls.model.learned_texts import LearnedTexts

# Rows are reported if more than this share of them was certainly learned from, beyond those whose texts recur anyway,
# and if at least this many were recognised.
_TOLD: Final = 0.1
_LEAST: Final = 2
# Beyond this share, a threshold that is chosen on the rows promises too much.
_MOST_LEARNED: Final = 0.5
# The most hashes kept in memory.
_MOST_LOOKED_AT: Final = 100_000

T = TypeVar("T")


class LearnedRows:
    """Count, in a single pass over rows, how many of their distinct texts a model has learned from."""

    def __init__(self, info: ModelInfo) -> None:
        found = LearnedTexts.of_model(info) or LearnedTexts((), 0.0)
        self._info, self._learned = info, found
        self._looked_at: set[int] = set()
        self._rows = 0

    def over(self, rows: Iterable[tuple[str, T]]) -> Iterator[tuple[str, T]]:
        """Yield rows, each a pair of a row as the model reads it and its expected answer."""
        for row in rows:
            self.add(row[0])
            yield row

    def add(self, row: str) -> None:
        """Count a row, as the model reads it."""
        self._rows += 1
        number = self._learned.hash_of(self._info.text_of(row))
        if number <= self._learned.most and len(self._looked_at) < _MOST_LOOKED_AT:
            self._looked_at.add(number)

    @property
    def share(self) -> float:
        """The approximate share of the texts that was learned from; 0 if it is no more than expected of new rows of the
        same kind, whose texts may recur. 1 if there are as many rows as in the training, and each is known.
        """
        every = self._looked_at <= {*self._learned.hashes} and len(self._looked_at) > 0
        if every and self._rows == self._info.training.get("rows"):
            return 1.0
        return learned_share(self._learned, self._looked_at)


def unsuited_for_thresholds(share: float) -> str | None:
    """Return why no threshold should be chosen on rows of which a model has learned from `share`; None if it may be."""
    if share <= _MOST_LEARNED:
        return None
    return (
        f"The model has learned from {share:.0%} of these rows, so a threshold that is chosen on them promises too "
        "much: choose it on others."
    )


def learned_share(learned: LearnedTexts, hashes: Set[int]) -> float:
    """Return the approximate share of the texts with these hashes that was learned from, as in `LearnedRows.share`."""
    known = {one for one in hashes if one <= learned.most}
    if (seen := len(known & {*learned.hashes})) < _LEAST:
        return 0.0
    found = intervals.share(seen, len(known))
    return found.value if found.low > learned.recurring + _TOLD else 0.0
