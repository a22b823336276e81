"""The summary of the answers to held-out rows that a model file keeps: counts, and none of their texts.

Shapes: N rows, B bins, C labels.
"""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from hashlib import sha256
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from textcls.errors import ArtifactError, ConfigError, InputError
from textcls.model.artifact import HELD_OUT, ModelInfo

Floats = NDArray[np.floating]
Int64 = NDArray[np.int64]

BINS: Final = 10
# With more labels than this the file keeps no counts: they would take more space than everything else.
MOST_LABELS: Final = 256
MOST_BINS: Final = 100
# With several labels per text, the most frequent label sets are counted separately: at most this many, each of at
# most that many labels, and of at least that many rows: sets that happened to occur once are rarer in other rows, which
# was reported as a change in nearly each of 40 draws from the same rows; with 10 rows or more, in none.
MOST_SETS: Final = 64
MOST_OF_SET: Final = 8
LEAST_OF_SET: Final = 10
# Scores that differ by less than this are not distinguished: held-out ones come from models trained on fewer rows,
# which are slightly less sure, and if all are sure, 0.9989 and 0.9994 fell into different bins.
SCORE_STEP: Final = 0.01
# A share with 6 digits is exact for a million rows.
DIGITS: Final = 6


@dataclass(frozen=True, slots=True)
class Histogram:
    """How many values lie in each bin.

    Attributes:
        edges: the boundaries between bins, rising; a value that equals one is in the upper bin.
        counts: one more than edges.
    """

    edges: tuple[float, ...]
    counts: tuple[int, ...]

    @classmethod
    def of(cls, value_N: Floats | Int64, step: float | None = None) -> Self:
        """Divide values into at most `BINS` bins of about equal counts, cut at multiples of `step` if it is given."""
        inner = np.quantile(value_N, np.arange(1, BINS) / BINS, method="lower") if len(value_N) else np.zeros(0)
        inner = inner if step is None else np.floor((inner / step).round(DIGITS)) * step
        edges = tuple(np.unique(inner.astype(np.float64).round(DIGITS)).tolist())
        return cls(edges, cls(edges, ()).count(value_N))

    def bins(self, value_N: Floats | Int64) -> Int64:
        """Return the number of the bin of each value [N]."""
        return np.searchsorted(np.array(self.edges), np.asarray(value_N, np.float64).round(DIGITS), side="right")

    def count(self, value_N: Floats | Int64) -> tuple[int, ...]:
        """Return how many other values lie in each of the same bins."""
        return tuple(np.bincount(self.bins(value_N), minlength=len(self.edges) + 1).tolist())

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> Self:
        """Read what `asdict` gives.

        Raises:
            ValueError: it is something else.
        """
        edges, counts = _numbers(found["edges"], MOST_BINS), _counts(found["counts"], MOST_BINS + 1)
        if len(counts) != len(edges) + 1 or list(edges) != sorted(set(edges)):
            raise ValueError("edges and counts of a histogram do not belong together")
        return cls(edges, counts)


@dataclass(frozen=True, slots=True)
class LabelSetCounts:
    """How many rows were answered with each label set, if a text may have several labels.

    Each text is counted once, so that chance acts on texts: the labels of a text are dependent.

    Attributes:
        sets: the most frequent ones, each as the rising numbers of its labels.
        counts: how many rows were assigned each of them, and last, how many were assigned any other.
    """

    sets: tuple[tuple[int, ...], ...]
    counts: tuple[int, ...]

    @classmethod
    def of(cls, assigned_NC: NDArray[np.bool_]) -> Self:
        """Count the label sets that rows were assigned."""
        every = Counter(tuple(np.flatnonzero(row).tolist()) for row in assigned_NC)
        kept = [labels for labels, rows in every.items() if len(labels) <= MOST_OF_SET and rows >= LEAST_OF_SET]
        most = sorted(kept, key=lambda labels: (-every[labels], labels))[:MOST_SETS]
        found = [every[labels] for labels in most]
        return cls(tuple(most), (*found, every.total() - sum(found)))

    def bins(self, assigned: Iterable[tuple[int, ...]]) -> list[int]:
        """Return the index of the count that each row adds to, given the rising numbers of its assigned labels."""
        at = {labels: i for i, labels in enumerate(self.sets)}
        return [at.get(labels, len(self.sets)) for labels in assigned]

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> Self:
        """Read what `asdict` gives.

        Raises:
            ValueError: it is something else.
        """
        if not isinstance(found["sets"], list) or len(found["sets"]) > MOST_SETS:
            raise ValueError("label sets are something else")
        sets = tuple(_counts(labels, MOST_OF_SET) for labels in found["sets"])
        counts = _counts(found["counts"], MOST_SETS + 1)
        if len(counts) != len(sets) + 1 or len(set(sets)) != len(sets):
            raise ValueError("label sets and their counts do not belong together")
        return cls(sets, counts)


@dataclass(frozen=True, slots=True)
class UnknownShare:
    """The share of tokens that the model does not know, to be expected of new texts like those of the training.

    Attributes:
        share: the share.
        error: its standard error.
    """

    share: float
    error: float


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldOutSummary:
    """The summary, in a model file, of the answers to its held-out rows by models that have not seen them.

    Attributes:
        rows: the number of held-out rows, at least 1.
        accuracy: on them; with several labels per text, the share that was assigned exactly its labels, None once the
            thresholds have been changed.
        scores: the scores of their answers; with several labels per text, that of the most probable one.
        right: how many in each bin of `scores` were right, likewise.
        labels: how many were answered with each label, in the order of the model; None with more than `MOST_LABELS`.
        lengths: token counts of the training rows.
        unknown: the share of unknown tokens; None if the model knows every token.
        names_sha256: the digest of the labels' names (`names_digest`); None in files of an older textcls.
        sets: which labels were assigned together, if a text may have several; None if it has one.
    """

    rows: int
    accuracy: float | None
    scores: Histogram
    right: tuple[int, ...]
    labels: tuple[int, ...] | None
    lengths: Histogram
    unknown: UnknownShare | None
    names_sha256: str | None = None
    sets: LabelSetCounts | None = None

    @property
    def answers(self) -> tuple[int, ...] | None:
        """How many rows were answered with each label, or each label set.

        None with too many labels, one per text, and if no label set was assigned often enough to be counted separately.
        """
        if self.sets is None:
            return self.labels
        return self.sets.counts if self.sets.sets else None

    @classmethod
    def of_sets(
        cls,
        probability_NC: Floats,
        assigned_NC: NDArray[np.bool_],
        gold_NC: NDArray[np.bool_],
        length_N: Int64,
        unknown: UnknownShare | None,
        names: Sequence[str],
        *,
        several: bool = True,
    ) -> Self:
        """Summarise the answers to held-out rows, of which there must be at least one.

        Args:
            probability_NC: the calibrated probabilities.
            assigned_NC: the labels that each row was assigned.
            gold_NC: the labels that each row has.
            length_N: token counts of the training rows, which may be more.
            unknown: as in the attributes.
            names: the names of the labels, in their order.
            several: whether rows may have several labels.
        """
        score_N, is_right_N = probability_NC.max(1), (assigned_NC == gold_NC).all(1)
        scores, counts = Histogram.of(score_N, SCORE_STEP), tuple(assigned_NC.sum(0).tolist())
        return cls(
            rows=len(gold_NC),
            accuracy=round(float(is_right_N.mean()), DIGITS),
            scores=scores,
            right=scores.count(score_N[is_right_N]),
            labels=counts if len(counts) <= MOST_LABELS else None,
            lengths=Histogram.of(length_N),
            unknown=unknown,
            names_sha256=names_digest(names),
            sets=LabelSetCounts.of(assigned_NC) if several else None,
        )

    @classmethod
    def of(
        cls,
        probability_NC: Floats,
        label_N: Int64,
        length_N: Int64,
        unknown: UnknownShare | None,
        names: Sequence[str],
    ) -> Self:
        """Summarise the answers to held-out rows with one label each, `label_N`, as `of_sets` does."""
        number_C = np.arange(probability_NC.shape[1])
        answer_NC, right_NC = (each_N[:, None] == number_C for each_N in (probability_NC.argmax(1), label_N))
        return cls.of_sets(probability_NC, answer_NC, right_NC, length_N, unknown, names, several=False)

    def to_json(self) -> dict[str, Any]:
        """Return the summary in the form kept in the file."""
        found = asdict(self)
        if self.sets is None:
            del found["sets"]
        return found

    @classmethod
    def of_model(cls, info: ModelInfo) -> Self:
        """Return the summary that a model file contains.

        Raises:
            ConfigError: the labels of the model have changed since the training.
            InputError: the file contains no summary.
            ArtifactError: the summary is damaged.
        """
        found = info.training.get(HELD_OUT)
        if found is None:
            raise InputError(
                "The model file does not say how its held-out rows were answered: it was made without any, or by an "
                "older textcls; train it again."
            )
        try:
            summary = cls.from_json(found)
        except (KeyError, ValueError, TypeError, OverflowError) as error:
            raise ArtifactError(f"The summary of held-out rows in the model file is damaged ({error}).") from error
        if info.several != (summary.sets is not None):
            raise ArtifactError("The summary of held-out rows in the model file is damaged (it is of another task).")
        if not summary.is_of(info.labels):
            raise ConfigError(
                "The model was taught labels after its training, which its held-out rows do not know; train it on "
                "them to watch it."
            )
        return summary

    def is_of(self, labels: Sequence[str]) -> bool:
        """Return whether held-out rows were answered with these labels in this order (older files: this many)."""
        if self.labels is not None and len(self.labels) != len(labels):
            return False
        return self.names_sha256 is None or self.names_sha256 == names_digest(labels)

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> Self:
        """Read what `to_json` gives.

        Raises:
            KeyError: something is missing.
            ValueError: something is not what it should be.
            TypeError: likewise.
            OverflowError: likewise.
        """
        rows, unknown = _counts([found["rows"]], 1)[0], found["unknown"]
        sets = None if found.get("sets") is None else LabelSetCounts.from_json(found["sets"])
        accuracy = None
        if sets is None or found["accuracy"] is not None:
            (accuracy,) = _numbers([found["accuracy"]], 1)
        scores, right = Histogram.from_json(found["scores"]), _counts(found["right"], MOST_BINS + 1)
        if not rows or sum(scores.counts) != rows or not 0 <= (accuracy or 0.0) <= 1:
            raise ValueError("rows, scores and accuracy do not belong together")
        if len(right) != len(scores.counts) or any(a > b for a, b in zip(right, scores.counts, strict=True)):
            raise ValueError("more answers are right than there are")
        if sets is not None and sum(sets.counts) != rows:
            raise ValueError("rows and label sets do not belong together")
        return cls(
            rows=rows,
            accuracy=accuracy,
            scores=scores,
            right=right,
            labels=None if found["labels"] is None else _counts(found["labels"], MOST_LABELS),
            lengths=Histogram.from_json(found["lengths"]),
            unknown=None if unknown is None else UnknownShare(*_numbers([unknown["share"], unknown["error"]], 2)),
            names_sha256=_text(found.get("names_sha256"), 64),
            sets=sets,
        )


def names_digest(labels: Sequence[str]) -> str:
    """Return a digest that identifies these labels in this order."""
    return sha256(json.dumps(list(labels)).encode()).hexdigest()


def _text(found: Any, most: int) -> str | None:
    if found is not None and (not isinstance(found, str) or len(found) > most):
        raise ValueError("a text is something else")
    return found


def _numbers(found: Sequence[Any], most: int) -> tuple[float, ...]:
    if not isinstance(found, list) or len(found) > most or not all(type(one) in (int, float) for one in found):
        raise ValueError("a list of numbers is something else")
    if not np.isfinite(found).all():
        raise ValueError("a number is not finite")
    return tuple(map(float, found))


def _counts(found: Sequence[Any], most: int) -> tuple[int, ...]:
    if not isinstance(found, list) or len(found) > most:
        raise ValueError("a list of counts is something else")
    if not all(type(one) is int and 0 <= one < 2**53 for one in found):
        raise ValueError("a count is something else")
    return tuple(found)
