"""What makes the host wait for a GPU, refused where there is none: it brings values there, or makes shapes of them."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

WAIT = ("local_scalar_dense", "nonzero", "unique", "masked_select", "is_nonzero", "equal", "bincount")
# Of a tensor, without an operator that could be seen.
BRING = ("numpy", "tolist", "cpu", "__array__")


class Unwaiting(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Refuses what waits."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = func.overloadpacket.__name__.lstrip("_")
        waits = name.startswith(WAIT) and name != "equal_"
        if name == "repeat_interleave":
            waits = (kwargs or {}).get("output_size") is None
        if name.startswith("index") and name != "index_select":
            waits = any(
                isinstance(each, Tensor) and each.dtype in (torch.bool, torch.uint8) for each in tree_leaves(args[1])
            )
        if waits:
            raise AssertionError(f"{func.name()} waits for the device")
        return func(*args, **(kwargs or {}))


@contextmanager
def unwaiting(mode: Unwaiting | None = None) -> Iterator[None]:
    """Refuse in a block what waits."""

    def refuse(tensor: Tensor, *_args: Any, **_kwargs: Any) -> None:
        raise AssertionError("a tensor is brought to the host, which waits for the device")

    with pytest.MonkeyPatch.context() as patch:
        for name in BRING:
            patch.setattr(Tensor, name, refuse)
        with mode or Unwaiting():  # type: ignore[no-untyped-call]
            yield
