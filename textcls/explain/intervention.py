"""What a text becomes if some of its tokens are removed, exchanged or added.

It is the one operation behind everything that asks "what if": audits for shortcuts, counterfactuals, exchanged identity
words, and benchmarks of explanations.

Removal is done in two ways. `delete` turns the token's characters into spaces: the token is gone, its neighbours meet.
That is what ERASER does (DeYoung et al. 2020, section 4). `mask` puts a sign in its place that is one token by the
token rule and that no training text is expected to hold: the number of tokens stays, the neighbours do not meet.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Literal, get_args

from textcls.errors import ConfigError

Span = tuple[int, int]
Removal = Literal["delete", "mask"]
REMOVALS: Final[tuple[Removal, ...]] = get_args(Removal)

# OBJECT REPLACEMENT CHARACTER: neither letter, mark, digit nor white space, so it is a token of its own everywhere.
MASK: Final = "\ufffc"


def remove(text: str, spans: Sequence[Span], which: Iterable[int], removal: Removal = "delete") -> str:
    """Return `text` without the tokens whose numbers are `which`; the rest stands as it was.

    Args:
        text: the text.
        spans: start and end of each token.
        which: numbers of tokens.
        removal: how.

    Raises:
        ConfigError: there is no such way of removal.
    """
    if removal not in REMOVALS:
        raise ConfigError(f"Unknown removal {removal!r}; choose delete or mask.")
    chosen = set(which)
    if removal == "mask":
        return exchange(text, spans, dict.fromkeys(chosen, MASK))
    return exchange(text, spans, {i: " " * (spans[i][1] - spans[i][0]) for i in chosen})


def keep(text: str, spans: Sequence[Span], which: Iterable[int], removal: Removal = "delete") -> str:
    """Return `text` with the tokens `which` alone, all others removed."""
    return remove(text, spans, set(range(len(spans))).difference(which), removal)


def exchange(text: str, spans: Sequence[Span], by: Mapping[int, str]) -> str:
    """Return `text` with other strings in the places of some tokens.

    Args:
        text: the text.
        spans: start and end of each token.
        by: the string for the token of each number.
    """
    parts: list[str] = []
    at = 0
    for i in sorted(by):
        start, end = spans[i]
        parts += text[at:start], by[i]
        at = end
    return "".join([*parts, text[at:]])


def insert(text: str, spans: Sequence[Span], at: int, words: str) -> str:
    """Return `text` with `words` before the token of number `at`, or behind all of them."""
    place = spans[at][0] if at < len(spans) else len(text)
    before, behind = text[:place].rstrip(" "), text[place:]
    return " ".join(part for part in (before, words, behind) if part)
