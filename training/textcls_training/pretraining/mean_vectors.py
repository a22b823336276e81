"""Vectors of texts: the means of their word vectors.

Shapes: R texts, T types, E width of a word's vector.
"""

import numpy as np
from scipy import sparse
from sklearn.preprocessing import normalize

from textcls_training.data.arrays import Float32
from textcls_training.data.corpus import Corpus
from textcls_training.data.vector_space import VectorSpace
from textcls_training.vectors.word_vectors import WordVectors


def mean_vectors(corpus: Corpus, words: WordVectors) -> Float32:
    """Return the mean vector of each text's words [R, E], of length 1; 0 if none has a vector.

    Vectors of frequent words are shorter (`textcls_training.vectors.build`), and so count less.
    """
    space = VectorSpace.of(words)
    type_TE = space.vectors_of(space.encode(corpus).row_of_type.astype(np.int64))
    text = np.repeat(np.arange(len(corpus)), corpus.lengths())
    shape = len(corpus), len(corpus.types)
    count_RT = sparse.csr_array((np.ones(len(text), np.float32), (text, corpus.token)), shape=shape)
    mean_RE: Float32 = normalize(count_RT @ type_TE)
    return mean_RE
