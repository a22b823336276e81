"""What is kept of each row while a model answers and explains it."""

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from textcls import tokenizer
from textcls.data_quality.scripts import script_of
from textcls.excerpts import Excerpt, excerpt
from textcls.explanation import Explanation

# Words that are told of a wrong answer.
REASONS: Final = 3


class Answer(NamedTuple):
    """What is kept of a row.

    Attributes:
        label: the answer.
        confidence: its probability.
        tokens: how many tokens were read.
        unknown: how many of them the model does not know.
        script: that most letters of the text have.
        words: those that speak most for the answer, in lower case: over the label that the row carries, if it is wrong.
        example: where the first of them stands; None without one.
    """

    label: str
    confidence: float
    tokens: int
    unknown: int
    script: str
    words: tuple[str, ...]
    example: Excerpt | None

    @classmethod
    def of(cls, explanation: Explanation, right: str) -> "Answer":
        """Keep what is needed of the explanation of a row that carries the label `right`."""
        answered = explanation.label
        words, example = _reasons(explanation, right if right in explanation.labels and right != answered else None)
        return cls(
            label=answered,
            confidence=float(explanation.probability_values.max()),
            tokens=len(explanation.spans),
            unknown=int((~explanation.known).sum()),
            script=script_of(explanation.text),
            words=words,
            example=example,
        )


def _reasons(explanation: Explanation, against: str | None) -> tuple[tuple[str, ...], Excerpt | None]:
    values = explanation.attribution(explanation.label, against).values
    order: NDArray[np.int64] = (-values).argsort(kind="stable")
    spans: dict[str, tuple[int, int]] = {}
    for t in order.tolist():
        if values[t] <= 0 or len(spans) == REASONS:
            break
        start, end = explanation.spans[t]
        spans.setdefault(tokenizer.lower(explanation.text[start:end]), (start, end))
    words = tuple(spans)
    return words, excerpt(explanation.text, *spans[words[0]]) if words else None
