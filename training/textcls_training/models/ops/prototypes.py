"""The maths of prototypes: the vector of a text out of several parts, and how near it is to labels of support rows.

`textcls.teaching.scores` has the formula in NumPy, with its source. Shapes: B texts, T tokens, P parts of a vector, F
width of all parts together, C labels, K support rows of the label that has most.
"""

from typing import NamedTuple

import torch
from torch import Tensor

# The smallest length that is divided by; parts of which are shorter count for nothing.
LEAST_LENGTH = 1e-12


class TextVectors(NamedTuple):
    """Vectors of texts [B, F], of length 1 or 0; and what their tokens [B, T, F] add to them."""

    vector_BF: Tensor
    token_BTF: Tensor


class PrototypeScores(NamedTuple):
    """Cosines [B, C], attention over support rows [B, C, K], and the prototypes of each text, of length 1 [B, C, F]."""

    cosine_BC: Tensor
    attention_BCK: Tensor
    prototype_BCF: Tensor


def text_vectors(token_BTF: Tensor, member_FP: Tensor, weight_P: Tensor) -> TextVectors:
    """Sum up tokens; bring each part to the length of the root of its weight, and all parts together to 1.

    The cosine of two such vectors is the mean of the cosines of their parts by weight, where none is missing.

    Args:
        token_BTF: weighted vectors of tokens, zero at padding.
        member_FP: 1 where an entry belongs to a part, else 0.
        weight_P: of each part.
    """
    sum_BF = token_BTF.sum(1)
    length_BP = (sum_BF.square() @ member_FP).sqrt()
    factor_BF = (weight_P.sqrt() / length_BP.clamp_min(LEAST_LENGTH)) @ member_FP.T
    scaled_BF = sum_BF * factor_BF
    length_B1 = scaled_BF.square().sum(1, keepdim=True).sqrt().clamp_min(LEAST_LENGTH)
    factor_BF = factor_BF / length_B1
    return TextVectors(sum_BF * factor_BF, token_BTF * factor_BF.unsqueeze(1))


def prototype_scores(vector_BF: Tensor, support_CKF: Tensor, real_CK: Tensor, scale: float) -> PrototypeScores:
    """Compare texts with labels; see `textcls.teaching.scores.scores`."""
    cosine_BCK = torch.einsum("bf,ckf->bck", vector_BF, support_CKF)
    attention_BCK = torch.softmax((scale * cosine_BCK).masked_fill(~real_CK, -1e9), 2)
    prototype_BCF = torch.einsum("bck,ckf->bcf", attention_BCK, support_CKF)
    length_BC1 = prototype_BCF.square().sum(2, keepdim=True).sqrt().clamp_min(LEAST_LENGTH)
    cosine_BC = (attention_BCK * cosine_BCK).sum(2) / length_BC1.squeeze(2)
    return PrototypeScores(cosine_BC, attention_BCK, prototype_BCF / length_BC1)
