"""Turn an answer in JSON into a probability for each label, using the probabilities of its tokens if available.

If a text may have several labels, an answer has a boolean for each: its probability is that of `true` against `false`
at the token with which it was written.

An answer is written token by token. At each token of the label's name the model might have continued differently: each
such beginning is shared equally among the labels that continue in this way, and the written one has the product of its
tokens. Tokens are bytes: one may be part of a character.
"""

import json
import math
import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from statistics import fmean
from typing import Any, Final, NamedTuple

from textcls.annotation.prompt import FIELD, Prompt

_VALUE: Final = re.compile(rb'"%b"\s*:\s*"' % FIELD.encode())


class Token(NamedTuple):
    """A token of an answer, its log-probability, and those of the alternatives."""

    data: bytes
    logprob: float
    others: Sequence[tuple[bytes, float]] = ()


def of_answer(content: str, tokens: Sequence[Token], prompt: Prompt) -> list[float] | None:
    """Return the probability of each label from an answer; None if it names none of the labels, or is not an answer.

    Args:
        content: the content of the answer.
        tokens: the tokens of the whole answer; without any, the answer counts as certain.
        prompt: what was asked.
    """
    if prompt.several:
        truths = truths_of(content, prompt.names)
        return None if truths is None else of_truths(truths, tokens)
    label = label_of(content, prompt.names)
    if label is None:
        return None
    return of_tokens(label, tokens, prompt.names) if tokens else certain(label, prompt.names)


def label_of(content: str, labels: Sequence[str]) -> str | None:
    """Return the label of an answer, in whatever case; None if it is none of these, or not an answer."""
    given = _object(content).get(FIELD)
    if not isinstance(given, str) or given in labels:
        return given if isinstance(given, str) else None
    alike = [label for label in labels if label.casefold() == given.strip().casefold()]
    return alike[0] if len(alike) == 1 else None


def truths_of(content: str, labels: Sequence[str]) -> dict[str, bool] | None:
    """Return whether each label applies to the text according to an answer; None if it does not cover all labels."""
    answer = _object(content)
    found = {name: value for name in labels if isinstance(value := answer.get(name), bool)}
    return found if len(found) == len(labels) else None


def _object(content: str) -> Mapping[str, Any]:
    """Return the object in an answer, which may be preceded by the model's thinking, and enclosed in a fence."""
    answer = content.rpartition("</think>")[2]
    try:
        found = json.loads(answer[answer.find("{") : answer.rfind("}") + 1])
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def of_truths(truths: Mapping[str, bool], tokens: Sequence[Token]) -> list[float]:
    """Return the probability of each label from an answer that says whether it applies to the text.

    Args:
        truths: whether each label applies.
        tokens: the tokens of the whole answer; without any, the answer counts as certain.
    """
    content = b"".join(token.data for token in tokens)
    begins = [*accumulate((len(token.data) for token in tokens), initial=0)]
    found = []
    for name, truth in truths.items():
        written = [*re.finditer(rb'"(?:%b)\s*:\s*' % b"|".join(map(re.escape, _spellings(name))), content)]
        likely = float(truth)
        if written and written[-1].end() < len(content):
            at = written[-1].end()
            number = bisect_right(begins, at) - 1
            likely = _truth(tokens[number], content[begins[number] : at], likely)
        found.append(likely)
    return found


def _truth(token: Token, before: bytes, said: float) -> float:
    """Return the probability of `true` against that of `false` if a token, after `before`, begins one of them."""
    mass = {b"true": 0.0, b"false": 0.0}
    for data, logprob in {token.data: token.logprob, **dict(token.others)}.items():
        begun = data[len(before) :] if data.startswith(before) else b""
        for word in mass:
            if begun and (word.startswith(begun) or begun.startswith(word)):
                mass[word] += _probability(logprob)
    total = sum(mass.values())
    return mass[b"true"] / total if total > 0 else said


def certain(label: str, labels: Sequence[str]) -> list[float]:
    """Return 1 for the label and 0 for all others: nothing more is known."""
    return [float(name == label) for name in labels]


def mean(answers: Sequence[Sequence[float]]) -> list[float]:
    """Return the mean of several answers, for each label separately."""
    return [fmean(of_label) for of_label in zip(*answers, strict=True)]


def of_tokens(label: str, tokens: Sequence[Token], labels: Sequence[str]) -> list[float]:
    """Return the probability of each label from the tokens of an answer.

    Args:
        label: the label that was answered.
        tokens: the tokens of the whole answer.
        labels: the possible labels.
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
    """Return the spellings of a name in JSON, without the quote before it."""
    return json.dumps(name, ensure_ascii=False)[1:].encode(), json.dumps(name)[1:].encode()


def _meant(said: bytes, spellings: dict[str, tuple[bytes, bytes]]) -> Sequence[str]:
    """Return the labels that may follow what has been written since the field's name."""
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
    """Yield each token that writes the last value of the field, with what precedes it since the field's name."""
    content = b"".join(token.data for token in tokens)
    values = list(_VALUE.finditer(content))
    if not values:
        return
    begin, first = values[-1].span()
    closed = re.compile(rb'(?:[^"\\]|\\.)*"', re.DOTALL).match(content, first)
    last = closed.end() if closed is not None else len(content)
    at = 0
    for token in tokens:
        # The quote before the name may be a separate token, whose alternatives include the beginning of a name.
        if at + len(token.data) >= first and begin <= at < last:
            yield content[begin:at], token
        at += len(token.data)
