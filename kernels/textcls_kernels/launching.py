"""What all kernels share: how they are launched, and how widths are rounded up."""

from collections import Counter
from contextlib import nullcontext
from typing import Any

import torch

LAUNCHES: Counter[str] = Counter()


def launch(kernel: Any, grid: tuple[int, ...], p: torch.Tensor, *arguments: Any, **constants: Any) -> None:
    """Launch a kernel with this grid of programs on the device of `p`, and count the launch."""
    LAUNCHES[kernel.__name__] += 1
    with torch.cuda.device(p.device) if p.is_cuda else nullcontext():
        kernel[grid](*arguments, **constants)


def block_width(width: int) -> int:
    """Return BLOCK_K: K rounded up to a power of two, at least the 16 of the tensor cores."""
    return max(16, 1 << (width - 1).bit_length())
