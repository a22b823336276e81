"""Where a word or pair stood: an excerpt of the text around it."""

from dataclasses import dataclass
from typing import Final

# Characters of an excerpt on either side of the word.
AROUND: Final = 32


@dataclass(frozen=True, slots=True)
class Excerpt:
    """Where a word or pair stood in a text in which it contributed much: `text[start:end]` is the word or pair."""

    text: str
    start: int
    end: int


def excerpt(text: str, start: int, end: int, around: int = AROUND) -> Excerpt:
    """Return what stands `around` characters on either side of `text[start:end]`, cut at spaces if there are any."""
    first, last = max(0, start - around), min(len(text), end + around)
    first = text.find(" ", first, start) + 1 or first if first else 0
    last = max(text.rfind(" ", end, last), end) if last < len(text) and " " in text[end:last] else last
    return Excerpt(text[first:last], start - first, end - first)


def marked(excerpt: Excerpt) -> tuple[str, str, str]:
    """Return what stands before the word or pair, itself, and what stands behind."""
    return excerpt.text[: excerpt.start], excerpt.text[excerpt.start : excerpt.end], excerpt.text[excerpt.end :]
