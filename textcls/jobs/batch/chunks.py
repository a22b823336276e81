"""Chunks of items with texts, bounded in number and in characters."""

from collections.abc import Iterable, Iterator
from typing import Any, Final, TypeVar

ROWS: Final = 1024
CHARACTERS: Final = 4_000_000


# A text, and whatever goes with it.
Item = TypeVar("Item", bound=tuple[str, Any])


def chunked(items: Iterable[Item], most: int = ROWS) -> Iterator[list[Item]]:
    """Yield `items` in lists of at most `most`, and of fewer if their texts are long."""
    chunk: list[Item] = []
    characters = 0
    for item in items:
        chunk.append(item)
        characters += len(item[0])
        if len(chunk) >= most or characters >= CHARACTERS:
            yield chunk
            chunk, characters = [], 0
    if chunk:
        yield chunk
