"""The hashed embedding: a token's vector from rows of a table, which learn; and where that table is.

Shapes: B texts, T tokens of the longest one, D width, V rows of the table, X some of these.
"""

from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor

from textcls_torch.models.classifier import ViewClassifier
from textcls_torch.models.device_table import DeviceTable
from textcls_torch.models.embedding_table import EmbeddingTable
from textcls_training.data.arrays import Int64
from textcls_training.data.corpus import Corpus
from textcls_training.data.feature_space import FeatureSpace
from textcls_training.models.ensemble import HashedView

# Only the table knows what its `encode` and `batch` return.
RowTable = EmbeddingTable | DeviceTable


class HashedEmbedding:
    """A vector for each token from rows of a table: one view of a text, and how it learns."""

    def __init__(
        self, space: FeatureSpace, dim: int, std: float, accumulator: float, device: torch.device | None = None
    ) -> None:
        """Make a fresh table, on a device if one is given.

        Raises:
            SurroundingsError: the device is out of memory.
        """
        self.space = space
        table = EmbeddingTable(space.weight, dim, std, accumulator)
        self.table: RowTable = table if device is None else DeviceTable(table, device)

    @property
    def learns(self) -> bool:
        """True: the rows learn."""
        return True

    @property
    def dense(self) -> list[Tensor]:
        """Return none: the table has its own optimizer."""
        return []

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return rows and accumulators."""
        return {"row": self.table.row_VD, "sum": self.table.sum_V}

    def encode(self, corpus: Corpus) -> Any:
        """Look up the rows of texts."""
        return self.table.encode(self.space.encode(corpus))

    def batch(self, encoded: Any, text_B: Int64) -> Any:
        """Collect the texts numbered `text_B`, in that order."""
        return self.table.batch(encoded, text_B)

    def read(self, batch: Any) -> tuple[Tensor, Tensor]:
        """Return token vectors [B, T, D] and squared feature norms [B, T, 1], both zero at padding."""
        return self.table.read(batch)

    def update(self, batch: Any, grad_BTD: Tensor, rate: float) -> None:
        """Update the rows of `batch` with the gradient of its token vectors."""
        self.table.update(batch, grad_BTD, rate)

    def view(self, classifier: ViewClassifier) -> HashedView:
        """Return what has been learned, followed by the classifier."""
        return HashedView(self.space, self.table.row_VD, classifier)
