"""The maths of prototypes: the vector of a text from several parts, and its similarity to the labels of support rows.

`textcls.model.teaching.scores` has the formula in NumPy, with its source. Shapes: B texts, T tokens, F entries of a
vector, C labels, K the most support rows of any label.
"""

from typing import NamedTuple

import torch
from torch import Tensor

# The smallest length to divide by.
LEAST_LENGTH = 1e-12


class TextVectors(NamedTuple):
    """Vectors of texts [B, F], of length 1 or 0; and what each of their tokens adds to them [B, T, F]."""

    vector_BF: Tensor
    token_BTF: Tensor


class PrototypeScores(NamedTuple):
    """Cosines [B, C], attention over support rows [B, C, K], and the prototypes of each text, of length 1 [B, C, F]."""

    cosine_BC: Tensor
    attention_BCK: Tensor
    prototype_BCF: Tensor


def text_vectors(token_BTF: Tensor, factor_F: Tensor) -> TextVectors:
    """Sum tokens, and normalise the sums to length 1.

    Args:
        token_BTF: weighted vectors of tokens, zero at padding.
        factor_F: the weight of each entry: that of its part.
    """
    token_BTF = token_BTF * factor_F
    sum_BF = token_BTF.sum(1)
    length_B1 = sum_BF.square().sum(1, keepdim=True).sqrt().clamp_min(LEAST_LENGTH)
    return TextVectors(sum_BF / length_B1, token_BTF / length_B1.unsqueeze(1))


def prototype_scores(vector_BF: Tensor, support_CKF: Tensor, real_CK: Tensor, scale: float) -> PrototypeScores:
    """Compare texts with labels; see `textcls.model.teaching.scores.scores`."""
    cosine_BCK = torch.einsum("bf,ckf->bck", vector_BF, support_CKF)
    attention_BCK = torch.softmax((scale * cosine_BCK).masked_fill(~real_CK, -1e9), 2)
    prototype_BCF = torch.einsum("bck,ckf->bcf", attention_BCK, support_CKF)
    length_BC1 = prototype_BCF.square().sum(2, keepdim=True).sqrt().clamp_min(LEAST_LENGTH)
    cosine_BC = (attention_BCK * cosine_BCK).sum(2) / length_BC1.squeeze(2)
    return PrototypeScores(cosine_BC, attention_BCK, prototype_BCF / length_BC1)
