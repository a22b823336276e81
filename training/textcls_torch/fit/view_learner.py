"""One view of texts in training with PyTorch: its embedding, its classifier, and what both read from a batch.

Shapes: B texts of a batch, T tokens of the longest one, N tokens of all, C labels, D width, S seeds.
"""

from typing import Any, NamedTuple

import torch
from torch import Tensor

from textcls_torch.fit.device import multiplies_halves, resolve_device, runs_kernels
from textcls_torch.models.classifier import ViewClassifier
from textcls_torch.models.embedding import Embedding, make_embedding
from textcls_torch.models.ops import attention as ops
from textcls_torch.models.vector_embedding import VectorEmbedding, vector_classifier
from textcls_training.config.resolve import ResolvedConfig
from textcls_training.data.arrays import Int64
from textcls_training.data.corpus import Corpus
from textcls_training.models.ensemble import VECTORS


class ViewBatch(NamedTuple):
    """Texts as one view reads them.

    Attributes:
        batch: the texts as prepared by the embedding.
        x_BTD: token vectors.
        squared_norm_BT1: squared feature norms.
        mask_BT: True at real tokens.
    """

    batch: Any
    x_BTD: Tensor
    squared_norm_BT1: Tensor
    mask_BT: Tensor

    def tensors(self, device: torch.device) -> tuple[Tensor, Tensor, Tensor]:
        """Return the tensors that the classifier reads."""
        return self.x_BTD.to(device), self.squared_norm_BT1.to(device), self.mask_BT.to(device)


class ViewLearner:
    """One view in training: its embedding and its classifier."""

    def __init__(self, embedding: Embedding, classifier: ViewClassifier, device: torch.device) -> None:
        self.embedding = embedding
        self.classifier = classifier.to(device)
        self.device = self.classifier.head.bias.device

    @classmethod
    def every(cls, corpus: Corpus, classes: int, config: ResolvedConfig) -> list["ViewLearner"]:
        """Return a new learner for each view, in the order of `TrainedModel.views`."""
        device, learners = resolve_device(config.device), []
        table_device = device if runs_kernels(config.device) else None
        for features in config.features.views():
            embedding = make_embedding(corpus, features, config, table_device)
            classifier = ViewClassifier(config.model, classes, even_attention=config.even_attention)
            if classifier.mixing is not None:
                classifier.mixing.in_bfloat16 = multiplies_halves(device)
            learners.append(cls(embedding, classifier, device))
        if config.vectors is not None:
            # Made last, so that the other views start with the same weights as without it.
            classifier = vector_classifier(config.model, config.vectors, classes)
            learners.insert(VECTORS, cls(VectorEmbedding(config.vectors), classifier, device))
        return learners

    def read(self, encoded: Any, text_B: Int64) -> ViewBatch:
        """Read the texts numbered `text_B` of those that the embedding has encoded."""
        batch = self.embedding.batch(encoded, text_B)
        x_BTD, squared_norm_BT1 = self.embedding.read(batch)
        return ViewBatch(batch, x_BTD, squared_norm_BT1, batch.mask_BT)

    def logits(self, given: ViewBatch) -> Tensor:
        """Return the logits [B, C] on the classifier's device."""
        logits_BC: Tensor = self.classifier(*given.tensors(self.device))
        return logits_BC

    def pooled(self, given: ViewBatch) -> Tensor:
        """Return the sums of the attention over texts [B, D], with a single seed."""
        values = self.classifier.mix(*given.tensors(self.device)[::2])
        _, squared_norm_BT1, mask_BT = given.tensors(self.device)
        return self.classifier.attention.pool(*values, squared_norm_BT1, mask_BT).squeeze(1)

    def rationale_loss(self, given: ViewBatch, rationale_BT: Tensor) -> Tensor:
        """Return how far attention is from human rationales, summed over the texts of a batch."""
        probability_BTS, _, _ = self.classifier.attend(*given.tensors(self.device))
        return ops.rationale_loss(probability_BTS, rationale_BT.to(self.device)).sum()

    def update(self, given: ViewBatch, rate: float) -> None:
        """Update the embedding with the gradient of the token vectors."""
        if given.x_BTD.grad is not None:
            self.embedding.update(given.batch, given.x_BTD.grad, rate)
