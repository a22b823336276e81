"""Work on a GPU that is recorded and replayed: CUDA graphs.

A step of a small model consists of dozens of launches, each finished before Python has launched the next. Recorded,
they run without Python. A recording has fixed shapes and always reads its arrays from the same memory, so there is one
for each shape, with its own memory for its inputs.
"""

import gc
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from threading import Lock
from typing import Any, Final, Generic, TypeVar

import torch
from numpy.typing import NDArray
from torch import Tensor

from textcls_torch.models.sending import send_into, sent

# The maximum number of recordings: each takes some megabytes on the GPU.
MOST: Final = 64
# A guess of how many times the work could be done in the time that recording takes. Waiting this long never costs much
# more than twice the time of the best choice.
AFTER: Final = 8
# CUDA records for one thread at a time.
_RECORDING = Lock()

Shape = TypeVar("Shape")
Given = Sequence[Tensor]
Replay = Callable[[], Tensor]


class Recorded(Generic[Shape]):
    """Work that takes a shape and tensors of that shape, and returns a tensor; its side effects are on the device, too.

    Work in a new shape is first run unrecorded, which compiles what it runs, and recorded later.

    Attributes:
        after: how often it is run unrecorded, at least once.
        most: the most recordings that are kept; work in other shapes is run unrecorded.
    """

    def __init__(self, device: torch.device, record: Callable[[Replay], Replay] | None = None) -> None:
        """Work on `device`; `record` turns work into a function that repeats it, without running it (default: CUDA)."""
        self.after, self.most = AFTER, MOST
        self._device = device
        self._record = record or (cuda_graph() if device.type == "cuda" else None)
        self._met: Counter[Shape] = Counter()
        self._kept: dict[Shape, tuple[Given, Replay]] = {}

    def __call__(self, work: Callable[[Shape, Given], Tensor], shape: Shape, arrays: Sequence[NDArray[Any]]) -> Tensor:
        """Send arrays to the device, do the work with them, and return its result; the work must always be the same."""
        if shape not in self._kept:
            if self._record is None or not self._may_record(shape):
                return work(shape, [sent(array, self._device) for array in arrays])
            own = [torch.from_numpy(array).to(self._device, copy=True) for array in arrays]
            try:
                self._kept[shape] = own, self._record(partial(work, shape, own))
            except torch.OutOfMemoryError:
                # Graphs have memory of their own; without them there is room for unrecorded work, as there was before.
                self._kept.clear()
                self.most = 0
                return work(shape, own)
        given, replay = self._kept[shape]
        for tensor, array in zip(given, arrays, strict=True):
            send_into(tensor, array)
        return replay().clone()  # the next replay writes there again

    @property
    def recordings(self) -> int:
        """The number of recordings that are kept."""
        return len(self._kept)

    def _may_record(self, shape: Shape) -> bool:
        self._met[shape] += 1
        return self._met[shape] > self.after and len(self._kept) < self.most


def cuda_graph() -> Callable[[Replay], Replay]:
    """Return what records work as a CUDA graph without running it; graphs share memory, and run one at a time."""
    import torch._dynamo  # a first custom operator would import it within work, and what imports then holds its frames

    pool, stream = torch.cuda.graph_pool_handle(), torch.cuda.Stream()  # type: ignore[no-untyped-call]
    first = True

    def record(work: Replay) -> Replay:
        nonlocal first
        if first:
            gc.collect()  # autograd nodes left over from unrecorded work belong to another stream
            first = False
        graph = torch.cuda.CUDAGraph()
        recording = torch.cuda.graph(graph, pool=pool, stream=stream, capture_error_mode="thread_local")
        with _RECORDING, recording:
            result = _unless_full(work)
        if isinstance(result, torch.OutOfMemoryError):
            raise result

        def replay() -> Tensor:
            graph.replay()
            return result

        return replay

    return record


def _unless_full(work: Replay) -> Tensor | torch.OutOfMemoryError:
    """Return the out-of-memory error, if any, so that the recording ends properly before it is raised."""
    try:
        return work()
    except torch.OutOfMemoryError as error:
        return error
