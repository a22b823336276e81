"""Linear contrasts of logits: weights of the labels that turn contributions into one number.

They sum to zero, except for those of a label by itself.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Float32 = NDArray[np.float32]
Float64 = NDArray[np.float64]


def one_against_rest(probabilities: Float32, numbers: Sequence[int]) -> Float64:
    """Return the contrasts of labels with all others [labels, numbers], one per column.

    A column is 1 at its label, and at the others their negative probabilities, scaled to sum to -1.

    Args:
        probabilities: the probabilities of one text [labels].
        numbers: the labels wanted, by number.
    """
    columns = np.arange(len(numbers))
    weight = np.tile(probabilities.astype(np.float64)[:, None], (1, len(numbers)))
    weight[numbers, columns] = 0.0
    total = weight.sum(0)
    # If a label is certain, the others' probabilities may all be zero.
    weight = np.where(total > 0, weight / np.where(total > 0, total, 1.0), 1 / max(1, len(weight) - 1))
    weight[numbers, columns] = -1.0
    return np.negative(weight)


def evidence_of_all(probabilities: Float32, contributions: Float64) -> Float64:
    """Return contributions [tokens, labels] times the contrasts of all labels with all others.

    It equals the product with `one_against_rest`, without its labels x labels weights: the mean of the rest is that of
    all labels minus a label's own part. For the most probable label it would cancel, so its column is used.

    Args:
        probabilities: the probabilities of one text [labels].
        contributions: the contributions of its tokens [tokens, labels].
    """
    weight = probabilities.astype(np.float64)
    best = int(weight.argmax())
    others = np.arange(len(weight)) != best
    evidence = np.empty_like(contributions)
    evidence[:, best] = contributions @ one_against_rest(probabilities, [best])[:, 0]
    own = contributions[:, others]
    rest = (contributions @ weight)[:, None] - own * weight[others]
    evidence[:, others] = own - rest / (weight.sum() - weight[others])
    return evidence


def each_alone(labels: int, numbers: Sequence[int]) -> Float64:
    """Return the weights to use instead of contrasts if labels do not compete [labels, numbers]: each logit itself.

    Each label has its own sigmoid: its logit is the log-odds of the label, except for scale and shift.
    """
    weight = np.zeros((labels, len(numbers)))
    weight[numbers, np.arange(len(numbers))] = 1.0
    return weight


def group_against_group(probabilities: Float32, group: Sequence[int], other: Sequence[int]) -> Float64:
    """Return the contrast of a group of labels, such as those below a node of a tree, with another [labels].

    Each label is weighted by its share of its group's probability, so the weights of the groups sum to 1 and -1.
    Compared with all others, this is the gradient of the group's log-odds, in units of the temperature: for a group of
    one label it is `one_against_rest`.

    Args:
        probabilities: the probabilities of one text [labels].
        group: the numbers of the group's labels.
        other: the numbers of the other group's labels; the two must not overlap.
    """
    weight = np.zeros(len(probabilities))
    for numbers, sign in ((group, 1.0), (other, -1.0)):
        own = probabilities[list(numbers)].astype(np.float64)
        total = own.sum()
        weight[list(numbers)] = sign * (own / total if total else 1 / len(own))
    return weight


def one_against_one(labels: int, number: int, other: int) -> Float64:
    """Return the contrast of two labels [labels]: 1 at `number`, -1 at `other`."""
    weight = np.zeros(labels)
    weight[number], weight[other] = 1.0, -1.0
    return weight
