"""Send arrays of a step to the device, without waiting for its work."""

from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor


def sent(array: NDArray[Any], device: torch.device) -> Tensor:
    """Return an array as a tensor on `device`; on the CPU they share memory.

    PyTorch's plain copy to a GPU waits until the GPU has done all earlier work; one from pinned memory does not.
    """
    tensor = torch.from_numpy(array)
    return tensor.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else tensor


def send_into(tensor: Tensor, array: NDArray[Any]) -> None:
    """Replace the content of a tensor, also without waiting."""
    given = torch.from_numpy(array)
    tensor.copy_(given.pin_memory() if tensor.is_cuda else given, non_blocking=True)
