"""Vectors of words, fitted so that their weighted sum comes close to a teacher's vector of the sentence.

A word encoded by itself gets the vector of a one-word sentence. Given sentences, the vectors can instead express what
words contribute within them. Least squares, regularised towards the old vectors:

    minimise  |A U - S|^2 + strength * |U - U0|^2

with the directions U of the words, originally U0, a row of A for each text, with the lengths of its words' vectors
scaled to length 1, and its sentence vector in S. Afterwards each word gets back its old length, which is its weight.

Shapes: T texts, V words, K of them in the texts, D width, E width of a sentence vector.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from scipy.sparse.linalg import LinearOperator, cg
from threadpoolctl import threadpool_limits

from textcls.errors import InputError
from textcls.model import tokenizer

Float32 = NDArray[np.float32]
Float64 = NDArray[np.float64]

# How strongly words are drawn to their old vectors: as much as by this many texts that contain nothing else.
STRENGTH: Final = 3.0
# How many times as long as the sums (by root mean square) sentences are assumed to be. Words of a text that point the
# same way add up to more than unrelated words. Measured (training/README.md): with the length closest to the sums,
# about half of theirs, the view learns too slowly, and is worse.
LENGTH: Final = 2.5
# When the search ends, as a share of the right side's length; and after this many steps at the latest.
_TOLERANCE: Final = 1e-4
_MOST_STEPS: Final = 200


def bag_of_words(texts: Sequence[str], words: Sequence[str], weight_V: Float64) -> csr_matrix:
    """Return the weight of each word in each text [T, V], in rows of length 1; a text without a known word is zero."""
    number = {word: i for i, word in enumerate(words)}
    counts = [_counts(text, number) for text in texts]
    start = np.cumsum([0, *map(len, counts)])
    column = np.array([word for found in counts for word in found], np.int64)
    data = np.array([count for found in counts for count in found.values()], np.float64) * weight_V[column]
    bag_TV = csr_matrix((data, column, start), shape=(len(texts), len(words)))
    length_T = np.sqrt(np.asarray(bag_TV.multiply(bag_TV).sum(1)).ravel())
    bag_TV.data /= np.repeat(np.maximum(length_T, 1e-12), np.diff(start))
    return bag_TV


def _counts(text: str, number: Mapping[str, int]) -> dict[int, int]:
    found = Counter(number[token] for token in tokenizer.tokenize(text) if token in number)
    return dict(sorted(found.items()))


def fitted(words: Sequence[str], row_VD: Float32, texts: Sequence[str], sentence_TD: Float32) -> Float32:
    """Return the vectors [V, D] of the words, fitted to sentences, with unchanged lengths.

    Args:
        words: the words.
        row_VD: their vectors, none of them zero.
        texts: the sentences.
        sentence_TD: the vector of each, along the same axes.

    Raises:
        InputError: no text contains any of the words.
    """
    length_V = np.linalg.norm(row_VD.astype(np.float64), axis=1)
    bag_TV = bag_of_words(texts, words, length_V)
    held_K = np.flatnonzero(np.diff(bag_TV.tocsc().indptr))
    if not len(held_K):
        raise InputError(
            "None of the words occurs in the texts, so vectors cannot be fitted; are they in the same language?"
        )
    found_VD: Float64 = row_VD.astype(np.float64) / length_V[:, None]
    found_VD[held_K] = drawn(bag_TV[:, held_K], found_VD[held_K], sentence_TD.astype(np.float64))
    found_VD *= (length_V / np.maximum(np.linalg.norm(found_VD, axis=1), 1e-12))[:, None]
    return np.asarray(found_VD, np.float32)


def drawn(bag_TK: csr_matrix, old_KD: Float64, sentence_TD: Float64, strength: float = STRENGTH) -> Float64:
    """Solve the least squares above by conjugate gradients on the normal equations, for all columns at once.

    Sums and sentences are compared without their means, and sentences are `LENGTH` times as long as the sums.
    """
    sum_TD = bag_TK @ old_KD
    sum_TD = sum_TD - sum_TD.mean(0)
    target_TD = sentence_TD - sentence_TD.mean(0)
    target_TD *= LENGTH * float(np.linalg.norm(sum_TD)) / max(float(np.linalg.norm(target_TD)), 1e-12)
    right_KD = bag_TK.T @ (target_TD - sum_TD)

    def product(flat: Float64) -> Float64:
        move_KD = flat.reshape(old_KD.shape)
        return np.asarray(bag_TK.T @ (bag_TK @ move_KD) + strength * move_KD).ravel()

    normal = LinearOperator((old_KD.size, old_KD.size), matvec=product, dtype=np.float64)
    # Sums of products depend on the number of threads that share them.
    with threadpool_limits(1):
        move, _ = cg(normal, right_KD.ravel(), rtol=_TOLERANCE, maxiter=_MOST_STEPS)
    return np.asarray(old_KD + move.reshape(old_KD.shape))
