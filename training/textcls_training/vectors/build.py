"""From raw vectors to those that training reads: usable words, fewer numbers, frequent words with less weight.

Shapes as in `textcls_training.vectors`; E width of the raw vectors.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Final

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from textcls.errors import InputError
from textcls.model import tokenizer

# The parameter a of smooth inverse frequency: a word of this relative frequency has half the weight.
SMOOTH: Final = 1e-2

Float32 = NDArray[np.float32]


def usable_words(words: Iterable[str], most: int | None = None) -> list[tuple[int, str]]:
    """Return the number of each word that texts can contain, and the word in lower case; only the first of duplicates.

    Args:
        words: as listed, the most frequent first.
        most: how many are used at most; None for all.
    """
    return list(islice(_usable(words), most))


def _usable(words: Iterable[str]) -> Iterator[tuple[int, str]]:
    seen = set()
    for number, word in enumerate(words):
        tokens = tokenizer.tokenize(word)
        if len(tokens) == 1 and tokens[0] not in seen:
            seen.add(tokens[0])
            yield number, tokens[0]


def prepared(words: Sequence[str], raw_VE: Float32, dims: int) -> tuple[list[str], Float32]:
    """Return words and vectors as expected by `file.save`.

    The mean is subtracted, principal components are kept, and frequent words get less weight: a / (a + p) (smooth
    inverse frequency, Arora et al. 2017), where p = 1 / rank, normalised to sum to 1, is the frequency by Zipf's law.

    Args:
        words: usable ones, the most frequent first.
        raw_VE: a vector for each.
        dims: components that are kept, if there are that many.

    Raises:
        InputError: there is no word, or a number is not finite.
    """
    if not len(words):
        raise InputError("No usable word was found; nothing was written.")
    if not np.isfinite(raw_VE).all():
        raise InputError(f"The vector of {words[int(np.argmin(np.isfinite(raw_VE).all(1)))]!r} is not finite.")
    x_VD = projected(centred(raw_VE), raw_VE, dims)
    rank_V = np.arange(1, len(words) + 1)
    frequency_V = 1 / rank_V / (1 / rank_V).sum()
    x_VD = (x_VD * (SMOOTH / (SMOOTH + frequency_V))[:, None]).astype(np.float32)
    return without_zeros(words, x_VD)


def without_zeros(words: Sequence[str], x_VD: Float32) -> tuple[list[str], Float32]:
    """Return the words whose vector is not zero, or so small that it becomes zero in 16 bits.

    Raises:
        InputError: there are none.
    """
    large_V = np.abs(x_VD).max(1, initial=0) > 1e-3 * np.abs(x_VD).max(initial=0)
    if not large_V.any():
        raise InputError("All vectors are alike, or zero: nothing was written.")
    return [word for word, large in zip(words, large_V, strict=True) if large], x_VD[large_V]


def centred(x_VE: Float32) -> Float32:
    """Return rows without their mean."""
    mean_E: Float32 = x_VE.mean(0, dtype=np.float64).astype(np.float32)
    return np.asarray(x_VE - mean_E)


def projected(x_XE: Float32, raw_VE: Float32, dims: int) -> Float32:
    """Return vectors along the first `dims` principal axes of `raw_VE` [X, D]; unchanged if there are no more."""
    # Sums of products depend on the number of threads that share them.
    with threadpool_limits(1):
        return x_XE if dims >= raw_VE.shape[1] else x_XE @ principal_axes(centred(raw_VE), dims)


def principal_axes(x_VE: Float32, dims: int) -> Float32:
    """Return the first `dims` principal axes [E, D] of centred rows, each turned so that its sum is positive."""
    covariance_EE = x_VE.T.astype(np.float64) @ x_VE.astype(np.float64)
    axis_ED = np.linalg.eigh(covariance_EE)[1][:, ::-1][:, :dims]
    turned_ED: Float32 = (axis_ED * np.where(axis_ED.sum(0) < 0, -1, 1)).astype(np.float32)
    return turned_ED
