"""How a token gets its vector: the interface of all embeddings, and the choice of one for a training."""

from typing import Any, Protocol

import torch
from numpy.typing import NDArray
from torch import Tensor

from textcls.model.features import FeatureConfig
from textcls_torch.models.bit_embedding import BitEmbedding
from textcls_torch.models.classifier import ViewClassifier
from textcls_torch.models.hashed_embedding import HashedEmbedding
from textcls_training.config.resolve import ResolvedConfig
from textcls_training.data.arrays import Int64
from textcls_training.data.corpus import Corpus
from textcls_training.data.feature_space import FeatureSpace
from textcls_training.models.ensemble import View


class Embedding(Protocol):
    """What training needs from an embedding, which alone knows what its `encode` and `batch` return.

    Shapes: B texts, T tokens of the longest one, D width.
    """

    @property
    def learns(self) -> bool:
        """Return whether the gradient of the token vectors is wanted."""

    @property
    def dense(self) -> list[Tensor]:
        """Return the weights that the optimizer of the dense weights updates."""

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays that `update` changes, by name."""

    def encode(self, corpus: Corpus) -> Any:
        """Prepare texts, once."""

    def batch(self, encoded: Any, text_B: Int64) -> Any:
        """Collect the texts numbered `text_B`, in that order; its `mask_BT` is True at real tokens."""

    def read(self, batch: Any) -> tuple[Tensor, Tensor]:
        """Return token vectors [B, T, D] and squared feature norms [B, T, 1], both zero at padding."""

    def update(self, batch: Any, grad_BTD: Tensor, rate: float) -> None:
        """Learn from the gradient of the token vectors."""

    def view(self, classifier: ViewClassifier) -> View:
        """Return what has been learned, followed by the classifier."""


def make_embedding(
    corpus: Corpus, features: FeatureConfig, config: ResolvedConfig, device: torch.device | None = None
) -> Embedding:
    """Return a fresh embedding of one view of the training texts, with its table on `device` if one is given.

    Raises:
        SurroundingsError: the device is out of memory.
    """
    dim, optim = config.model.dim, config.optim
    if config.model.embedding == "bits":
        return BitEmbedding(dim, optim.table_std)
    space = FeatureSpace.fit(corpus, features, config.least_buckets)
    return HashedEmbedding(space, dim, optim.table_std, optim.table_accumulator, device)
