"""The split that is the same on every run: a text's hash decides on which side it falls, so copies stay together."""

from collections.abc import Sequence

import mmh3
import numpy as np
from numpy.typing import NDArray

from textcls.tokenizer import tokenize

SPLIT_SEED = 2021
PARTS = 2**32


def held_out_mask(texts: Sequence[str], labels: NDArray[np.int64], share: float) -> NDArray[np.bool_]:
    """Return which texts are held out: about `share` of them, but never the only text of a label.

    Texts count as copies when their tokens are the same.
    """
    limit = share * PARTS
    mask = np.array([mmh3.hash(" ".join(tokenize(t)), SPLIT_SEED, signed=False) < limit for t in texts], np.bool_)
    kept = np.bincount(labels[~mask], minlength=labels.max(initial=0) + 1)
    return mask & (kept[labels] > 0)
