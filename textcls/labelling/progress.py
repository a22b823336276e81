"""Estimate the accuracy while rows are labelled, and whether more labels would change much.

Rows that a model chose are the hard ones, and not a sample of all. So every fifth row comes from one random order of
the texts, and the estimate counts only the beginning of that order up to the first text without a label: for whatever
reason those texts were asked for, they are a random sample.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from textcls.evaluation.intervals import share

# Every n-th row is the next of the random order.
RANDOM_EVERY: Final = 5
# With fewer random rows the estimate is not shown.
LEAST_RANDOM: Final = 10
# If the answers to this share of the texts or less changed since half the labels, more labels gain little.
LITTLE: Final = 0.02
# With fewer labels than this, that cannot be said.
LEAST_LABELS: Final = 100


@dataclass(frozen=True, slots=True)
class Estimate:
    """Held-out accuracy on a random sample, with its interval of 95 % (Wilson 1927).

    Attributes:
        labels: how many answers the model had.
        rows: random rows that were answered by a model that had not seen them.
        right: how many of them it answered as the person did.
        low: lower end of the interval.
        high: upper end.
    """

    labels: int
    rows: int
    right: int
    low: float
    high: float

    @property
    def accuracy(self) -> float:
        """The share of right answers."""
        return self.right / self.rows

    def as_json(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {**asdict(self), "accuracy": self.accuracy}


def random_sample(order: Sequence[int], labelled: Mapping[int, object], passed: frozenset[int]) -> list[int]:
    """Return the texts of the random sample: the beginning of the random `order` up to the first without an answer.

    Args:
        order: all texts in a random order.
        labelled: those with an answer.
        passed: those that were skipped, which are ignored.
    """
    found = []
    for row in order:
        if row in labelled:
            found.append(row)
        elif row not in passed:
            break
    return found


def estimate(held_out: Mapping[int, bool], sample: Sequence[int], labels: int) -> Estimate | None:
    """Return the accuracy on a sample; None if it is too small.

    Args:
        held_out: for rows that a model has answered without having seen them, whether it was right.
        sample: the rows that count.
        labels: how many answers the model had.
    """
    found = [held_out[row] for row in sample if row in held_out]
    if len(found) < LEAST_RANDOM:
        return None
    _, low, high = share(sum(found), len(found))
    return Estimate(labels, len(found), sum(found), low, high)


def advice(labels: int, changed: float | None) -> str | None:
    """Return a sentence on whether more labels still pay; None while nothing can be said.

    The change between the model of half the labels and that of all is the most that this half can have gained, and
    twice as many labels rarely gain more.

    Args:
        labels: how many answers the model has.
        changed: the share of all texts that it answers differently than with half of them.
    """
    if changed is None or labels < LEAST_LABELS:
        return None
    share = f"{changed:.1%}"
    if changed <= LITTLE:
        return (
            f"The last half of your labels changed {share} of the answers. More labels of this kind hardly pay: twice "
            "as many would change no more."
        )
    return f"The last half of your labels changed {share} of the answers, so labelling still pays."
