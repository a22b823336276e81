"""From an answer in JSON to a probability for each label, by the probabilities of its tokens where they are told.

An answer is written token by token. At each token of the label's name the model might have gone on otherwise: each
such beginning is shared among the labels that go on so, and what was written has the product of its tokens.
"""

import json
import math
from collections.abc import Sequence
from typing import Final, NamedTuple

from textcls.annotation.prompt import FIELD

_START: Final = f'"{FIELD}"'


class Token(NamedTuple):
    """A token of an answer, its log-probability, and those of others that might have stood in its place."""

    text: str
    logprob: float
    others: Sequence[tuple[str, float]] = ()


def label_of(content: str, labels: Sequence[str]) -> str | None:
    """Return the label of an answer; None if it is none of these, or no answer at all."""
    try:
        found = json.loads(content)
    except ValueError:
        return None
    label = found.get(FIELD) if isinstance(found, dict) and len(found) == 1 else None
    return label if isinstance(label, str) and label in labels else None


def of_tokens(label: str, tokens: Sequence[Token], labels: Sequence[str]) -> list[float]:
    """Return the probability of each label, by the tokens of an answer.

    Args:
        label: that was answered.
        tokens: of the whole answer.
        labels: that might have been.
    """
    written = {name: json.dumps(name, ensure_ascii=False)[1:] for name in labels}  # with the quote behind it
    found = dict.fromkeys(labels, 0.0)
    reached, so_far = 1.0, ""
    for token in _of_value(tokens):
        for text, logprob in token.others:
            begun = so_far + text
            meant = [name for name, whole in written.items() if _goes_on(whole, begun)]
            for name in meant if text != token.text else ():
                found[name] += reached * math.exp(logprob) / len(meant)
        reached *= math.exp(min(token.logprob, 0.0))
        so_far += token.text
        if so_far.startswith(written[label]):
            break
    found[label] += reached
    total = sum(found.values())
    return [found[name] / total for name in labels] if total > 0 else certain(label, labels)


def certain(label: str, labels: Sequence[str]) -> list[float]:
    """Return 1 for the label and 0 for all others: nothing more is known."""
    return [float(name == label) for name in labels]


def _goes_on(whole: str, begun: str) -> bool:
    """Say whether one begins with the other, of which a token may hold what stands behind the name, too."""
    return whole.startswith(begun) or ('"' in begun and begun.startswith(whole))


def _of_value(tokens: Sequence[Token]) -> list[Token]:
    """Return the tokens from the label's first character on."""
    said = ""
    for i, token in enumerate(tokens):
        said += token.text
        if _START not in said:
            continue
        rest = said.split(_START, 1)[1].lstrip(": \n")
        if rest == '"':
            return list(tokens[i + 1 :])
        if rest.startswith('"'):  # The quote stands in one token with the beginning of the name.
            cut = len(token.text) - len(rest) + 1
            before = token.text[:cut]
            others = [(text[cut:], logprob) for text, logprob in token.others if text.startswith(before)]
            return [token._replace(text=token.text[cut:], others=others), *tokens[i + 1 :]]
    return []
