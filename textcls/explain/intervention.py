"""Remove, exchange or add tokens of a text.

This is the one operation behind everything that asks "what if": audits for shortcuts, counterfactuals, exchanged
identity words, and benchmarks of explanations.

Removal turns the token's characters into spaces, as ERASER does (DeYoung et al. 2020, section 4): the token is gone,
and its neighbours become adjacent.
"""

from collections.abc import Iterable, Mapping, Sequence

Span = tuple[int, int]


def remove(text: str, spans: Sequence[Span], which: Iterable[int]) -> str:
    """Return `text` without the tokens numbered `which`; the rest stays as it was.

    Args:
        text: the text.
        spans: start and end of each token.
        which: numbers of tokens.
    """
    return exchange(text, spans, {i: " " * (spans[i][1] - spans[i][0]) for i in which})


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
    """Return `text` with `words` before the token of number `at`, or after all of them."""
    place = spans[at][0] if at < len(spans) else len(text)
    before, behind = text[:place].rstrip(" "), text[place:]
    return " ".join(part for part in (before, words, behind) if part)
