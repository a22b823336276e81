"""From encoded texts to the kernel of their uses: its grid and tile sizes. Needs Triton."""

from collections.abc import Sequence
from typing import Any

import torch

from textcls_kernels.launching import launch
from textcls_kernels.rows import _uses
from textcls_kernels.rows.table import Uses

# A short text is one block, a tile is a few numbers per thread. Not tuned on a GPU.
CONSTANTS: dict[str, Any] = {"BLOCK_T": 64, "BLOCK_U": 4, "num_warps": 2, "num_stages": 1}


def collect(
    encoded: Sequence[torch.Tensor], uses_VN: torch.Tensor, types: int, text_B: torch.Tensor, tokens: int, uses: int
) -> Uses:
    """Return the uses of a batch, which has at least one place; `encoded` is what the kernel reads of the texts."""
    end_VB = uses_VN.index_select(1, text_B).flatten().cumsum(0)
    # One launch zeroes both, and entries after the last stay zero; multiples of 16 bytes apart, as Triton prefers.
    row_R, place_R = torch.zeros(2, -(-uses // 4) * 4, dtype=torch.int32, device=text_B.device)[:, :uses]
    collected = Uses(row_R, place_R, text_B.new_empty(len(end_VB) * tokens + 1))
    launch(
        _uses.uses_kernel,
        (len(end_VB),),
        end_VB,
        *(*encoded, text_B, end_VB, *collected, len(text_B), tokens, types),
        **CONSTANTS,
    )
    return collected
