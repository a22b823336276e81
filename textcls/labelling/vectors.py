"""Texts as vectors without a model: hashed TF-IDF of words and pairs, folded into a few hundred numbers.

The features are those that models read (`textcls.model.features`). Each is added with a sign to one number of the
vector, chosen by its hash (Weinberger et al. 2009, arXiv 0902.2206), so that inner products are approximately those of
TF-IDF vectors.

Shapes: R texts, F width.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from textcls.model.features import Uint32, bigram_hashes, word_hashes
from textcls.model.tokenizer import tokenize

Float32 = NDArray[np.float32]
WIDTH: Final = 512
# Further tokens of a text say little more about its subject.
MOST_TOKENS: Final = 512
_BUCKETS: Final = 1 << 20
_GOLDEN: Final = np.uint64(0x9E3779B97F4A7C15)


def text_vectors(texts: Sequence[str]) -> Float32:
    """Return the vector of each text [R, F], of length 1, or 0 without a token."""
    features, counts, lengths = [np.zeros(0, np.uint32)], [np.zeros(0, np.int64)], []
    for text in texts:
        unique, count = np.unique(_features(text), return_counts=True)
        features.append(unique)
        counts.append(count)
        lengths.append(len(unique))
    feature = np.concatenate(features)
    row = np.repeat(np.arange(len(texts)), lengths)
    bucket = feature % np.uint32(_BUCKETS)
    texts_with = np.bincount(bucket, minlength=_BUCKETS)
    value = (1 + np.log(np.concatenate(counts))) * np.log(1 + len(texts) / np.maximum(texts_with[bucket], 1))
    mixed = feature.astype(np.uint64) * _GOLDEN
    column = ((mixed >> np.uint64(40)) % np.uint64(WIDTH)).astype(np.int64)
    sign = np.where(mixed >> np.uint64(33) & np.uint64(1), 1.0, -1.0)
    vector_RF = np.bincount(row * WIDTH + column, weights=value * sign, minlength=len(texts) * WIDTH)
    vector_RF = vector_RF.reshape(len(texts), WIDTH)
    length_R1 = np.linalg.norm(vector_RF, axis=1, keepdims=True)
    return (vector_RF / np.where(length_R1 > 0, length_R1, 1)).astype(np.float32)


def _features(text: str) -> Uint32:
    word = word_hashes(tokenize(text)[:MOST_TOKENS])
    return np.concatenate([word, bigram_hashes(word[:-1], word[1:])])
