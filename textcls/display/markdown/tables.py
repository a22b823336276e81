"""Tables in Markdown, and texts in which no character is taken for Markdown syntax."""

import re
from collections.abc import Iterable, Sequence
from typing import Final

from textcls.display.text import named, one_line

_SIGNS: Final = re.compile(r"([\\`*_{}\[\]<>#|~!&])")


def escaped(text: str) -> str:
    """Return a text on one line that Markdown shows unchanged."""
    return _SIGNS.sub(r"\\\1", one_line(text))


def name(text: str) -> str:
    """Return a token or label as named in tables."""
    return escaped(named(text))


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Return the lines of a table: the first column is text, others are numbers unless their head ends in a space."""
    sides = ["---" if i == 0 or head.endswith(" ") else "---:" for i, head in enumerate(heads)]
    lines = [_row([head.strip() for head in heads]), _row(sides)]
    return [*lines, *map(_row, rows)]


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
