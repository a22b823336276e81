"""Workers on a cluster of Ray that compute the gradients of one view: an actor each, with a copy of what is read.

With the texts of its shards a worker gets what the step before has changed: rows, and all dense weights. It answers
with gradients, rows by their numbers. So a step moves what it touches, whatever the size of the table. A worker that
dies, or whose node does, is replaced by one that begins with the table as it is; its part of that step is done again.

Shapes: P distinct rows of a step.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final, TypeVar

import numpy as np

from textcls.errors import SurroundingsError
from textcls.jobs.cluster import connected, last_line
from textcls_training.data.arrays import Int32, Int64
from textcls_training.fit.compiled.arrays import Changed, Gradient
from textcls_training.fit.compiled.shards import Read, ShardWorker
from textcls_training.fit.shards import dealt

# So many workers that die in the same step, one after the other, end the training.
ATTEMPTS: Final = 3
# Seconds after which is said what is waited for.
PATIENCE: Final = 20.0

Arrays = TypeVar("Arrays", bound=tuple[Any, ...])
Say = Callable[[str], None]


@contextmanager
def hired(read: Read, workers: int | None, shards: int, share: float, say: Say) -> Iterator["Actors"]:
    """Give workers, which end with the block.

    Args:
        read: what gradients are computed of. They see later changes of which they are told.
        workers: how many; those that find no place are waited for, which lets a cluster grow. None for as many as the
            cluster has CPUs, at most one a shard.
        shards: how many there are.
        share: of a CPU that each has.
        say: is told what a person should know meanwhile, in sentences.

    Raises:
        MissingExtraError: Ray is not installed.
        SurroundingsError: there is no cluster at the address, or workers do not start there.
    """
    with connected() as ray:
        actors = Actors(ray, read, share, say)
        try:
            actors.begin(workers or min(shards, max(1, int(ray.cluster_resources().get("CPU", 1)))))
            yield actors
        finally:
            actors.dismiss()


class CopyingWorker:
    """A `ShardWorker` with a copy of all that it reads. Ray makes an actor of it."""

    def __init__(self, read: Read) -> None:
        # What arrives lies in memory that processes share, and is not to be written to.
        weights = read.weights.zeros_like()
        weights.flat[:] = read.weights.flat
        self._read = read._replace(
            texts=_copied(read.texts), table=_copied(read.table), weights=weights, targets=_copied(read.targets)
        )
        self._worker = ShardWorker(self._read)

    def started(self) -> int:
        """Answer once the copy is there, with the number of the process."""
        return os.getpid()

    def gradients(self, changed: Changed | None, shards: Sequence[Int64]) -> list[Gradient]:
        """Take over what the step before has changed, and return the gradient of each shard."""
        if changed is not None:
            self._read.table.row_VD[changed.row_P] = changed.row_PD
            self._read.weights.flat[:] = changed.flat
        return self._worker.gradients(shards)


def _copied(arrays: Arrays) -> Arrays:
    return type(arrays)(*(np.array(each) if isinstance(each, np.ndarray) else each for each in arrays))


class Actors:
    """The workers of one view.

    Attributes:
        processes: the numbers of their processes, each on its node.
        sent: bytes of rows, weights and numbers of texts that went to them, what they began with left out.
        received: bytes of gradients that came from them.
    """

    def __init__(self, ray: Any, read: Read, share: float, say: Say) -> None:
        self._ray, self._read, self._say = ray, read, say
        self._actor = ray.remote(num_cpus=share)(CopyingWorker)
        self._actors: list[Any] = []
        self._changed: Changed | None = None
        self.processes: list[int] = []
        self.sent = self.received = 0

    def begin(self, workers: int) -> None:
        """Start workers."""
        self._actors, self.processes = self._started(workers)

    def dismiss(self) -> None:
        """End all workers."""
        for actor in self._actors:
            self._ray.kill(actor)
        self._actors.clear()

    def gradients(self, shards: Sequence[Int64]) -> list[Gradient]:
        """Return the gradient of each shard, in their order.

        Raises:
            SurroundingsError: workers die again and again.
        """
        changed, blocks = self._ray.put(self._changed), dealt(shards, len(self._actors))
        answers = [actor.gradients.remote(changed, block) for actor, block in zip(self._actors, blocks, strict=True)]
        found: list[Gradient] = []
        for i, block in enumerate(blocks):
            found += self._answer(i, answers[i], changed, block)
        self.sent += len(self._actors) * _bytes(self._changed or ()) + _bytes(shards)
        self.received += sum(map(_bytes, found))
        return found

    def changed(self, row_P: Int32) -> None:
        """Keep what has changed for the next step."""
        self._changed = Changed(row_P.copy(), self._read.table.row_VD[row_P], self._read.weights.flat.copy())

    def _answer(self, i: int, answer: Any, changed: Any, block: Sequence[Int64]) -> list[Gradient]:
        """Return what worker `i` answers; if it has died, what another does in its place."""
        for attempt in range(1, ATTEMPTS + 1):
            try:
                found: list[Gradient] = self._ray.get(answer)
            except self._ray.exceptions.RayActorError:
                if attempt == ATTEMPTS:
                    break
                self._say("A worker died, or its node; another goes on in its place.")
                self._actors[i : i + 1], self.processes[i : i + 1] = self._started(1)
                answer = self._actors[i].gradients.remote(changed, block)
            else:
                return found
        raise SurroundingsError(
            f"{ATTEMPTS} workers died one after the other, perhaps for lack of memory; give the nodes more. With "
            "--state the same command goes on from the last checkpoint."
        )

    def _started(self, number: int) -> tuple[list[Any], list[int]]:
        """Start workers with a copy of what is read as it is now; return them and the numbers of their processes.

        Raises:
            SurroundingsError: they do not start.
        """
        read = self._ray.put(self._read)
        actors = [self._actor.remote(read) for _ in range(number)]
        answers = [actor.started.remote() for actor in actors]
        _, waiting = self._ray.wait(answers, num_returns=number, timeout=PATIENCE)
        if waiting:
            cpus = self._ray.cluster_resources().get("CPU", 0)
            self._say(f"Waiting for {len(waiting)} of {number} workers; the cluster has {cpus:g} CPUs.")
        try:
            return actors, self._ray.get(answers)
        except self._ray.exceptions.RayActorError as error:
            raise SurroundingsError(
                f"The workers do not start: {last_line(error)}; install the same textcls[ray,train] on every node."
            ) from error


def _bytes(arrays: Sequence[Any]) -> int:
    return sum(each.nbytes for each in arrays if isinstance(each, np.ndarray))
