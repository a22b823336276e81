"""What a CUDA graph does, imitated without a GPU: what is done to tensors is written down, and done again to the same.

Numbers that come from the host, shapes and rates that are not given in a tensor, are those of the recording, as in a
graph, and what waits for the device is refused (`unwaiting`). Launches of Triton run in its interpreter. Not imitated
are streams, memory that graphs share and use again, and random numbers.
"""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import _disable_current_modes
from torch.utils._pytree import tree_leaves

from tests.kernels.unwaiting import Unwaiting, unwaiting


class Tape(Unwaiting):
    """What is done to tensors while it is on."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.done: list[Callable[[], None]] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func.overloadpacket.__name__ == "lift_fresh":
            raise AssertionError("numbers of the host become a tensor, by a copy that waits for the device")
        found = super().__torch_dispatch__(func, types, args, kwargs)
        given = {leaf.untyped_storage().data_ptr() for leaf in _tensors((args, kwargs))}
        fresh = [leaf.untyped_storage().data_ptr() not in given for leaf in _tensors(found)]
        if any(fresh) or func._schema.is_mutable:
            self.done.append(lambda: _again(func, args, kwargs or {}, found, fresh))
        return found

    def replay(self) -> None:
        """Do it again."""
        with torch.no_grad(), _disable_current_modes():
            for each in self.done:
                each()


def _tensors(tree: Any) -> list[Tensor]:
    return [leaf for leaf in tree_leaves(tree) if isinstance(leaf, Tensor)]


def _again(func: Any, args: Any, kwargs: Any, found: Any, fresh: Sequence[bool]) -> None:
    anew = func(*args, **kwargs)
    for old, new, is_fresh in zip(_tensors(found), _tensors(anew), fresh, strict=True):
        if is_fresh:
            old.copy_(new)


@contextmanager
def taped() -> Iterator[Tape]:
    """Write down what is done to tensors in the block, launches too."""
    tape = Tape()
    with pytest.MonkeyPatch.context() as patch:
        for name, module in list(sys.modules.items()):
            if name.startswith("textcls_kernels.") and hasattr(module, "launch"):
                patch.setattr(module, "launch", _written_down(tape, module.launch))
        with unwaiting(tape):
            yield tape


def _written_down(tape: Tape, launch: Callable[..., None]) -> Callable[..., None]:
    def launched(*args: Any, **kwargs: Any) -> None:
        def run() -> None:
            with _disable_current_modes():
                launch(*args, **kwargs)

        run()
        tape.done.append(run)

    return launched


def recorder(state: Sequence[Tensor]) -> Callable[[Callable[[], Tensor]], Callable[[], Tensor]]:
    """Return what records work like a CUDA graph: without doing it, so that `state` is as it was before."""

    def record(work: Callable[[], Tensor]) -> Callable[[], Tensor]:
        before = [tensor.detach().clone() for tensor in state]
        with taped() as tape:
            result = work()
        for tensor, value in zip(state, before, strict=True):
            tensor.detach().copy_(value)

        def replay() -> Tensor:
            tape.replay()
            return result

        return replay

    return record
