"""Linear contrasts of logits: weights of the labels that turn contributions into one number.

They sum to zero, but for those of a label by itself.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Float32 = NDArray[np.float32]
Float64 = NDArray[np.float64]


def one_against_rest(probabilities: Float32, numbers: Sequence[int]) -> Float64:
    """Return the contrasts of labels with all others [labels, numbers], one a column.

    A column holds 1 at its label and, at the others, their probabilities, negative, scaled to sum to -1.

    Args:
        probabilities: the probabilities of one text [labels].
        numbers: the labels wanted, by number.
    """
    columns = np.arange(len(numbers))
    weight = np.tile(probabilities.astype(np.float64)[:, None], (1, len(numbers)))
    weight[numbers, columns] = 0.0
    total = weight.sum(0)
    # Of a label that is certain the others' probabilities may all be zero.
    weight = np.where(total > 0, weight / np.where(total > 0, total, 1.0), 1 / max(1, len(weight) - 1))
    weight[numbers, columns] = -1.0
    return np.negative(weight)


def evidence_of_all(probabilities: Float32, contributions: Float64) -> Float64:
    """Return contributions [tokens, labels] times the contrasts of all labels with all others.

    It is the product with `one_against_rest`, without its labels x labels weights: the mean of the rest is that of all
    labels less a label's own part. Of the most probable label that difference would cancel, so it has its own column.

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
    """Return what stands in the place of contrasts where labels do not compete [labels, numbers]: each logit itself.

    A sigmoid a label answers for it alone: its logit is, but for scale and shift, the log-odds of the label.
    """
    weight = np.zeros((labels, len(numbers)))
    weight[numbers, np.arange(len(numbers))] = 1.0
    return weight


def group_against_group(probabilities: Float32, group: Sequence[int], other: Sequence[int]) -> Float64:
    """Return the contrast of a group of labels, such as those below a node of a tree, with another [labels].

    Each label counts by its share of its group's probability, so that the one group's weights sum to 1 and the other's
    to -1. Held against all others, that is the gradient of the group's log-odds, in units of the temperature: of a
    group of one label it is `one_against_rest`.

    Args:
        probabilities: the probabilities of one text [labels].
        group: the labels of the one, by number.
        other: those of the other; the two have none in common.
    """
    weight = np.zeros(len(probabilities))
    for numbers, sign in ((group, 1.0), (other, -1.0)):
        own = probabilities[list(numbers)].astype(np.float64)
        total = own.sum()
        weight[list(numbers)] = sign * (own / total if total else 1 / len(own))
    return weight


def one_against_one(labels: int, number: int, other: int) -> Float64:
    """Return the contrast of two of so many labels [labels]: 1 at the one, -1 at the other."""
    weight = np.zeros(labels)
    weight[number], weight[other] = 1.0, -1.0
    return weight
