"""What makes evidence of contributions: how much each label counts for one that is spoken for."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Float32 = NDArray[np.float32]
Float64 = NDArray[np.float64]


def directions(probabilities: Float32, numbers: Sequence[int]) -> Float64:
    """Return what turns contributions [tokens, labels] into evidence by a matrix product: [labels, numbers].

    A column holds 1 at its label and, at the others, their probabilities, negative, scaled to sum to -1.

    Args:
        probabilities: of one text [labels].
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
