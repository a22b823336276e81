"""Texts made of labelled ones, for a teacher to answer: parts of them, with tokens left out, and two parts in a row.

Whether they say anything nobody checks; a teacher that reads context knows what is still in them, and by its answers a
student learns what counts. Tang et al. 2019 (section 3.2) sample n-grams and mask words, too, and exchange others by
their part of speech, which needs a tagger; two parts in a row are ours.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np

from textcls.model.tokenizer import token_spans
from textcls_training.data.split import hash_of

# How much of a text a part of it has at least, and how often a token is left out.
LEAST_PART: Final = 0.4
LEFT_OUT: Final = 0.2
# So many texts are made for each that is wanted, at most: few and short ones give the same again and again.
_TRIES: Final = 10


class MadeUpText(NamedTuple):
    """A text that was made.

    Attributes:
        text: the text.
        sources: the numbers of the texts that it was made of; twice the same where it is one.
    """

    text: str
    sources: tuple[int, int]


def made_up(texts: Sequence[str], number: int, seed: int, known: Sequence[str] = ()) -> list[MadeUpText]:
    """Return so many different texts made of `texts`, or fewer where there are no more; none of them is a `known` one.

    Args:
        texts: what they are made of.
        number: how many.
        seed: the same seed and texts give the same.
        known: further texts that are not wanted again.
    """
    seen = {hash_of(text) for text in (*texts, *known)}
    found: list[MadeUpText] = []
    for made in _endless(texts, np.random.default_rng(seed), _TRIES * number):
        hashed = hash_of(made.text)
        if hashed not in seen:
            seen.add(hashed)
            found.append(made)
        if len(found) >= number:
            break
    return found


def _endless(texts: Sequence[str], random: np.random.Generator, most: int) -> Iterator[MadeUpText]:
    parts = [_segments(text) for text in texts]
    able = [i for i, segments in enumerate(parts) if len(segments) > 1]
    for _ in range(most if able else 0):
        first, second = (able[i] for i in random.integers(len(able), size=2))
        kind = random.integers(3)
        if kind == 0:
            yield MadeUpText("".join(_part(parts[first], random)).strip(), (first, first))
        elif kind == 1:
            # In the place of a token stands a space: its neighbours would else become one.
            kept = [segment if random.random() >= LEFT_OUT else " " for segment in parts[first]]
            yield MadeUpText(" ".join("".join(kept).split()) or parts[first][0].strip(), (first, first))
        else:
            made = f"{''.join(_part(parts[first], random)).strip()} {''.join(_part(parts[second], random)).strip()}"
            yield MadeUpText(made, (first, second))


def _segments(text: str) -> list[str]:
    """Return the tokens of a text, each with what stands between it and the next one."""
    starts = [start for start, _ in token_spans(text)]
    return [text[start:end] for start, end in pairwise([*starts, len(text)])]


def _part(segments: Sequence[str], random: np.random.Generator) -> Sequence[str]:
    size = max(1, round(random.uniform(LEAST_PART, 1) * len(segments)))
    start = int(random.integers(len(segments) - size + 1))
    return segments[start : start + size]
