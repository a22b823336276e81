"""Choose the texts that are most informative to label next: pure functions of vectors and probabilities.

Two kinds of text are worth a label: one that the model is unsure of (the margin between its two best labels; Scheffer,
Decomain and Wrobel 2001), and one of a kind that it has not seen. A model trained on few labels is sure and unsure of
the wrong texts. So its doubt decides only a share of the choice: how much better than guessing it is, judged by the
mean of its best probabilities, as these are calibrated. Nor does it consider all texts: among very many the most
doubtful ones are odd. It takes the most doubtful of `CANDIDATES` times as many random texts as are to be chosen. The
rest is exploration: texts in a fixed random order, those similar to a labelled or chosen one last.

Shapes: R texts, C labels, F width of a vector.
"""

import math
from typing import Final

import numpy as np
from numpy.typing import NDArray

Float32 = NDArray[np.float32]
Float64 = NDArray[np.float64]
Bools = NDArray[np.bool_]
# The number of random candidates for doubt per text to be chosen.
CANDIDATES: Final = 4
# The number of texts that all others are compared with at a time.
_BLOCK: Final = 256
# Texts count as similar from this cosine on.
_ALIKE: Final = 0.5
_SEED: Final = 0


def choose(
    vector_RF: Float32, labelled_R: Bools, count: int, probability_RC: Float64 | None = None, *, several: bool = False
) -> list[int]:
    """Return the numbers of `count` texts without a label, or of all there are, the most informative first.

    Args:
        vector_RF: vectors of length 1, or 0.
        labelled_R: which texts have a label.
        count: how many to choose.
        probability_RC: a model's probabilities of each text; None without a model, when all texts are explored.
        several: whether its labels are not mutually exclusive.
    """
    explored = _Explored(vector_RF, labelled_R)
    if probability_RC is None:
        return [explored.next() for _ in range(min(count, int((~labelled_R).sum())))]
    free = np.flatnonzero(~labelled_R)
    # Different ones in each round: what was passed over once is not asked about again and again.
    drawn = np.random.default_rng([_SEED, int(labelled_R.sum())]).permutation(free)[: CANDIDATES * count]
    doubt_D = doubt(probability_RC[drawn], several=several)
    by_doubt = iter(drawn[np.argsort(-doubt_D, kind="stable")].tolist())
    trusted = trust(probability_RC, several=several)
    chosen: list[int] = []
    for i in range(min(count, int((~labelled_R).sum()))):
        if math.ceil((i + 1) * trusted) > math.ceil(i * trusted):
            found = next(row for row in by_doubt if not explored.taken_R[row])
            explored.take(found)
        else:
            found = explored.next()
        chosen.append(found)
    return chosen


def doubt(probability_RC: Float64, *, several: bool = False) -> Float64:
    """Return how unsure each text is [R], from 0 to 1: how near its two most probable labels are to each other.

    Args:
        probability_RC: the probability of each label.
        several: whether labels are not mutually exclusive; a text is then as unsure as its most doubtful label.
    """
    if several:
        return np.asarray(1 - np.abs(2 * probability_RC - 1).min(1))
    if probability_RC.shape[1] < 2:
        return np.zeros(len(probability_RC))
    two_R2 = np.partition(probability_RC, -2, axis=1)[:, -2:]
    return np.asarray(1 - (two_R2[:, 1] - two_R2[:, 0]))


def trust(probability_RC: Float64, *, several: bool = False) -> float:
    """Return how much better than guessing a model probably is, from 0 to 1, by its own calibrated probabilities.

    The mean of the best of these is its expected accuracy. Guessing gets 1 of C right, or every other one if labels are
    not mutually exclusive.

    Args:
        probability_RC: the probability of each label.
        several: whether labels are not mutually exclusive; the most doubtful label of a text then represents all.
    """
    if not probability_RC.size:
        return 0.0
    best_R = np.maximum(probability_RC, 1 - probability_RC).min(1) if several else probability_RC.max(1)
    guessed = 0.5 if several else 1 / probability_RC.shape[1]
    return 1.0 if guessed == 1 else max(0.0, (float(best_R.mean()) - guessed) / (1 - guessed))


class _Explored:
    """Texts in the order in which they are explored.

    Attributes:
        taken_R: which texts are labelled or taken.
    """

    def __init__(self, vector_RF: Float32, labelled_R: Bools) -> None:
        self._vector_RF, self.taken_R = vector_RF, labelled_R.copy()
        self._order = np.random.default_rng(_SEED).permutation(len(vector_RF))
        self._like_R = np.zeros(len(vector_RF), np.float32)
        labelled = np.flatnonzero(labelled_R)
        for first in range(0, len(labelled), _BLOCK):
            self._see(labelled[first : first + _BLOCK])

    def take(self, row: int) -> None:
        """Take a text."""
        self.taken_R[row] = True
        self._see(np.array([row]))

    def next(self) -> int:
        """Take the next text; return its number."""
        left = self._order[~self.taken_R[self._order]]
        row = int(left[np.argmax(self._like_R[left] < _ALIKE)])
        self.take(row)
        return row

    def _see(self, rows: NDArray[np.int64]) -> None:
        cosine_R = (self._vector_RF @ self._vector_RF[rows].T).max(1)
        self._like_R = np.maximum(self._like_R, cosine_R)
