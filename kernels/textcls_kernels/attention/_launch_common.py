"""What all launches share: strides, the constants of a variant, the unpacked metric. Needs Triton.

Letters: B texts, H heads, N positions, T positions of all texts together, K width of a head.
"""

import os
from typing import Any, NamedTuple

import torch

from textcls_kernels.attention import _triton
from textcls_kernels.launching import block_width, launch


class Config(NamedTuple):
    """Tile sizes and resources of one kernel. Chosen to build for sm_90 without spills; not tuned on a GPU.

    A tile of queries has `block_m` rows, one of keys `block_n`; products with M run over `chunk` columns at a time, and
    in a `wide` kernel those of the scores too (`_triton.py`).
    """

    block_m: int
    block_n: int
    num_warps: int
    num_stages: int
    chunk: int
    wide: bool = False


def strides(tensor: torch.Tensor) -> tuple[int, int, int, int]:
    """Strides by text, head, position and width; a packed [T, H, K] has no text dimension."""
    if tensor.dim() == 4:
        by_text, by_head, by_position, by_width = tensor.stride()
        return by_text, by_head, by_position, by_width
    by_position, by_head, by_width = tensor.stride()
    return 0, by_head, by_position, by_width


def variant(
    p: torch.Tensor, lengths: torch.Tensor | None, packed: bool, config: Config, *blocks: int
) -> dict[str, Any]:
    """The constants that all attention kernels share, and their resources."""
    half = p.element_size() == 2
    interpreted_bf16 = p.dtype == torch.bfloat16 and os.environ.get("TRITON_INTERPRET") == "1"
    return {
        "K": p.shape[-1],
        "BLOCK_K": block_width(p.shape[-1]),
        "CHUNK": config.chunk,
        "RAGGED": lengths is not None,
        "PACKED": packed,
        "EVEN": lengths is None and not packed and all(p.shape[2] % block == 0 for block in blocks),
        "HALF": half,
        "PRECISION": "upcast" if interpreted_bf16 else "tf32" if half else "tf32x3",
        "num_warps": config.num_warps,
        "num_stages": config.num_stages,
    }


def bounds_of(packed: torch.Tensor | None, lengths: torch.Tensor | None, unread: torch.Tensor) -> torch.Tensor:
    """What shows a kernel where texts are: `packed`, a table or ends, or lengths; any tensor if it need not know."""
    return packed if packed is not None else lengths if lengths is not None else unread


def prepared_metric(p: torch.Tensor, metric: torch.Tensor) -> torch.Tensor:
    """Return M in p's type, symmetric, padded with zeros: [H, BLOCK_K, BLOCK_K]."""
    heads, width, block = p.shape[1], p.shape[-1], block_width(p.shape[-1])
    full = torch.empty(heads, block, block, dtype=p.dtype, device=p.device)
    by_row = metric.stride(1) if metric.dim() == 3 else 0
    launch(
        _triton.prepare_metric_kernel,
        (-(-block * block // 256), heads),
        p,
        *(metric, full, metric.stride(0), by_row, metric.stride(-1)),
        K=width,
        BLOCK_K=block,
        PACKED_METRIC=metric.dim() == 2,
        BLOCK=256,
    )
    return full
