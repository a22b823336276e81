"""The answers to rows, a chunk at a time, beside what the rows should get."""

from collections.abc import Iterable, Iterator, Mapping, Sized
from typing import Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from textcls.errors import InputError
from textcls.jobs.batch.chunks import chunked
from textcls.model.classifier import Classifier

T = TypeVar("T")


class _Row(NamedTuple, Generic[T]):
    text: str
    target: T


def pairs(rows: Iterable[tuple[str, T]]) -> Iterator[tuple[str, T]]:
    """Yield rows, each a text and what it should get.

    Raises:
        InputError: one of them is something else.
    """
    for i, row in enumerate(rows):
        if isinstance(row, str) or not isinstance(row, Sized) or len(row) != 2:
            raise InputError(f"Row {i} is not a pair of a text and what it should get.")
        text, target = row
        if not isinstance(text, str | Mapping):
            raise InputError(f"Row {i} has a text that is not a string but {type(text).__name__}.")
        yield text, target


def answers(classifier: Classifier, rows: Iterable[tuple[str, T]]) -> tuple[NDArray[np.float32], list[T]]:
    """Return the probabilities [rows, labels] of all rows, and what each should get.

    Raises:
        InputError: a row is no pair of a text and that.
    """
    chunks = [np.zeros((0, len(classifier.labels)), np.float32)]
    right: list[T] = []
    for chunk in chunked(_Row(*row) for row in pairs(rows)):
        predictions = classifier.predict([row.text for row in chunk])
        chunks.append(np.array([prediction.probabilities for prediction in predictions]))
        right += (row.target for row in chunk)
    return np.concatenate(chunks), right
