"""What is known of texts that are no longer at hand: how often each of their tokens and pairs of neighbours occurred.

From these counts a later training knows which features there are, and how rare, without the texts.
"""

from dataclasses import dataclass

import numpy as np

from textcls.model.features import Uint32
from textcls_training.data.arrays import Bools, Int64

# Hashes in ascending order, and how often each occurs.
Counted = tuple[Uint32, Int64]


@dataclass(frozen=True, slots=True, eq=False)
class EarlierCounts:
    """Counts of the tokens and pairs of earlier texts.

    Attributes:
        types: distinct tokens.
        count: how often each type occurred [U]; 0 for one that is known but not counted here.
        pair: hashes of pairs of neighbours, in ascending order [P].
        pair_count: how often each pair occurred [P], likewise.
        texts: the number of texts.
    """

    types: list[str]
    count: Int64
    pair: Uint32
    pair_count: Int64
    texts: int

    def only(self, types: Bools, pairs: Bools) -> "EarlierCounts":
        """Return the counts of only some types [U] and pairs [P]; all of them stay known."""
        return EarlierCounts(
            self.types, np.where(types, self.count, 0), self.pair, np.where(pairs, self.pair_count, 0), self.texts
        )


def added(one: Counted, other: Counted) -> Counted:
    """Return the hashes of both, and their counts together."""
    found, number = np.unique(np.append(one[0], other[0]), return_inverse=True)
    times = np.zeros(len(found), np.int64)
    np.add.at(times, number, np.append(one[1], other[1]))
    return found, times
