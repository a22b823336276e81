"""The part of a text that a model reads, and two ways of removing tokens.

`delete` is that of audits and counterfactuals (`textcls.explain.intervention`): neighbours meet. `mask` puts a sign in
the place that is one token by the token rule and that no training text is expected to hold: the number of tokens stays.
"""

from collections.abc import Iterable, Sequence
from typing import Final, Literal, get_args

from textcls.errors import ConfigError
from textcls.explain import intervention
from textcls.explain.intervention import Span
from textcls.model import tokenizer

Removal = Literal["delete", "mask"]
REMOVALS: Final[tuple[Removal, ...]] = get_args(Removal)
# OBJECT REPLACEMENT CHARACTER: neither letter, mark, digit nor white space, so it is a token of its own everywhere.
MASK: Final = "\ufffc"

# Said on the page; to be changed once training removes tokens.
SEEN_IN_TRAINING: Final = (
    "Neither operator is seen in training: texts without some of their tokens are new to the model."
)


def remove(text: str, spans: Sequence[Span], which: Iterable[int], removal: Removal = "delete") -> str:
    """Return `text` without the tokens whose numbers are `which`; the rest stands as it was.

    Raises:
        ConfigError: there is no such way of removal.
    """
    if removal not in REMOVALS:
        raise ConfigError(f"Unknown removal {removal!r}; choose delete or mask.")
    if removal == "mask":
        return intervention.exchange(text, spans, dict.fromkeys(which, MASK))
    return intervention.remove(text, spans, which)


def keep(text: str, spans: Sequence[Span], which: Iterable[int], removal: Removal = "delete") -> str:
    """Return `text` with the tokens `which` alone, all others removed."""
    return remove(text, spans, set(range(len(spans))).difference(which), removal)


def read_part(text: str, max_tokens: int) -> tuple[str, tuple[Span, ...]]:
    """Return the part of `text` that a model of `max_tokens` tokens reads, and the spans of its tokens.

    What is behind the limit is cut off first: where a token is removed, nothing unread may slide in.
    """
    spans = tuple(tokenizer.token_spans(text, max_tokens))
    return text[: spans[-1][1]] if spans else "", spans
