"""From an answer in JSON to a probability for each label, by the probabilities of its tokens where they are told.

An answer is written token by token. At each token of the label's name the model might have gone on otherwise: each
such beginning belongs to the labels that go on so, in equal parts, and what was written has the product of its tokens.
Tokens are bytes: one may be a part of a character.
"""

import json
import math
import re
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from textcls.annotation.prompt import FIELD

_VALUE: Final = re.compile(rb'"%b"\s*:\s*"' % FIELD.encode())


class Token(NamedTuple):
    """A token of an answer, its log-probability, and those of others that might have stood in its place."""

    data: bytes
    logprob: float
    others: Sequence[tuple[bytes, float]] = ()


def label_of(content: str, labels: Sequence[str]) -> str | None:
    """Return the label of an answer; None if it is none of these, or no answer at all."""
    try:
        found = json.loads(content.strip().removeprefix("```json").removesuffix("```"))
    except (ValueError, RecursionError):
        return None
    label = found.get(FIELD) if isinstance(found, dict) else None
    return label if isinstance(label, str) and label in labels else None


def certain(label: str, labels: Sequence[str]) -> list[float]:
    """Return 1 for the label and 0 for all others: nothing more is known."""
    return [float(name == label) for name in labels]


def of_tokens(label: str, tokens: Sequence[Token], labels: Sequence[str]) -> list[float]:
    """Return the probability of each label, by the tokens of an answer.

    Args:
        label: that was answered.
        tokens: of the whole answer.
        labels: that might have been.
    """
    spellings = {name: _spellings(name) for name in labels}
    found, reached = dict.fromkeys(labels, 0.0), 1.0
    for before, token in _of_value(tokens):
        for data, logprob in token.others:
            meant = _meant(before + data, spellings) if data and data != token.data else ()
            for name in meant:
                found[name] += reached * _probability(logprob) / len(meant)
        reached *= _probability(token.logprob)
    found[label] += reached
    total = sum(found.values())
    return [found[name] / total for name in labels] if total > 0 else certain(label, labels)


def _probability(logprob: float) -> float:
    return math.exp(min(logprob, 0.0))


def _spellings(name: str) -> tuple[bytes, bytes]:
    """Return how JSON may write a name, without the quote before it."""
    return json.dumps(name, ensure_ascii=False)[1:].encode(), json.dumps(name)[1:].encode()


def _meant(said: bytes, spellings: dict[str, tuple[bytes, bytes]]) -> Sequence[str]:
    """Return the labels that may follow what has been said, from the field's name on."""
    value = _VALUE.match(said)
    begun = said[value.end() :] if value is not None else b""
    if not begun:
        return ()
    whole = [name for name, forms in spellings.items() if begun in {form[:-1] for form in forms}]
    # The end of a name may be that of a longer one, whose own token would have been another.
    return whole or [
        name for name, forms in spellings.items() if any(f.startswith(begun) or begun.startswith(f) for f in forms)
    ]


def _of_value(tokens: Sequence[Token]) -> Iterator[tuple[bytes, Token]]:
    """Yield each token that writes the last value of the field, and what stands before it from the field's name on."""
    content = b"".join(token.data for token in tokens)
    values = list(_VALUE.finditer(content))
    if not values:
        return
    begin, first = values[-1].span()
    closed = re.compile(rb'(?:[^"\\]|\\.)*"', re.DOTALL).match(content, first)
    last = closed.end() if closed is not None else len(content)
    at = 0
    for token in tokens:
        # The quote before the name may be a token by itself, whose others hold it with the beginning of a name.
        if at + len(token.data) >= first and begin <= at < last:
            yield content[begin:at], token
        at += len(token.data)
