"""Choose the kernel for a shape. Needs no Triton.

Letters: B texts, H heads, N positions, K width of a head.
"""

from typing import NamedTuple

import torch

from textcls_kernels.launching import block_width


class ShortConfig(NamedTuple):
    """Resources of the kernels for short texts (`_short.py`), chosen to build without spills; not tuned on a GPU."""

    forward_warps: int
    backward_warps: int
    loop: bool


# By compute capability (8 for all GPUs without 64-row products in one instruction of several warps); then by
# BLOCK_K and bytes per number, then by BLOCK_N: the text lengths that there is a kernel for.
_NARROW = {32: ShortConfig(4, 4, True), 64: ShortConfig(4, 4, True), 128: ShortConfig(8, 8, False)}
_WIDE_PRODUCTS = {
    (16, 2): {64: _NARROW[64], 128: _NARROW[128]},  # of 32 positions, bfloat16 spills with Triton 3.6
    (32, 2): _NARROW,
    (64, 2): _NARROW,
    (128, 2): {32: ShortConfig(4, 4, False)},  # of 64 positions, the forward spills with Triton 3.8
    (16, 4): {64: ShortConfig(8, 8, False)},
}
SHORT: dict[int, dict[tuple[int, int], dict[int, ShortConfig]]] = {
    9: _WIDE_PRODUCTS | {(32, 4): {64: ShortConfig(8, 8, False)}},
    # With Triton 3.6 and 3.7 products of 64 rows do not compile for it, and K = 128 spills; not so with 3.9.
    10: {(width, 2): {32: _NARROW[32]} for width in (32, 64)},
    8: {(width, 2): {32: ShortConfig(4, 4, False), 64: ShortConfig(4, 8, False)} for width in (16, 32, 64)},
}


def short_configs(device: torch.device, width: int, size: int) -> dict[int, ShortConfig]:
    """Return the configurations for short texts by BLOCK_N; none if only the tiled kernels can be used."""
    capability = torch.cuda.get_device_capability(device)[0] if device.type == "cuda" else 9
    return SHORT.get(capability, SHORT[8]).get((block_width(width), size), {})


def short_block(p: torch.Tensor) -> int:
    """Return the BLOCK_N of the short-text kernel for a padded [B, H, N, K]; 0 if the tiled kernels process it."""
    configs = short_configs(p.device, p.shape[-1], p.element_size())
    return next((block for block in configs if block >= p.shape[2]), 0)
