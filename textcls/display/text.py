"""Show texts, names and numbers everywhere in the same way: visible, on one line, never blank."""

import os
import shlex
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final
from unicodedata import category

MOST_NAMED: Final = 12
LONGEST_NAME: Final = 60
# The representation of an empty cell of a table.
MISSING: Final = "(missing)"
# With fewer labels, it means little to be among the best five.
_MANY_LABELS: Final = 20

# Control characters except tab and line feed, characters that reorder their surroundings, and unpaired surrogates.
_INVISIBLE: Final = (
    {c: chr(0x2400 + c) for c in range(32) if c not in (9, 10)}
    | {127: "\u2421"}
    | dict.fromkeys(
        [*range(128, 160), *range(0x202A, 0x202F), *range(0x2066, 0x206A), *range(0xD800, 0xE000)], "\ufffd"
    )
)


def visible(text: str) -> str:
    """Return `text` safe to show: same length, without characters that control, reorder or cannot be encoded."""
    return text.translate(_INVISIBLE)


def one_line(text: str) -> str:
    """Return `text` visible and without line breaks and tabs; same length."""
    return visible(text).replace("\n", " ").replace("\t", " ")


def short(text: str, characters: int) -> str:
    """Return the beginning of `text` on one line, at most this many characters; an ellipsis stands for the rest."""
    shown = one_line(text)
    return shown if len(shown) <= characters else shown[: characters - 1].rstrip() + "\u2026"


def named(text: str) -> str:
    """Return a token or label as named in a table: on one line, never blank, and cut if it is very long."""
    shown = one_line(text)
    if all(not c.isprintable() or category(c) == "Mn" for c in shown):
        # A joiner or a lone accent would leave nothing visible.
        shown = " ".join(f"U+{ord(c):04X}" for c in shown[:MOST_NAMED])
    return short(shown, LONGEST_NAME)


def listed(words: Sequence[str]) -> str:
    """Return the words as a sentence lists them: a, b and c."""
    *first, last = words
    return f"{', '.join(first)} and {last}" if first else last


def in_a_shell(path: Path) -> str:
    """Return a path quoted for a shell: a POSIX one, or one of Windows, which only knows double quotes."""
    return subprocess.list2cmdline([str(path)]) if os.name == "nt" else shlex.quote(str(path))


def plural(number: int, one: str) -> str:
    """Return a number with its noun: 1 row, 1,234 rows."""
    return f"{number:,} {one}{'s' * (number != 1)}"


def percent(share: float, digits: int | None = 1) -> str:
    """Return a share in percent: 97.5%. Without `digits`, with as many as it needs: 10%."""
    return f"{100 * share:g}%" if digits is None else f"{share:.{digits}%}"


def top_k_sentence(top_k_accuracy: Mapping[int, float], labels: int) -> str:
    """Return how often the right label is among the best few; nothing if there are few labels."""
    if labels < _MANY_LABELS or not top_k_accuracy:
        return ""
    found = [f"among the best {k} in {percent(share, 2)} of the rows" for k, share in top_k_accuracy.items()]
    return f"The right label is {', '.join(found)}."


def signed(value: float, digits: int = 3) -> str:
    """Return a number of logits with its sign: +1.250."""
    return f"{value:+,.{digits}f}"
