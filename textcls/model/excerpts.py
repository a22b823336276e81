"""Excerpts of the text around a word or pair."""

from dataclasses import dataclass
from typing import Final

# Characters of an excerpt on each side of the word.
AROUND: Final = 32


@dataclass(frozen=True, slots=True)
class Excerpt:
    """An excerpt of a text in which a word or pair contributed much: `text[start:end]` is the word or pair."""

    text: str
    start: int
    end: int


def excerpt(text: str, start: int, end: int, around: int = AROUND) -> Excerpt:
    """Return `text[start:end]` with `around` characters on each side, cut at spaces if there are any."""
    first, last = max(0, start - around), min(len(text), end + around)
    first = text.find(" ", first, start) + 1 or first if first else 0
    last = max(text.rfind(" ", end, last), end) if last < len(text) and " " in text[end:last] else last
    return Excerpt(text[first:last], start - first, end - first)


def marked(excerpt: Excerpt) -> tuple[str, str, str]:
    """Return the text before the word or pair, the word or pair itself, and the text after it."""
    return excerpt.text[: excerpt.start], excerpt.text[excerpt.start : excerpt.end], excerpt.text[excerpt.end :]
