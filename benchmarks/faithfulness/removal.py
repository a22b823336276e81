"""The part of a text that a model reads, and what is said of removed tokens (`textcls.explain.intervention`)."""

from typing import Final

from textcls.explain.intervention import MASK, REMOVALS, Removal, Span, keep, remove
from textcls.model import tokenizer

__all__ = ["MASK", "REMOVALS", "SEEN_IN_TRAINING", "Removal", "Span", "keep", "read_part", "remove"]

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
