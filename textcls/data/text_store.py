"""Any number of texts: in memory while they are few, then as UTF-8 in a file without a name."""

from array import array
from collections.abc import Iterator, Sequence
from typing import Any, Final, overload

import numpy as np
from numpy.typing import NDArray

from textcls._util.spill import IN_MEMORY, Spill

# Bytes that Python needs per text in addition to its characters.
_OVERHEAD: Final = 64
# Characters written at a time.
_AT_ONCE: Final = 1 << 20
# Texts read at a time when iterating.
_BLOCK: Final = 1 << 12
# A text of JSON may hold an unpaired surrogate.
_ERRORS: Final = "surrogatepass"


class TextStore(Sequence[str]):
    """Texts that are first appended, and then read: one, some, or all in order.

    Args:
        spill: where the texts are stored.
    """

    def __init__(self, spill: Spill = IN_MEMORY) -> None:
        self._spill = spill
        self._recent: list[str] = []
        self._held = 0  # bytes of `_recent`, about
        self._bound = spill.limit
        self._written = spill.growing(np.uint8)
        self._ends = array("q", [0])
        self._bytes: NDArray[Any] | None = None  # once texts have been read

    def append(self, text: str) -> None:
        """Add a text.

        Raises:
            SurroundingsError: the disk is full.
        """
        self._recent.append(text)
        self._held += len(text) + _OVERHEAD
        if self._held > self._bound:
            self._write()

    def texts(self) -> Sequence[str]:
        """Return all texts: a plain list while they are in memory."""
        return self._recent if len(self._ends) == 1 else self

    def _write(self) -> None:
        """Write the texts that are in memory; from now on, write smaller portions."""
        end = self._ends[-1]
        encoded = [text.encode("utf-8", _ERRORS) for text in self._recent]
        for one in encoded:
            end += len(one)
            self._ends.append(end)
        self._written.extend(np.frombuffer(b"".join(encoded), np.uint8))
        self._recent.clear()
        self._held, self._bound = 0, min(self._spill.limit, _AT_ONCE)

    def __len__(self) -> int:
        return len(self._ends) - 1 + len(self._recent)

    @overload
    def __getitem__(self, i: int) -> str: ...
    @overload
    def __getitem__(self, i: slice) -> list[str]: ...
    def __getitem__(self, i: int | slice) -> str | list[str]:
        """Return a text, or a list of them."""
        if len(self._ends) == 1:
            return self._recent[i]
        if isinstance(i, slice):
            return [self._text(number) for number in range(*i.indices(len(self)))]
        return self._text(range(len(self))[i])

    def __iter__(self) -> Iterator[str]:
        """Yield all texts, reading a block of them at a time."""
        for first in range(0, len(self), _BLOCK):
            yield from self[first : first + _BLOCK]

    def _text(self, number: int) -> str:
        if self._bytes is None:
            self._write()
            self._bytes = self._written.array()
        return self._bytes[self._ends[number] : self._ends[number + 1]].tobytes().decode("utf-8", _ERRORS)
