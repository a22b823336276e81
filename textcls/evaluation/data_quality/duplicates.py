"""Rows with the same text. Near copies are texts that are equal once case, white space and punctuation are removed."""

import re
from collections.abc import Iterator
from typing import Final

import numpy as np
from numpy.typing import NDArray

Int64 = NDArray[np.int64]
DEFINITION: Final = "identical except for case, spaces and punctuation"
_OTHER: Final = re.compile(r"[\W_]+")
_ASCII_OTHER: Final = bytes(code for code in range(128) if not chr(code).isalnum())
_LOWER: Final = bytes(range(256)).lower()


def exact(text: str) -> int:
    """Return a number that is the same for equal texts, and hardly ever for different ones."""
    return hash(text)


def near(text: str) -> int:
    """Return a number that is the same for near copies; a text of punctuation only matches just its exact copies."""
    return hash((_ascii_left(text) if text.isascii() else _OTHER.sub("", text).casefold()) or text)


def _ascii_left(text: str) -> str:
    """Return what the general rule leaves of an ASCII text, ten times as fast."""
    return text.encode().translate(_LOWER, _ASCII_OTHER).decode()


def groups(keys: Int64) -> Iterator[Int64]:
    """Yield the numbers of the rows that share a key, in order, for each key with several rows; the first row first."""
    order = np.argsort(keys, kind="stable")
    starts = np.flatnonzero(np.diff(keys[order], prepend=~keys[order[:1]]))
    ends = np.append(starts[1:], len(keys))
    several = np.flatnonzero(ends - starts > 1)
    for i in several[np.argsort(order[starts[several]])]:
        yield order[starts[i] : ends[i]]
