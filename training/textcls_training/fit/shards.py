"""How the texts of a step are dealt to shards, and shards to those who compute: neighbours together, in their order.

How many shards there are is part of what is computed, who computes them is not.
"""

from collections.abc import Sequence
from typing import TypeVar

import numpy as np

from textcls_training.data.arrays import Int64

Part = TypeVar("Part")


def shards_of(text_B: Int64, shards: int) -> list[Int64]:
    """Deal the texts of a batch to shards, neighbours together; of a batch with fewer texts some get none."""
    return np.array_split(text_B, shards)


def dealt(shards: Sequence[Part], workers: int) -> list[Sequence[Part]]:
    """Deal shards to workers, neighbours together."""
    ends = [len(shards) * (i + 1) // workers for i in range(workers)]
    return [shards[first:last] for first, last in zip([0, *ends], ends, strict=False)]
