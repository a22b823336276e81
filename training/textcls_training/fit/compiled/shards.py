"""Data-parallel steps: the texts of a batch are dealt to shards, whose gradients are added in the order of the shards.

One worker and many, on this machine or on others, take the same steps to the last bit. Workers only compute gradients.
Whoever trains adds them up, keeps what the optimizers know, moves rows and weights, and so holds at every moment all
that a worker begins with.

    ShardWorker     the texts of shards -> their gradients
    Threads         workers on this machine, which read the table itself; `cluster` has those on others
    add_up          the gradients of shards -> that of the batch

Shapes: B texts of a batch, P distinct rows.
"""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple, Protocol

import numpy as np

from textcls_training.data.arrays import Int32, Int64
from textcls_training.fit.compiled.arrays import Dense, Gradient, Scratch, Table, Targets, Texts
from textcls_training.fit.compiled.step import add_rows, gradient_of
from textcls_training.fit.shards import dealt


class Read(NamedTuple):
    """What a gradient of one view is computed of; `textcls_training.fit.compiled.step` says what each is.

    Attributes:
        texts: the training texts.
        table: the rows. Of the optimizer's state is read alone whether there is any.
        weights: attention and head.
        targets: what the texts are to be answered.
        norm: whether attention is `norm`.
        scratch: room for a shard, as an example: workers make their own.
    """

    texts: Texts
    table: Table
    weights: Dense
    targets: Targets
    norm: bool
    scratch: Scratch


class Workers(Protocol):
    """Who computes the gradients of one view."""

    def gradients(self, shards: Sequence[Int64]) -> list[Gradient]:
        """Return the gradient of each shard, in their order."""

    def changed(self, row_P: Int32) -> None:
        """Take notice that these rows have changed, and the dense weights."""


class ShardWorker:
    """Computes gradients of shards: reads what others read, too, and has room of its own to write to."""

    def __init__(self, read: Read) -> None:
        self._read = read
        self._table = read.table._replace(number_V=np.zeros_like(read.table.number_V))
        self._rooms: list[tuple[Scratch, Dense]] = []

    def gradients(self, shards: Sequence[Int64]) -> list[Gradient]:
        """Return the gradient of each shard; they hold until the next are asked for, which lie in the same place."""
        while len(self._rooms) < len(shards):
            self._rooms.append((Scratch(*map(np.empty_like, self._read.scratch)), self._read.weights.zeros_like()))
        return [self._gradient_of(text_B, *room) for text_B, room in zip(shards, self._rooms, strict=False)]

    def _gradient_of(self, text_B: Int64, scratch: Scratch, gradient: Dense) -> Gradient:
        texts, _, weights, targets, norm, _ = self._read
        loss, distinct = gradient_of(texts, text_B, self._table, weights, targets, norm, scratch, gradient)
        row_P = scratch.row_P[1 : distinct + 1]
        self._table.number_V[row_P] = 0
        return Gradient(loss, row_P, scratch.grad_PD[1 : distinct + 1], gradient.flat)


class Threads:
    """Workers of this machine, a thread each: loops are compiled without the interpreter's lock."""

    def __init__(self, read: Read, number: int) -> None:
        self._workers = [ShardWorker(read) for _ in range(number)]
        self._pool = ThreadPoolExecutor(max(1, number - 1))

    def gradients(self, shards: Sequence[Int64]) -> list[Gradient]:
        """Return the gradient of each shard, in their order; the first worker is this thread."""
        blocks = dealt(shards, len(self._workers))
        others = [
            self._pool.submit(worker.gradients, block)
            for worker, block in zip(self._workers[1:], blocks[1:], strict=True)
        ]
        found = self._workers[0].gradients(blocks[0])
        for other in others:
            found += other.result()
        return found

    def changed(self, row_P: Int32) -> None:
        """Do nothing: they read what has changed."""


def add_up(gradients: Sequence[Gradient], table: Table, scratch: Scratch, total: Dense) -> tuple[float, int]:
    """Add up the gradients of shards in their order, into where `gradient_of` writes that of a batch.

    Args:
        gradients: of the shards.
        table: whose rows they are of.
        scratch: room for those of a batch.
        total: takes those of the dense weights.

    Returns:
        The loss, summed over all texts, and how many distinct rows have gradients.
    """
    loss, distinct = 0.0, 0
    total.flat[:] = 0
    for each in gradients:
        loss += each.loss
        total.flat[:] += each.flat
        distinct = add_rows(table, scratch, distinct, each.row_P, each.grad_PD)
    return loss, distinct
