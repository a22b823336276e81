"""Human rationales: what people have marked in a text as the reason for its label, read from a table."""

import json
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from textcls import tokenizer
from textcls.errors import InputError

# Where the spans of a rationale begin and end in a text, in characters.
Spans = tuple[tuple[int, int], ...]


def parse(cell: object, text: str, where: str) -> Spans:
    """Return the rationale that a field of a table stands for; of an empty field, no spans.

    Args:
        cell: either spans of characters `[[3, 7], [16, 22]]` or words and phrases of the text `["charged twice"]`,
            each of which is marked wherever it stands; a list, or one as JSON.
        text: the text that is marked.
        where: names the field in errors.

    Raises:
        InputError: it is neither, or it marks what the text does not have.
    """
    found = _list(cell) if isinstance(cell, str) else () if cell is None else cell
    if not isinstance(found, list | tuple):
        shown = repr(cell if isinstance(cell, str) else str(cell))
        raise InputError(f'{where}: a rationale is a JSON list, [[3, 7]] or ["a phrase"], not {shown[:60]}.')
    return tuple(span for mark in found for span in _spans(mark, text, where))


def _list(cell: str) -> object:
    try:
        return json.loads(cell) if cell.strip() else ()
    except (ValueError, RecursionError):
        return None


def token_flags(texts: Sequence[str], rationales: Sequence[Spans], max_tokens: int) -> NDArray[np.bool_]:
    """Return one flag for each of the first `max_tokens` tokens of all texts: whether a span touches it."""
    flags = [np.zeros(0, np.bool_)]
    for text, spans in zip(texts, rationales, strict=True):
        flags.append(_text_flags(text, spans, max_tokens))
    return np.concatenate(flags)


def _text_flags(text: str, spans: Spans, max_tokens: int) -> NDArray[np.bool_]:
    token = np.array([*tokenizer.token_spans(text, max_tokens)], np.int64).reshape(-1, 1, 2)
    span = np.array(spans, np.int64).reshape(1, -1, 2)
    touched = (token[..., 0] < span[..., 1]) & (span[..., 0] < token[..., 1])
    return np.asarray(touched.any(1))


def _spans(mark: object, text: str, where: str) -> Spans:
    """Return the spans of one entry of a rationale: those of a phrase are wherever it stands."""
    match mark:
        case [int(start), int(end)] if 0 <= start < end <= len(text):
            return ((start, end),)
        case [int(), int()]:
            raise InputError(f"{where}: the text of {len(text)} characters has no span {mark}.")
        case str(phrase) if phrase:
            return _occurrences(phrase, text, where)
    raise InputError(f"{where}: {mark!r} is neither a span of characters, such as [3, 7], nor a phrase of the text.")


def _occurrences(phrase: str, text: str, where: str) -> Spans:
    """Return where all tokens of a phrase stand one behind another."""
    words = tokenizer.tokenize(phrase)
    spans = [*tokenizer.token_spans(text)]
    tokens = tokenizer.tokenize(text)
    starts = [i for i in range(len(tokens) - len(words) + 1) if tokens[i : i + len(words)] == words]
    if not words or not starts:
        raise InputError(f"{where}: the text does not contain {phrase!r}.")
    return tuple((spans[i][0], spans[i + len(words) - 1][1]) for i in starts)
