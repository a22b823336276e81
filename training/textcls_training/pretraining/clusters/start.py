"""The initial clusters: k-means on the first singular vectors of the texts' words and bigrams.

From random weights the objective remains with all texts equally in all clusters, or finds poor ones
(training/README.md), so it is given initial clusters. Weights are the square of the usual idf: frequent words, which a
classifier learns from its labels to ignore, would otherwise fill the first singular vectors.

Shapes: R texts, V rows of features, D singular vectors, T types, E width of a word's vector.
"""

import warnings
from typing import Final

import numpy as np
from scipy import sparse
from sklearn.cluster import KMeans
from sklearn.decomposition import TruncatedSVD
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import normalize
from threadpoolctl import threadpool_limits

from textcls.errors import InputError
from textcls.model.features import FeatureConfig
from textcls_training.data.arrays import Float32, Int64
from textcls_training.data.corpus import Corpus
from textcls_training.data.feature_space import FeatureSpace
from textcls_training.pretraining.mean_vectors import mean_vectors
from textcls_training.vectors.word_vectors import WordVectors

# Singular vectors per cluster, and their maximum number.
VECTORS_A_CLUSTER: Final = 2
MOST_VECTORS: Final = 64
# The power of the idf.
POWER: Final = 2.0
# The weight of the means of word vectors relative to the singular vectors, both of length 1.
MEANS_COUNT: Final = 1.5
# The number of starts of k-means, the best of which counts.
BEGINNINGS: Final = 4
# A feature of only one text connects nothing.
LEAST_TEXTS: Final = 2


def first_clusters(corpus: Corpus, clusters: int, seed: int, words: WordVectors | None = None) -> Int64:
    """Return the number of the initial cluster of each text of `corpus` [R].

    Args:
        corpus: the texts.
        clusters: how many there are.
        seed: the seed of the singular vectors and of k-means.
        words: vectors of words, whose means also distinguish texts.

    Raises:
        InputError: the texts share too few words to be distinguished.
    """
    weight_RV = _weighted(_counts(corpus))
    vectors = min(VECTORS_A_CLUSTER * clusters, MOST_VECTORS, min(weight_RV.shape) - 1)
    if vectors < 1:
        raise InputError("The texts share too few words to be clustered; give more texts.")
    # Sums over many numbers depend on the number of threads that share them.
    with threadpool_limits(1):
        vector_RD = normalize(TruncatedSVD(vectors, random_state=seed % 2**32).fit_transform(normalize(weight_RV)))
        if words is not None:
            vector_RD = np.hstack([vector_RD, MEANS_COUNT * _means(corpus, words)])
        with warnings.catch_warnings():
            warnings.simplefilter(
                "ignore", ConvergenceWarning
            )  # With fewer distinct texts than clusters some are empty.
            found = KMeans(clusters, n_init=BEGINNINGS, random_state=seed % 2**32).fit(vector_RD)
    return np.asarray(found.labels_, np.int64)


def _means(corpus: Corpus, words: WordVectors) -> Float32:
    """Return the mean vector of each text's words [R, E], minus that of all texts, and of length 1."""
    mean_RE = mean_vectors(corpus, words)
    centred_RE: Float32 = normalize(mean_RE - mean_RE.mean(0))
    return centred_RE


def _counts(corpus: Corpus) -> sparse.csr_array:
    """Return how often each word and bigram occurs in each text [R, V]."""
    space = FeatureSpace.fit(corpus, FeatureConfig(bigrams=True, ngram_sizes=()))
    encoded = space.encode(corpus)
    text = np.repeat(np.arange(len(corpus)), corpus.lengths())
    pair_text = np.repeat(np.arange(len(corpus)), corpus.lengths() + 1)
    row = np.concatenate([space.word_rows(corpus.types)[corpus.token, 0], encoded.sequence_row[0]])
    count = np.ones(len(row), np.float32)
    found_RV = sparse.csr_array(
        (count, (np.concatenate([text, pair_text]), row)), shape=(len(corpus), len(space.count))
    )
    found_RV.sum_duplicates()
    return found_RV


def _weighted(count_RV: sparse.csr_array) -> sparse.csr_array:
    """Return (1 + log count) idf^2 of the features that several texts share."""
    texts_V = np.bincount(count_RV.indices, minlength=count_RV.shape[1])
    shared_V = texts_V >= LEAST_TEXTS
    shared_V[0] = False  # Row 0 is not a feature.
    idf_V = np.log(count_RV.shape[0] / np.maximum(texts_V, 1)) ** POWER
    weight_RV = count_RV.copy()
    weight_RV.data = (1 + np.log(count_RV.data)) * idf_V[count_RV.indices].astype(np.float32)
    return weight_RV[:, np.flatnonzero(shared_V)]
