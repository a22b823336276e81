"""Work on a GPU that is recorded and replayed: CUDA graphs.

A step of a small model is some dozens of launches, each over before Python has asked for the next one. Recorded, they
go off by themselves. A recording has fixed shapes and reads its arrays where it did the first time, so that there is
one for each shape, with memory of its own for what it is given.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final, Generic, TypeVar

import torch
from numpy.typing import NDArray
from torch import Tensor

from textcls_training.models.sending import send_into, sent

# Recordings at most: each keeps some megabytes on the GPU.
MOST: Final = 64
# To record takes about as long as so much work as it comes. Whoever records after so much of it in a shape never takes
# much more than twice the time of one who knows how often the shape will come.
AFTER: Final = 8

Shape = TypeVar("Shape")
Given = Sequence[Tensor]
Replay = Callable[[], Tensor]


class Recorded(Generic[Shape]):
    """Work that is given a shape and tensors of it, and returns a tensor; its other effects are on the device, too.

    In a shape it is first done as it comes, which compiles what it runs, and recorded later.

    Attributes:
        after: how often it is done as it comes, at least once.
        most: recordings that are kept; work in other shapes is done as it comes.
    """

    def __init__(self, device: torch.device, record: Callable[[Replay], Replay] | None = None) -> None:
        """Work on `device`; `record` makes of work what does it again, without doing it. By default CUDA records."""
        self.after, self.most = AFTER, MOST
        self._device = device
        self._record = record or (cuda_graph() if device.type == "cuda" else None)
        self._met: Counter[Shape] = Counter()
        self._kept: dict[Shape, tuple[Given, Replay]] = {}

    def __call__(self, work: Callable[[Shape, Given], Tensor], shape: Shape, arrays: Sequence[NDArray[Any]]) -> Tensor:
        """Send arrays to the device, do the work with them, and return what comes of it; it is the same work always."""
        if shape not in self._kept:
            if self._record is None or not self._may_record(shape):
                return work(shape, [sent(array, self._device) for array in arrays])
            own = [torch.from_numpy(array).to(self._device, copy=True) for array in arrays]
            self._kept[shape] = own, self._record(partial(work, shape, own))
        given, replay = self._kept[shape]
        for tensor, array in zip(given, arrays, strict=True):
            send_into(tensor, array)
        return replay().clone()  # the next replay writes there again

    def _may_record(self, shape: Shape) -> bool:
        self._met[shape] += 1
        return self._met[shape] > self.after and len(self._kept) < self.most


def cuda_graph() -> Callable[[Replay], Replay]:
    """Return what records work as a CUDA graph, without doing it; all graphs share their memory, one runs at a time."""
    pool, stream = torch.cuda.graph_pool_handle(), torch.cuda.Stream()  # type: ignore[no-untyped-call]

    def record(work: Replay) -> Replay:
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=pool, stream=stream):
            result = work()

        def replay() -> Tensor:
            graph.replay()
            return result

        return replay

    return record
