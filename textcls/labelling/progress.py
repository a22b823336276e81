"""What is known of the accuracy while rows are labelled, and whether more labels would change much.

Rows that a model chose are the hard ones, and no sample of all. So every fifth row comes from one random order of the
texts, and the estimate counts only the beginning of that order up to the first text without a label: whichever way
those texts came to be asked for, they are a random sample.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from textcls.evaluation.intervals import share

# Each so-manieth row is the next of the random order.
RANDOM_EVERY: Final = 5
# Fewer random rows say too little to be shown.
LEAST_RANDOM: Final = 10
# Answers to so small a share of texts changed since half the labels: more labels bring little.
LITTLE: Final = 0.02
# Fewer labels are too few to say so.
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
        passed: those that somebody has skipped, which count as if they were not there.
    """
    found = []
    for row in order:
        if row in labelled:
            found.append(row)
        elif row not in passed:
            break
    return found


def estimate(held_out: Mapping[int, bool], sample: Sequence[int], labels: int) -> Estimate | None:
    """Return the accuracy on a sample; None where it is too small.

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
    """Say whether more labels still pay; None while nothing can be said.

    What has changed between the model of half the labels and that of all is the most that this half can have brought,
    and twice as many labels rarely bring more.

    Args:
        labels: how many answers the model has.
        changed: the share of all texts that it answers otherwise than with half of them.
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
