"""Names of array types, and lists of different lengths stored end to end in one array."""

from collections.abc import Iterator
from typing import Final

import numpy as np
from numpy.typing import NDArray

# How many numbers are processed at a time when all of them might not fit into memory.
AT_ONCE: Final = 1 << 22

Bools = NDArray[np.bool_]
Float32 = NDArray[np.float32]
Float64 = NDArray[np.float64]
Int32 = NDArray[np.int32]
Int64 = NDArray[np.int64]


def starts(lengths: Int64) -> Int64:
    """Return where each of several lists begins when they are stored end to end, and where the last one ends."""
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])


def ranges(first: Int64, length: Int64) -> Int64:
    """Return first[0], first[0] + 1, ... (length[0] of them), then those of the next, end to end."""
    ends = np.cumsum(length)
    return np.arange(ends[-1] if len(ends) else 0) + np.repeat(first - ends + length, length)


def blocks(start: Int64, size: int = AT_ONCE) -> Iterator[tuple[int, int]]:
    """Yield the numbers (first, last + 1) of lists stored end to end, in blocks of at most `size` elements.

    A longer list is a block of its own. `start` contains where each begins, and where the last one ends.
    """
    first = 0
    while first < len(start) - 1:
        last = max(first + 1, int(np.searchsorted(start, start[first] + size, "right")) - 1)
        yield first, last
        first = last
