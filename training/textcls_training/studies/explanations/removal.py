"""What a text is without some of its tokens, in two ways.

`delete` turns the token's characters into spaces: the token is gone, its neighbours meet. That is what ERASER does
(DeYoung et al. 2020, section 4). `mask` puts a sign in its place that is one token by the token rule and that no
training text is expected to hold: the number of tokens stays, the neighbours do not meet.
"""

from collections.abc import Iterable, Sequence
from typing import Final, Literal, get_args

from textcls import tokenizer
from textcls.errors import ConfigError

Span = tuple[int, int]
Removal = Literal["delete", "mask"]
REMOVALS: Final[tuple[Removal, ...]] = get_args(Removal)

# OBJECT REPLACEMENT CHARACTER: neither letter, mark, digit nor white space, so it is a token of its own everywhere.
MASK: Final = "\ufffc"
# Said on the page; to be changed once training removes tokens.
SEEN_IN_TRAINING: Final = (
    "Neither operator is seen in training: texts without some of their tokens are new to the model."
)


def read_part(text: str, max_tokens: int) -> tuple[str, tuple[Span, ...]]:
    """Return the part of `text` that a model of `max_tokens` tokens reads, and the spans of its tokens.

    What is behind the limit is cut off first: where a token is removed, nothing unread may slide in.
    """
    spans = tuple(tokenizer.token_spans(text, max_tokens))
    return text[: spans[-1][1]] if spans else "", spans


def remove(text: str, spans: Sequence[Span], which: Iterable[int], removal: Removal = "delete") -> str:
    """Return `text` without the tokens whose numbers are `which`; the rest stands as it was.

    Raises:
        ConfigError: there is no such way of removal.
    """
    if removal not in REMOVALS:
        raise ConfigError(f"Unknown removal {removal!r}; choose delete or mask.")
    parts: list[str] = []
    at = 0
    for i in sorted(set(which)):
        start, end = spans[i]
        parts += text[at:start], " " * (end - start) if removal == "delete" else MASK
        at = end
    return "".join([*parts, text[at:]])


def keep(text: str, spans: Sequence[Span], which: Iterable[int], removal: Removal = "delete") -> str:
    """Return `text` with the tokens `which` alone, all others removed."""
    return remove(text, spans, set(range(len(spans))).difference(which), removal)
