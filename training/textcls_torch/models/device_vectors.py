"""The vectors of a file on a device, for texts that are there: one per type of a corpus, as they do not learn.

Shapes: B texts, T tokens of the longest one, Y types, D width.
"""

import numpy as np
import torch
from torch import Tensor

from textcls_torch.models.device_table import brought, room_for
from textcls_training.data.corpus import Corpus
from textcls_training.data.vector_space import VectorSpace
from textcls_training.models.constants import VECTOR_LENGTH


class DeviceVectors:
    """What `VectorEmbedding` reads from a corpus, on a device."""

    def __init__(self, space: VectorSpace, corpus: Corpus, device: torch.device) -> None:
        """Copy the vectors of the types of a corpus to a device.

        Raises:
            SurroundingsError: it is out of memory.
        """
        row_Y = space.encode(corpus).row_of_type.astype(np.int64)
        with room_for("the vectors"):
            self._vector_YD = brought(space.vectors_of(row_Y), device) * VECTOR_LENGTH
            self._squared_norm_Y = brought(space.weight[row_Y], device).square()

    def read(self, type_BT: Tensor, mask_BT: Tensor) -> tuple[Tensor, Tensor]:
        """Return token vectors [B, T, D] and squared feature norms [B, T, 1], both zero at padding."""
        mask_BT1 = mask_BT.unsqueeze(2)
        x_BTD = torch.where(mask_BT1, self._vector_YD[type_BT], 0)
        return x_BTD, torch.where(mask_BT1, self._squared_norm_Y[type_BT].unsqueeze(2), 0)
