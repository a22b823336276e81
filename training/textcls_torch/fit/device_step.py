"""Steps of a training whose tables are on a device: all of a step is done there, in one piece.

The views that learn rows are read together and moved together (`JointTable`); a view by vectors of a file has the
vectors of its texts on the device, too. From the host a step takes the numbers of its texts, their targets and the
factor of the rates, and it returns its loss without reading it; so it can be recorded (`Recorded`), in shapes that are
rounded up, so that there are few of them.

Shapes: G views, B texts, T tokens including padding, D width, C labels.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
import torch
from torch import Tensor

from textcls_torch.fit.loss import Loss
from textcls_torch.fit.optim import AdamWGroup
from textcls_torch.fit.recorded import Given, Recorded
from textcls_torch.fit.view_learner import ViewLearner
from textcls_torch.models.classifier import ViewClassifier
from textcls_torch.models.device_table import BatchShape, DeviceTable
from textcls_torch.models.device_vectors import DeviceVectors
from textcls_torch.models.fused_readout import fused_loss, fuses
from textcls_torch.models.hashed_embedding import HashedEmbedding
from textcls_torch.models.vector_embedding import VectorEmbedding
from textcls_training.data.arrays import Int64
from textcls_training.data.dataset import Dataset

# Sizes per doubling, and the smallest one: what rounding up adds is computed in vain.
TOKEN_SIZES: Final = 4
LEAST_TOKENS: Final = 8
USE_SIZES: Final = 2
LEAST_USES: Final = 256


class ReadTogether(NamedTuple):
    """What views of the same width read of a batch.

    Attributes:
        classifiers: the classifiers of the views.
        x_GBTD: token vectors, zero at padding.
        squared_norm_GBT1: squared feature norms, likewise.
    """

    classifiers: Sequence[ViewClassifier]
    x_GBTD: Tensor
    squared_norm_GBT1: Tensor


class DeviceStep:
    """A step as one function of tensors.

    Args:
        learners: the views, which `suits` accepts.
        dataset: the rows to learn.
        loss: the loss.
        dense: the weights that are not rows.
        rate: the highest learning rate of the tables.

    Attributes:
        table: the joint table of all views, whose own tables become parts of it.
        recorded: runs the steps, recorded or not.

    Raises:
        SurroundingsError: the device is out of memory.
    """

    def __init__(
        self,
        learners: Sequence[ViewLearner],
        dataset: Dataset,
        loss: Loss,
        dense: Sequence[AdamWGroup],
        rate: float,
    ) -> None:
        self._loss, self._dense, self._rate = loss, dense, rate
        corpus, device = dataset.corpus, learners[0].device
        spaces, tables = [], []
        self._with_rows: list[ViewClassifier] = []
        self._with_vectors: list[tuple[ViewClassifier, DeviceVectors]] = []
        for learner in learners:
            embedding, classifier = learner.embedding, learner.classifier
            if isinstance(embedding, VectorEmbedding):
                self._with_vectors.append((classifier, DeviceVectors(embedding.space, corpus, device)))
            elif isinstance(embedding, HashedEmbedding) and isinstance(embedding.table, DeviceTable):
                spaces.append(embedding.space)
                tables.append(embedding.table)
                self._with_rows.append(classifier)
            else:
                raise TypeError(f"{type(embedding).__name__} is not on a device")
        self.table = DeviceTable.join(tables)
        self._texts = self.table.encode([space.encode(corpus) for space in spaces])
        self.recorded: Recorded[BatchShape] = Recorded(device)

    def __call__(self, text_B: Int64, factor: float) -> Tensor:
        """Learn from the texts numbered `text_B` at `factor` times the full rates; return their loss."""
        arrays = text_B, np.array(factor, np.float32), *self._loss.targets(text_B)
        return self.recorded(self._step, rounded_up(self._texts.shape(text_B)), arrays)

    def _step(self, shape: BatchShape, given: Given) -> Tensor:
        text_B, factor, *targets = given
        for group in self._dense:
            group.forget()  # gradients left by a failed recording
        batch = self.table.batch(self._texts, text_B, shape)
        x_GBTD, squared_norm_GBT1 = self.table.read(batch)
        x_GBTD.requires_grad_()
        loss = self._loss_of(ReadTogether(self._with_rows, x_GBTD, squared_norm_GBT1), batch.mask_BT, targets)
        for classifier, vectors in self._with_vectors:
            x_BTD, squared_norm_BT1 = vectors.read(self._texts.types(text_B, batch.mask_BT), batch.mask_BT)
            read = ReadTogether([classifier], x_BTD[None], squared_norm_BT1[None])
            loss = loss + self._loss_of(read, batch.mask_BT, targets)
        loss.backward()  # type: ignore[no-untyped-call]
        assert x_GBTD.grad is not None
        self.table.update(batch, x_GBTD.grad, factor * self._rate)
        for group in self._dense:
            group.step(factor)
        return loss.detach()

    def _loss_of(self, read: ReadTogether, mask_BT: Tensor, targets: Sequence[Tensor]) -> Tensor:
        if fuses(read.classifiers, mask_BT.device, self.table.impl):
            return fused_loss(*read, mask_BT, self._loss.fused(*targets), self.table.impl)
        each = zip(read.classifiers, read.x_GBTD.unbind(), read.squared_norm_GBT1.unbind(), strict=True)
        logits_GBC = torch.stack([classifier(*of_view, mask_BT) for classifier, *of_view in each])
        return self._loss(logits_GBC, *targets)


def suits(learners: Sequence[ViewLearner]) -> bool:
    """Whether all that views read is on a device: some learn rows there, others read vectors that do not change."""
    embeddings = [learner.embedding for learner in learners]
    with_rows = [embedding for embedding in embeddings if not isinstance(embedding, VectorEmbedding)]
    on_device = [isinstance(each, HashedEmbedding) and isinstance(each.table, DeviceTable) for each in with_rows]
    return bool(on_device) and all(on_device)


def rounded_up(shape: BatchShape) -> BatchShape:
    """Return a shape that is at least as large, out of a small set of shapes."""
    tokens = _rounded_up(max(LEAST_TOKENS, shape.tokens), TOKEN_SIZES)
    return BatchShape(shape.texts, tokens, _rounded_up(max(LEAST_USES, shape.uses), USE_SIZES))


def _rounded_up(size: int, sizes: int) -> int:
    """Round `size` up to the next one, with `sizes` of them from one power of two to the next."""
    step = max(1, (1 << (size - 1).bit_length()) // (2 * sizes))
    return -(-size // step) * step
