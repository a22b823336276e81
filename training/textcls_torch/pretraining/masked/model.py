"""Predict what is expected in place of the masked tokens of a text.

A masked token begins as the bag of words around it: the sum of the text's other vectors, normalised as `norm` attention
with equal scores would be. A mixing layer, if there is one, sees the text with these sums in the masked places and adds
what follows from order and neighbourhood:

    h_m = bag + mixing(x)_m        bag = sum_t x_t / sqrt(sum_t q_t) over the tokens that are not masked

There is no position embedding: the mixing layers that see order see it by distance.

Shapes: B texts, T tokens of the longest one, D width, M masked tokens of a batch, text by text.
"""

import torch
from torch import Tensor, nn

from textcls_torch.models.classifier import MixingLayer
from textcls_torch.models.initial_weights import init_weights
from textcls_torch.models.mixing import MIXERS
from textcls_training.models.constants import TINY

GATE = 0.1


class MaskedModel(nn.Module):
    """The weights between the vectors of a text and the contexts of its masked tokens.

    Args:
        dim: width D.
        mixing: name of the mixing layer.
    """

    def __init__(self, dim: int, mixing: str) -> None:
        super().__init__()
        make_mixer = MIXERS[mixing]
        mixer = make_mixer(dim, dim) if make_mixer else None
        self.mixing = MixingLayer(dim, dim, mixer, GATE, teaches_vectors=True) if mixer else None
        init_weights(self)

    def forward(self, x_BTD: Tensor, squared_norm_BT1: Tensor, mask_BT: Tensor, place_M: Tensor) -> Tensor:
        """Return the contexts [M, D]; nothing waits for a GPU, as the places of masked tokens are given.

        Args:
            x_BTD: token vectors, zero at padding; those of masked tokens are not read.
            squared_norm_BT1: squared feature norms.
            mask_BT: True at real tokens, which come first.
            place_M: the places of masked tokens, counted through the padded batch: b * T + t.
        """
        masked_BT = torch.zeros_like(mask_BT).flatten().index_fill(0, place_M, True).view_as(mask_BT)
        seen_BT1 = (mask_BT & ~masked_BT).unsqueeze(-1)
        norm_B11 = (squared_norm_BT1 * seen_BT1).sum(1, keepdim=True).clamp_min(TINY).sqrt()
        bag_B1D = (x_BTD * seen_BT1).sum(1, keepdim=True) / norm_B11
        begun_BTD = torch.where(masked_BT.unsqueeze(-1), bag_B1D, x_BTD)
        h_MD = begun_BTD.flatten(0, 1)[place_M]
        return h_MD if self.mixing is None else h_MD + self.mixing(begun_BTD, mask_BT).flatten(0, 1)[place_M]

    @property
    def gate(self) -> float | None:
        """Return the largest gate of the mixing layer; None without one."""
        return None if self.mixing is None else round(float(self.mixing.gate_X.detach().abs().max()), 6)
