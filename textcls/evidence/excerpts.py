"""Where a word or pair stood: an excerpt of the text around it."""

from dataclasses import dataclass
from typing import Final

# Characters of an example on either side of the word.
AROUND: Final = 32


@dataclass(frozen=True, slots=True)
class Example:
    """Where a word or pair stood in a text in which it said much: `text[start:end]` is what is meant."""

    text: str
    start: int
    end: int


def excerpt(text: str, start: int, end: int) -> Example:
    """Return what stands around `text[start:end]`, cut at spaces where there are some."""
    first, last = max(0, start - AROUND), min(len(text), end + AROUND)
    first = text.find(" ", first, start) + 1 or first if first else 0
    last = max(text.rfind(" ", end, last), end) if last < len(text) and " " in text[end:last] else last
    return Example(text[first:last], start - first, end - first)


def marked(example: Example) -> tuple[str, str, str]:
    """Return what stands before, what is meant, and what stands behind."""
    return example.text[: example.start], example.text[example.start : example.end], example.text[example.end :]
