"""Work on a GPU that is recorded and replayed: CUDA graphs.

A step of a small model is some dozens of launches, each over before Python has asked for the next one. Recorded, they
go off by themselves. A recording has fixed shapes and reads its arrays where it did the first time, so that there is
one for each shape, with memory of its own for what it is given.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final, Generic, TypeVar

import torch
from numpy.typing import NDArray
from torch import Tensor

from textcls_training.models.sending import send_into, sent

# Recordings at most: each keeps some megabytes on the GPU.
MOST: Final = 64

Shape = TypeVar("Shape")
Given = Sequence[Tensor]
Replay = Callable[[], Tensor]


class Recorded(Generic[Shape]):
    """Work that is given a shape and tensors of it, and returns a tensor; its other effects are on the device, too.

    In a shape it is done as it comes for the first time, which compiles what it runs, and recorded the second time.

    Attributes:
        most: recordings that are kept; work in other shapes is done as it comes.
    """

    def __init__(
        self,
        work: Callable[[Shape, Given], Tensor],
        device: torch.device,
        record: Callable[[Replay], Replay] | None = None,
    ) -> None:
        """Do `work` on `device`; `record` does what is to be replayed later, or keeps it. By default CUDA records."""
        self._work, self._device = work, device
        self._record = record or (cuda_graph() if device.type == "cuda" else None)
        self.most = MOST
        self._met: set[Shape] = set()
        self._kept: dict[Shape, tuple[Given, Replay]] = {}

    def __call__(self, shape: Shape, arrays: Sequence[NDArray[Any]]) -> Tensor:
        """Send arrays to the device, do the work with them, and return what comes of it."""
        if shape not in self._kept and not self._may_record(shape):
            return self._work(shape, [sent(array, self._device) for array in arrays])
        if shape not in self._kept:
            self._kept[shape] = self._recording(shape, arrays)
        given, replay = self._kept[shape]
        for tensor, array in zip(given, arrays, strict=True):
            send_into(tensor, array)
        return replay().clone()  # the next replay writes there again

    def _may_record(self, shape: Shape) -> bool:
        met = shape in self._met
        self._met.add(shape)
        return met and self._record is not None and len(self._kept) < self.most

    def _recording(self, shape: Shape, arrays: Sequence[NDArray[Any]]) -> tuple[Given, Replay]:
        given = [torch.from_numpy(array).to(self._device, copy=True) for array in arrays]
        if self._record is None:
            raise TypeError("nothing records here")
        return given, self._record(lambda: self._work(shape, given))


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
