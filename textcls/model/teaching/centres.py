"""Many vectors of a label as a few support rows: the means of clusters, by spherical k-means (Dhillon and Modha 2001).

Means rather than texts: the mean of several is closer to the next text than any of them. Nothing is random: the first
centre is the vector closest to the mean of all, each further one the vector farthest from those before it.

Shapes: N vectors, F width, K centres.
"""

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

Float32 = NDArray[np.float32]
Int64 = NDArray[np.int64]
_PASSES: Final = 10
# Up to this many vectors, each is a centre; of more, there are this many means.
MOST_SINGLE: Final = 20
MEANS: Final = 10


class Centres(NamedTuple):
    """Centres of length 1 [K, F], the number of the vector closest to each [K], and how many each is the mean of."""

    centre_KF: Float32
    nearest_K: Int64
    size_K: Int64


def centres(vector_NF: Float32, single: int = MOST_SINGLE, means: int = MEANS) -> Centres:
    """Return the centres of vectors of length 1.

    Args:
        vector_NF: the vectors.
        single: up to this many vectors, each is its own centre.
        means: the largest number of centres of more vectors, each the mean of those closest to it.
    """
    number = len(vector_NF)
    if number <= single:
        return Centres(vector_NF, np.arange(number), np.ones(number, np.int64))
    centre_KF = vector_NF[_far_apart(vector_NF, means)]
    cluster_N = np.zeros(0, np.int64)
    for _ in range(_PASSES):
        before, cluster_N = cluster_N, (vector_NF @ centre_KF.T).argmax(1)
        if np.array_equal(before, cluster_N):
            break
        centre_KF = _means(vector_NF, cluster_N, len(centre_KF))
    used_K, cluster_N, size_K = np.unique(cluster_N, return_inverse=True, return_counts=True)
    centre_KF = centre_KF[used_K]
    cosine_NK = np.where(cluster_N[:, None] == np.arange(len(used_K)), vector_NF @ centre_KF.T, -2)
    return Centres(centre_KF, cosine_NK.argmax(0), size_K)


def _far_apart(vector_NF: Float32, most: int) -> list[int]:
    chosen = [int((vector_NF @ vector_NF.mean(0)).argmax())]
    nearest_N = vector_NF @ vector_NF[chosen[0]]
    while len(chosen) < most:
        chosen.append(int(nearest_N.argmin()))
        nearest_N = np.maximum(nearest_N, vector_NF @ vector_NF[chosen[-1]])
    return chosen


def _means(vector_NF: Float32, cluster_N: Int64, clusters: int) -> Float32:
    """Return the mean of each cluster, scaled to length 1; for an empty one zero, which is closest to no vector."""
    sum_KF = np.zeros((clusters, vector_NF.shape[1]), np.float32)
    np.add.at(sum_KF, cluster_N, vector_NF)
    length_K1 = np.linalg.norm(sum_KF, axis=1, keepdims=True)
    return np.asarray(sum_KF / np.where(length_K1 > 0, length_K1, np.float32(1)), np.float32)
