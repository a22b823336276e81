"""The similarity of a text to labels made of support rows: the formula in NumPy, which the saved graph repeats.

Prototypical networks (Snell et al. 2017, arXiv 1703.05175) use the mean of a label's support rows as its prototype,
which is far from all of them if a label has several topics. Here attention selects those close to the text: with q the
vector of a text and S_c the support rows of label c, all of length 1,

    a = softmax(scale * S_c q),   prototype = a S_c,   logit = bias_c + scale * cos(q, prototype)

Cosines, because plain dot products of a shallow network are so similar that their softmax is a plain mean; no matrix
after the attention, so that prototypes stay where texts are; no dropout of support rows, since there are few.

Shapes: B texts, C labels, F width, K support rows of the label that has most.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Float32 = NDArray[np.float32]
# The smallest length to divide by.
TINY = 1e-12


class Scores(NamedTuple):
    """Cosines to the prototypes [B, C], and the attention over the support rows of each label [B, C, K]."""

    cosine_BC: Float32
    attention_BCK: Float32


def padded(support_SF: Float32, count_C: NDArray[np.int64]) -> tuple[Float32, NDArray[np.bool_]]:
    """Return support rows, given label by label, as [C, K, F] padded with zeros; and which are real [C, K]."""
    real_CK = np.arange(count_C.max(initial=1)) < count_C[:, None]
    support_CKF = np.zeros((*real_CK.shape, support_SF.shape[1]), np.float32)
    support_CKF[real_CK] = support_SF
    return support_CKF, real_CK


def scores(
    query_BF: Float32, support_CKF: Float32, real_CK: NDArray[np.bool_], scale: float, leave_out_BCK: object = None
) -> Scores:
    """Return the similarity of texts to labels.

    Args:
        query_BF: vectors of texts, of length 1 or 0.
        support_CKF: see `padded`.
        real_CK: see `padded`.
        scale: the factor of the cosines in the softmax.
        leave_out_BCK: support rows that a text is not to be compared with, such as itself; None for none.
    """
    counts_BCK = np.broadcast_to(real_CK, (len(query_BF), *real_CK.shape))
    if leave_out_BCK is not None:
        counts_BCK = counts_BCK & ~np.asarray(leave_out_BCK)
    cosine_BCK = np.einsum("bf,ckf->bck", query_BF, support_CKF, optimize=True)
    score_BCK = np.where(counts_BCK, scale * cosine_BCK, -np.inf)
    largest_BC1 = np.where(counts_BCK.any(2, keepdims=True), score_BCK.max(2, keepdims=True), 0)
    power_BCK = np.exp(score_BCK - largest_BC1)
    attention_BCK = power_BCK / np.maximum(power_BCK.sum(2, keepdims=True), TINY)
    prototype_CBF = attention_BCK.transpose(1, 0, 2) @ support_CKF
    length_BC = np.linalg.norm(prototype_CBF, axis=2).T
    cosine_BC = (attention_BCK * cosine_BCK).sum(2) / np.maximum(length_BC, TINY)
    return Scores(cosine_BC.astype(np.float32), attention_BCK.astype(np.float32))
