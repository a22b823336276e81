"""The embedding by vectors: a word's vector from a file, which training reads and never changes.

What is learned is which words count (a query of the attention) and what they say (the head), some hundreds of numbers
per label: knowledge of words comes from elsewhere, so a word that training has seen once, or never, is understood by
what it has in common with others.

Shapes: B texts, T tokens of the longest one, D width, V vectors.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from textcls_torch.models.classifier import ViewClassifier
from textcls_training.config.settings import ModelConfig
from textcls_training.data.arrays import Int64
from textcls_training.data.corpus import Corpus
from textcls_training.data.vector_space import EncodedWords, VectorSpace
from textcls_training.models.constants import VECTOR_LENGTH
from textcls_training.models.ensemble import VectorView
from textcls_training.vectors.word_vectors import WordVectors


@dataclass(frozen=True, slots=True)
class VectorBatch:
    """Texts as rows: one per token [B, T], 0 at padding and for a word without a vector; and which tokens are real."""

    row_BT: Int64
    mask_BT: Tensor


class VectorEmbedding:
    """A vector for each token that the file knows, and zero for the others; nothing in it learns."""

    def __init__(self, vectors: WordVectors) -> None:
        self.space = VectorSpace.of(vectors)

    @property
    def learns(self) -> bool:
        """False: nothing changes."""
        return False

    @property
    def dense(self) -> list[Tensor]:
        """Return none: nothing changes."""
        return []

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return none: nothing changes."""
        return {}

    def encode(self, corpus: Corpus) -> EncodedWords:
        """Look up the rows of texts."""
        return self.space.encode(corpus)

    def batch(self, encoded: EncodedWords, text_B: Int64) -> VectorBatch:
        """Collect the texts numbered `text_B`, in that order."""
        type_BT, mask_BT = encoded.corpus.padded(text_B)
        return VectorBatch(np.where(mask_BT, encoded.row_of_type[type_BT], 0), torch.from_numpy(mask_BT))

    @torch.no_grad()
    def read(self, batch: VectorBatch) -> tuple[Tensor, Tensor]:
        """Return token vectors [B, T, D] and squared feature norms [B, T, 1], both zero at padding."""
        # A tensor allocated by PyTorch: the last bit of products may depend on where NumPy puts an array in memory.
        x_BTD = torch.from_numpy(self.space.vectors_of(batch.row_BT)) * VECTOR_LENGTH
        weight_BT1 = torch.from_numpy(self.space.weight[batch.row_BT]).unsqueeze(2)
        return x_BTD, weight_BT1.square()

    def update(self, batch: VectorBatch, grad_BTD: Tensor, rate: float) -> None:
        """Leave everything as it is."""

    def view(self, classifier: ViewClassifier) -> VectorView:
        """Return the rows, followed by the trained classifier."""
        return VectorView(self.space, VECTOR_LENGTH, classifier)


def vector_classifier(config: ModelConfig, vectors: WordVectors, labels: int) -> ViewClassifier:
    """Return the classifier of the view by vectors, in which all words initially count the same and say nothing.

    Args:
        config: the configuration of the other views.
        vectors: the vectors that it reads.
        labels: the number of labels.
    """
    return ViewClassifier(config.of_vectors(vectors.dim), labels, from_zero=True)
