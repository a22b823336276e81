"""The answers to rows, computed in chunks, together with the expected answers."""

from collections.abc import Iterable
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from textcls.errors import InputError
from textcls.jobs.batch.chunks import chunked
from textcls.model.classifier import Classifier
from textcls.model.sequences import pairs

T = TypeVar("T")


def answers(classifier: Classifier, rows: Iterable[tuple[str, T]]) -> tuple[NDArray[np.float32], list[T]]:
    """Return the probabilities [rows, labels] of all rows, and the expected answer of each.

    Raises:
        InputError: a row is not a pair of a text and its expected answer, or there are no rows.
    """
    chunks = [np.zeros((0, len(classifier.labels)), np.float32)]
    right: list[T] = []
    for chunk in chunked(pairs(rows)):
        predictions = classifier.predict([text for text, _ in chunk])
        chunks.append(np.array([prediction.probabilities for prediction in predictions]))
        right += (target for _, target in chunk)
    if not right:
        raise InputError("There are no rows to evaluate on; a generator gives its rows once.")
    return np.concatenate(chunks), right
