"""Steps of a training whose tables are on a device: all that a step does is done there, in one piece.

The views are read together and moved together (`JointTable`). Of the host a step takes the numbers of its texts, their
targets and the factor of the rates, and it returns its loss, which nobody has read yet; so it can be recorded
(`Recorded`), in shapes that are rounded up, so that there are few of them.

Shapes: G views, B texts, T tokens, padding counted, D width, C labels.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
import torch
from torch import Tensor

from textcls_training.data.arrays import Int64
from textcls_training.data.dataset import Dataset
from textcls_training.data.feature_space import FeatureSpace
from textcls_training.fit.loss import Loss
from textcls_training.fit.optim import AdamWGroup
from textcls_training.fit.recorded import Given, Recorded
from textcls_training.fit.view_learner import ViewLearner
from textcls_training.models.device_table import BatchShape, DeviceTable
from textcls_training.models.hashed_embedding import HashedEmbedding

# Sizes to each doubling, and the least one: what is rounded up is computed in vain.
TOKEN_SIZES: Final = 4
LEAST_TOKENS: Final = 8
USE_SIZES: Final = 2
LEAST_USES: Final = 256


class TableOnDevice(NamedTuple):
    """The table of a view, and the features that its rows are of."""

    space: FeatureSpace
    table: DeviceTable


class DeviceStep:
    """What a step does, as one function of tensors.

    Args:
        learners: the views.
        tables: that of each.
        dataset: what is learned.
        loss: what it costs.
        dense: the other weights.
        rate: the learning rate of the tables at its highest.

    Attributes:
        table: those of all views; from now on they are parts of it.
        recorded: who does the steps.

    Raises:
        SurroundingsError: the device has no room.
    """

    def __init__(
        self,
        learners: Sequence[ViewLearner],
        tables: Sequence[TableOnDevice],
        dataset: Dataset,
        loss: Loss,
        dense: Sequence[AdamWGroup],
        rate: float,
    ) -> None:
        self._learners, self._loss, self._dense, self._rate = learners, loss, dense, rate
        self.table = DeviceTable.join([each.table for each in tables])
        self._texts = self.table.encode([each.space.encode(dataset.corpus) for each in tables])
        self.recorded = Recorded(self._step, self.table.row_VD.device)

    def __call__(self, text_B: Int64, factor: float) -> Tensor:
        """Learn from the texts numbered `text_B` at `factor` times the full rates; return their loss."""
        arrays = text_B, np.array(factor, np.float32), *self._loss.targets(text_B)
        return self.recorded(rounded_up(self._texts.shape(text_B)), arrays)

    def _step(self, shape: BatchShape, given: Given) -> Tensor:
        text_B, factor, *targets = given
        batch = self.table.batch(self._texts, text_B, shape)
        x_GBTD, squared_norm_GBT1 = self.table.read(batch)
        x_GBTD.requires_grad_()
        each = zip(self._learners, x_GBTD.unbind(), squared_norm_GBT1.unbind(), strict=True)
        logits_GBC = torch.stack([learner.classifier(*read, batch.mask_BT) for learner, *read in each])
        loss = self._loss(logits_GBC, *targets)
        loss.backward()  # type: ignore[no-untyped-call]
        assert x_GBTD.grad is not None
        self.table.update(batch, x_GBTD.grad, factor * self._rate)
        for group in self._dense:
            group.step(factor)
        return loss.detach()


def tables_on_a_device(learners: Sequence[ViewLearner]) -> list[TableOnDevice] | None:
    """Return the tables of all views; None where some view has none on a device."""
    found = []
    for learner in learners:
        embedding = learner.embedding
        if not isinstance(embedding, HashedEmbedding) or not isinstance(embedding.table, DeviceTable):
            return None
        found.append(TableOnDevice(embedding.space, embedding.table))
    return found


def rounded_up(shape: BatchShape) -> BatchShape:
    """Return a shape that is as large or larger, of which there are few."""
    tokens = _rounded_up(max(LEAST_TOKENS, shape.tokens), TOKEN_SIZES)
    return BatchShape(shape.texts, tokens, _rounded_up(max(LEAST_USES, shape.uses), USE_SIZES))


def _rounded_up(size: int, sizes: int) -> int:
    """Return the next of so many sizes between a power of two and the next."""
    step = max(1, (1 << (size - 1).bit_length()) // (2 * sizes))
    return -(-size // step) * step
