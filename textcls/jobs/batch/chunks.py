"""Chunks of items with texts, bounded in number and in characters."""

from collections.abc import Iterable, Iterator
from typing import Final, Protocol, TypeVar

ROWS: Final = 1024
CHARACTERS: Final = 4_000_000


class HasText(Protocol):
    """A row of a table, with its text."""

    @property
    def text(self) -> str:
        """The text."""


Item = TypeVar("Item", bound=HasText)


def chunked(items: Iterable[Item], most: int = ROWS) -> Iterator[list[Item]]:
    """Yield `items` in lists of at most `most`, and of fewer if their texts are long."""
    chunk: list[Item] = []
    characters = 0
    for item in items:
        chunk.append(item)
        characters += len(item.text)
        if len(chunk) >= most or characters >= CHARACTERS:
            yield chunk
            chunk, characters = [], 0
    if chunk:
        yield chunk
