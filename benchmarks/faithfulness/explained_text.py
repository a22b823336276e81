"""A text that is explained, and the model that is asked about its variants."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from faithfulness import removal
from faithfulness.removal import Span
from textcls.model.prediction import Prediction
from textcls_training.data.arrays import Float64


class Predictor(Protocol):
    """Whatever answers texts as `textcls.Classifier` does."""

    def predict(self, texts: Sequence[str]) -> Sequence[Any]:
        """Return an answer a text, whose `probabilities` are those of the classes."""


def probabilities(model: Predictor, texts: Sequence[str]) -> Float64:
    """Return the calibrated probabilities [texts, labels]."""
    return np.array([answer.probabilities for answer in model.predict(texts)], np.float64)


@dataclass(frozen=True, eq=False)
class ExplainedText:
    """A text to explain.

    Attributes:
        row: its number among the texts that were given.
        text: the part that the model reads.
        spans: of its tokens.
        label: number of the class predicted on it, f's class j from here on.
        score: f_j(text), the probability of that class.
        empty_score: f_j of the empty text.
    """

    row: int
    text: str
    spans: tuple[Span, ...]
    label: int
    score: float
    empty_score: float


def explained_texts(model: Predictor, texts: Sequence[str], max_tokens: int) -> list[ExplainedText]:
    """Return a case for each text that has a token."""
    parts = [removal.read_part(text, max_tokens) for text in texts]
    kept = [i for i, (_, spans) in enumerate(parts) if spans]
    if not kept:
        return []
    answers: Sequence[Prediction] = model.predict([parts[i][0] for i in kept])
    (empty,) = probabilities(model, [""])
    found = []
    for i, answer in zip(kept, answers, strict=True):
        label = int(answer.probabilities.argmax())
        found.append(ExplainedText(i, *parts[i], label, float(answer.probabilities[label]), float(empty[label])))
    return found
