"""Count answers so that they can be compared with held-out rows: numbers only, which add up.

`Bins` determines the numbers that an answer adds to, one answer at a time, as the service counts; `Tally.of` counts
many at once. `differences` is the purpose of both.

Shapes: N answers.
"""

import json
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from functools import lru_cache
from hashlib import sha256
from itertools import pairwise
from typing import Any, Final, NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from textcls.errors import InputError, TextclsError
from textcls.evaluation.drift.distance import Distance, distance
from textcls.evaluation.drift.summary import DIGITS, HeldOutSummary
from textcls.evaluation.drift.unknown import UnknownSums, UnknownTokens
from textcls.model.artifact import ModelInfo

SCORES, LENGTHS, LABELS = "scores", "lengths", "labels"
# The name of the bin of label sets that are not counted separately.
OTHERS: Final = "others"
_ROUNDING: Final = 10**DIGITS
# A double represents whole numbers of this many bytes exactly.
_FINGERPRINT_BYTES: Final = 6
# Steps, per factor of two, of the numbers of texts for which chance is drawn: they are 3 to 6 % apart.
_STEPS: Final = 16
# Enough for a value that is only shown beside a distance.
_DRAWS: Final = 400


class Numbers(Protocol):
    """A mutable sequence of counters."""

    def __getitem__(self, at: int, /) -> float: ...
    def __setitem__(self, at: int, number: float, /) -> None: ...


class Tally(NamedTuple):
    """Counts of answers in the bins of a summary.

    Attributes:
        scores: in the bins of scores.
        lengths: in those of lengths.
        labels: answers with each label, or each label set; None if the summary has no counts to compare them with.
        unknown: sums over the tokens of the texts.
    """

    scores: tuple[int, ...]
    lengths: tuple[int, ...]
    labels: tuple[int, ...] | None
    unknown: UnknownSums

    @property
    def texts(self) -> int:
        """The number of answers counted."""
        return sum(self.scores)

    @classmethod
    def of(
        cls,
        held_out: HeldOutSummary,
        answer_N: Sequence[int],
        score_N: NDArray[np.float64],
        tokens_N: Sequence[int],
        unknown_N: Sequence[int],
    ) -> Self:
        """Count answers, given the number of the label or label set, the score, tokens and unknown tokens of each."""
        labels, before = None, held_out.answers
        if before is not None:
            labels = tuple(np.bincount(np.array(answer_N, np.int64), minlength=len(before)).tolist())
        return cls(
            held_out.scores.count(score_N),
            held_out.lengths.count(np.array(tokens_N, np.int64)),
            labels,
            UnknownSums.of(unknown_N, tokens_N),
        )


class Differences(NamedTuple):
    """The differences of a tally from held-out rows.

    Attributes:
        distances: the distances of labels (if there are counts of them), scores and lengths, by these names.
        unknown: tokens that the model does not know; None if it knows every token.
    """

    distances: dict[str, Distance]
    unknown: UnknownTokens | None


def differences(held_out: HeldOutSummary, now: Tally) -> Differences:
    """Compare answers with those to held-out rows."""
    pairs = {name: (before, counts) for name, before, counts in compared(held_out, now)}
    return Differences({name: distance(*pair) for name, pair in pairs.items()}, unknown_tokens(held_out, now))


def compared(held_out: HeldOutSummary, now: Tally) -> list[tuple[str, tuple[int, ...], tuple[int, ...]]]:
    """Return what is compared: its name, the counts then, and the counts now."""
    found = [(SCORES, held_out.scores.counts, now.scores), (LENGTHS, held_out.lengths.counts, now.lengths)]
    if held_out.answers is not None and now.labels is not None:
        found.insert(0, (LABELS, held_out.answers, now.labels))
    return found


def unknown_tokens(held_out: HeldOutSummary, now: Tally) -> UnknownTokens | None:
    """Compare the share of unknown tokens with the expected one."""
    return None if held_out.unknown is None else UnknownTokens.of(held_out.unknown, now.unknown)


def chance(before: tuple[int, ...], texts: int) -> float:
    """Return the value that the distance of this many texts stays below in 95 of 100 cases if nothing has changed.

    The number of texts is rounded down, so that similar numbers share a value: drawing takes time.
    """
    step = max(1, 1 << max(0, texts.bit_length() - 1)) / _STEPS
    return _chance(before, max(1, int(texts // step * step)))


@lru_cache(maxsize=1024)
def _chance(before: tuple[int, ...], texts: int) -> float:
    # This many texts with the same shares: rounded sums of shares differ by whole texts from bin to bin.
    up_to = np.rint(np.cumsum(before) * (texts / max(1, sum(before)))).astype(np.int64).tolist()
    return distance(before, [b - a for a, b in pairwise([0, *up_to])], draws=_DRAWS).by_chance


def bins_of(info: ModelInfo) -> "Bins | None":
    """Return the bins that answers of a model are counted in; None if the file has no summary to compare them with."""
    try:
        return Bins(HeldOutSummary.of_model(info), info.labels)
    except TextclsError:
        return None


class Bins:
    """The layout of the numbers that an answer adds to.

    Attributes:
        held_out: the summary of held-out rows.
        labels: the labels of the model; empty if the summary has no counts, with too many labels or too few label sets.
        size: the number of counters: texts, scores, lengths, labels, sums of tokens.
        fingerprint: identifies these bins; a whole number above 0 that a double represents exactly.
    """

    def __init__(self, held_out: HeldOutSummary, labels: Sequence[str]) -> None:
        self.held_out, self.labels = held_out, () if held_out.answers is None else tuple(labels)
        self._scores, self._lengths = list(held_out.scores.edges), list(held_out.lengths.edges)
        self._lengths_at = 1 + len(held_out.scores.counts)
        labels_at = self._lengths_at + len(held_out.lengths.counts)
        self._answers = _names_of_answers(held_out, self.labels)
        self._answer_at = {labels: labels_at + i for i, labels in enumerate(self._answers)}
        self._sums_at = labels_at + len(self._answers)
        # The counter of label sets that have no bin of their own.
        self._others_at = self._sums_at if self._answers and held_out.sets is not None else None
        self._sums_at += self._others_at is not None
        self.size = self._sums_at + len(UnknownSums._fields)
        data = json.dumps(self.to_json()).encode()
        self.fingerprint = 1 + int.from_bytes(sha256(data).digest()[:_FINGERPRINT_BYTES])

    def to_json(self) -> dict[str, Any]:
        """Return all of it as plain data."""
        return {"held_out": self.held_out.to_json(), "labels": list(self.labels)}

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> Self:
        """Read what `to_json` gives."""
        return cls(HeldOutSummary.from_json(found["held_out"]), found["labels"])

    def add(self, row: Numbers, at: int, labels: Sequence[str], score: float, tokens: int, unknown: int) -> None:
        """Count an answer in the `size` numbers of `row` that begin at `at`, if its score is a probability.

        Args:
            row: the counters.
            at: the index at which those of these bins begin.
            labels: the answer: one label, or the assigned labels if a text may have several.
            score: the probability of the most probable label.
            tokens: the number of tokens of the text.
            unknown: the number of those that the model does not know.
        """
        if not 0 <= score <= 1:  # NaN has no bin
            return
        row[at] += 1.0
        # Rounded like those of held-out rows.
        row[at + 1 + bisect_right(self._scores, round(score * _ROUNDING) / _ROUNDING)] += 1.0
        row[at + self._lengths_at + bisect_right(self._lengths, tokens)] += 1.0
        if self._answers:
            place = self._answer_at.get(frozenset(labels), self._others_at)
            assert place is not None  # of one label a text, each has its bin
            row[at + place] += 1.0
        at += self._sums_at
        row[at + 1] += tokens
        row[at + 4] += tokens * tokens
        if unknown:
            row[at] += unknown
            row[at + 2] += unknown * unknown
            row[at + 3] += unknown * tokens

    def tally(self, row: Sequence[float]) -> Tally:
        """Return the counts in `row` [size]."""
        labels_at = self._lengths_at + len(self.held_out.lengths.counts)
        labels = tuple(map(int, row[labels_at : self._sums_at])) if self._answers else None
        return Tally(
            tuple(map(int, row[1 : self._lengths_at])),
            tuple(map(int, row[self._lengths_at : labels_at])),
            labels,
            UnknownSums(*row[self._sums_at : self.size]),
        )

    def names(self) -> dict[str, tuple[str, ...]]:
        """Return the names of the bins of each kind: the value that they stay below, or the label; label sets are JSON
        lists, and the last bin is that of the others.
        """
        found = {
            name: (*(f"{edge:.{DIGITS}g}" for edge in edges), "+Inf")
            for name, edges in ((SCORES, self._scores), (LENGTHS, self._lengths))
        }
        if not self._answers:
            return found
        if self.held_out.sets is None:
            return {LABELS: self.labels, **found}
        sets = (json.dumps(sorted(labels), ensure_ascii=False) for labels in self._answers)
        return {LABELS: (*sets, OTHERS), **found}


def _names_of_answers(held_out: HeldOutSummary, labels: Sequence[str]) -> list[frozenset[str]]:
    """Return the label sets that texts are answered with, in the order of the counts, except those without their own.

    Raises:
        InputError: a label set contains a label that does not exist.
    """
    if held_out.sets is None:
        return [frozenset((label,)) for label in labels]
    if any(number >= len(labels) for numbers in held_out.sets.sets for number in numbers) and labels:
        raise InputError("The summary of held-out rows in the model file is damaged (it is of other labels).")
    return [frozenset(labels[number] for number in numbers) for numbers in held_out.sets.sets] if labels else []
