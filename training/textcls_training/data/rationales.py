"""Human rationales: what annotators have marked in a text as the reason for its label, read from a table."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from textcls.errors import InputError
from textcls.model import tokenizer

# The start and end of each span of a rationale in a text, in characters.
Spans = tuple[tuple[int, int], ...]


def parse(cell: object, text: str, where: str) -> Spans:
    """Return the rationale in a field of a table; no spans for an empty field.

    Args:
        cell: spans of characters `[[3, 7], [16, 22]]`; words and phrases of the text `["charged twice"]`, each of which
            is marked wherever it occurs; a flag for each token of the text by the token rule, `[0, 0, 0, 1, 1]`; or,
            for texts tokenised differently, tokens with one list of flags per annotator, any of which counts:
            `{"tokens": ["charged", "twice"], "rationales": [[1, 1], [0, 1]]}`. Plain data, or JSON.
        text: the text that is marked.
        where: names the field in errors.

    Raises:
        InputError: it is none of these, or it marks what the text does not contain.
    """
    found = _list(cell) if isinstance(cell, str) else () if cell is None else cell
    if isinstance(found, dict):
        return _of_tokens(found, text, where)
    if isinstance(found, list | tuple) and found and all(type(flag) is int and flag in (0, 1) for flag in found):
        return _of_flags(found, [*tokenizer.token_spans(text)], "the text", where)
    if not isinstance(found, list | tuple):
        shown = repr(cell if isinstance(cell, str) else str(cell))
        raise InputError(f'{where}: a rationale is a JSON list, [[3, 7]] or ["a phrase"], not {shown[:60]}.')
    return tuple(span for mark in found for span in _spans(mark, text, where))


def _of_flags(flags: Sequence[int], spans: Sequence[tuple[int, int]], whose: str, where: str) -> Spans:
    if len(flags) != len(spans):
        raise InputError(f"{where}: {len(flags)} flags for the {len(spans)} tokens of {whose}; give one a token.")
    return tuple(span for span, flag in zip(spans, flags, strict=True) if flag)


def _of_tokens(marked: Mapping[str, Any], text: str, where: str) -> Spans:
    """Return the spans of tokens that any annotator has marked; tokens are looked up one after another."""
    tokens, flags = marked.get("tokens"), marked.get("rationales")
    if not isinstance(tokens, list) or not isinstance(flags, list) or not all(isinstance(of, list) for of in flags):
        raise InputError(
            f'{where}: a rationale is a JSON list, or an object with "tokens" and "rationales", lists of 0 and 1 by '
            "annotator."
        )
    spans, at, lowered = [], 0, tokenizer.lower(text)
    for token in map(str, tokens):
        start = lowered.find(tokenizer.lower(token), at)
        if start < 0 or not token:
            raise InputError(f"{where}: the text does not contain {token!r} where its tokens have it.")
        at = start + len(token)
        spans.append((start, at))
    return tuple(dict.fromkeys(span for one in flags for span in _of_flags(one, spans, '"tokens"', where)))


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
    """Return the spans of one entry of a rationale: for a phrase, wherever it occurs."""
    match mark:
        case [int(start), int(end)] if 0 <= start < end <= len(text):
            return ((start, end),)
        case [int(), int()]:
            raise InputError(f"{where}: the text of {len(text)} characters has no span {mark}.")
        case str(phrase) if phrase:
            return _occurrences(phrase, text, where)
    raise InputError(f"{where}: {mark!r} is neither a span of characters, such as [3, 7], nor a phrase of the text.")


def _occurrences(phrase: str, text: str, where: str) -> Spans:
    """Return where all tokens of a phrase occur consecutively."""
    words = tokenizer.tokenize(phrase)
    spans = [*tokenizer.token_spans(text)]
    tokens = tokenizer.tokenize(text)
    starts = [i for i in range(len(tokens) - len(words) + 1) if tokens[i : i + len(words)] == words]
    if not words or not starts:
        raise InputError(f"{where}: the text does not contain {phrase!r}.")
    return tuple((spans[i][0], spans[i + len(words) - 1][1]) for i in starts)
