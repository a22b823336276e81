"""From tensors to kernels: grids, strides, tile sizes, and the choice of the variant. Needs Triton.

Letters: B texts, H heads, N positions, T positions of all texts together, S seeds, K width of a head.
"""

import math
import os
from collections import Counter
from contextlib import nullcontext
from typing import Any, NamedTuple

import torch

from textcls_kernels import _triton
from textcls_kernels.texts import TILE

LAUNCHES: Counter[str] = Counter()

# Programs that one backward is cut into: enough to fill the largest GPU several times (132 processors on an H200), few
# enough that their K x K sums of dM stay small beside p.
PROGRAMS = 1024


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


class Tiles(NamedTuple):
    """The work of a kernel: the table's tiles where texts are packed, N or T, and how many slots there are."""

    table: torch.Tensor | None
    rows: int
    slots: int


# By BLOCK_K, then by bytes of a number.
FORWARD: dict[int, dict[int, Config]] = {
    16: {2: Config(64, 64, 4, 3, 16), 4: Config(64, 64, 4, 2, 16)},
    32: {2: Config(64, 64, 4, 3, 32), 4: Config(64, 64, 4, 2, 16)},
    64: {2: Config(64, 64, 4, 3, 32), 4: Config(64, 32, 4, 2, 16)},
    128: {2: Config(64, 64, 4, 2, 32), 4: Config(64, 32, 8, 1, 16, wide=True)},
}
BACKWARD: dict[int, dict[int, Config]] = {
    16: {2: Config(64, 64, 4, 2, 16), 4: Config(64, 32, 4, 1, 16)},
    32: {2: Config(64, 32, 4, 2, 16), 4: Config(64, 32, 4, 2, 16, wide=True)},
    64: {2: Config(64, 32, 4, 1, 32), 4: Config(32, 32, 8, 1, 16, wide=True)},
    128: {2: Config(64, 32, 8, 2, 32, wide=True), 4: Config(32, 16, 8, 1, 16, wide=True)},
}
# block_m is not used: the seeds are one tile.
SEED: dict[int, dict[int, Config]] = {
    16: {2: Config(0, 64, 4, 2, 16), 4: Config(0, 32, 4, 2, 16)},
    32: {2: Config(0, 64, 4, 2, 32), 4: Config(0, 32, 4, 1, 16)},
    64: {2: Config(0, 64, 4, 2, 32), 4: Config(0, 32, 4, 2, 16)},
    128: {2: Config(0, 64, 4, 2, 32), 4: Config(0, 16, 4, 1, 16)},
}


def block_width(width: int) -> int:
    """Return BLOCK_K: K rounded up to a power of two, and no less than the tensor cores' 16."""
    return max(16, 1 << (width - 1).bit_length())


def _strides(tensor: torch.Tensor) -> tuple[int, int, int, int]:
    """Strides by text, head, position and width; a packed [T, H, K] has no text."""
    if tensor.dim() == 4:
        by_text, by_head, by_position, by_width = tensor.stride()
        return by_text, by_head, by_position, by_width
    by_position, by_head, by_width = tensor.stride()
    return 0, by_head, by_position, by_width


def _variant(
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


def _texts_and_rows(p: torch.Tensor, cu_lengths: torch.Tensor | None) -> tuple[int, int]:
    """(B, N), or (B, T) when packed."""
    return (p.shape[0], p.shape[2]) if cu_lengths is None else (cu_lengths.shape[0] - 1, p.shape[0])


def _tiles_of(p: torch.Tensor, table: torch.Tensor | None, counts: torch.Tensor | None, block: int) -> Tiles:
    """The tiles of `block` rows in a batch."""
    if table is None or counts is None:
        return Tiles(None, p.shape[2], p.shape[0] * -(-p.shape[2] // block))
    return Tiles(table, p.shape[0], int(counts[1, 0]) * (TILE // block))


def _bounds(tiles: Tiles, lengths: torch.Tensor | None, unread: torch.Tensor) -> torch.Tensor:
    """What tells a kernel where texts lie; any tensor where nothing has to."""
    return tiles.table if tiles.table is not None else lengths if lengths is not None else unread


def _launch(kernel: Any, grid: tuple[int, ...], p: torch.Tensor, *arguments: Any, **constants: Any) -> None:
    LAUNCHES[kernel.__name__] += 1
    with torch.cuda.device(p.device) if p.is_cuda else nullcontext():
        kernel[grid](*arguments, **constants)


def _scratch(p: torch.Tensor, config: Config) -> torch.Tensor:
    """A place for q in float32, strided as p's gradient is, where a wide kernel does not keep it in registers."""
    return torch.empty_like(p, dtype=torch.float32) if config.wide else p


def _full_metric(p: torch.Tensor, metric: torch.Tensor) -> torch.Tensor:
    """Return M in p's type, symmetric, padded with zeros: [H, BLOCK_K, BLOCK_K]."""
    heads, width, block = p.shape[1], p.shape[-1], block_width(p.shape[-1])
    full = torch.empty(heads, block, block, dtype=p.dtype, device=p.device)
    by_row = metric.stride(1) if metric.dim() == 3 else 0
    _launch(
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


def attention_constants(p: torch.Tensor, lengths: torch.Tensor | None, packed: bool, config: Config) -> dict[str, Any]:
    """Return what `forward_kernel` and `backward_kernel` are compiled with."""
    blocks = {"BLOCK_M": config.block_m, "BLOCK_N": config.block_n, "WIDE": config.wide}
    constants = blocks | _variant(p, lengths, packed, config, config.block_m, config.block_n)
    return constants | {"EVEN": constants["EVEN"] and not config.wide}  # without masks a wide kernel spills


def seed_constants(seeds: torch.Tensor, p: torch.Tensor, lengths: torch.Tensor | None, packed: bool) -> dict[str, Any]:
    """Return what the seed kernels are compiled with."""
    config = SEED[block_width(p.shape[-1])][p.element_size()]
    blocks = {"BLOCK_S": block_width(seeds.shape[1]), "BLOCK_N": config.block_n}
    return blocks | _variant(p, lengths, packed, config, config.block_n)


def forward(
    p: torch.Tensor,
    metric: torch.Tensor,
    lengths: torch.Tensor | None,
    table: torch.Tensor | None,
    counts: torch.Tensor | None,
    out: torch.Tensor,
    lse: torch.Tensor,
) -> None:
    """Fill `out` and `lse`."""
    config = FORWARD[block_width(p.shape[-1])][p.element_size()]
    tiles, packed = _tiles_of(p, table, counts, config.block_m), table is not None
    _launch(
        _triton.forward_kernel,
        (tiles.slots, p.shape[1]),
        p,
        *(p, _full_metric(p, metric), _bounds(tiles, lengths, lse), out, lse, _scratch(p, config)),
        *(*_strides(p), *_strides(out), 0 if packed else lse.stride(0), lse.stride(-2)),
        *(tiles.rows, 1 / math.sqrt(p.shape[-1])),
        **attention_constants(p, lengths, packed, config),
    )


def backward(
    dout: torch.Tensor,
    p: torch.Tensor,
    metric: torch.Tensor,
    lengths: torch.Tensor | None,
    table: torch.Tensor | None,
    counts: torch.Tensor | None,
    out: torch.Tensor,
    lse: torch.Tensor,
    dp: torch.Tensor,
) -> torch.Tensor:
    """Fill `dp` and return the gradient of the metric in its own shape and type."""
    config = BACKWARD[block_width(p.shape[-1])][p.element_size()]
    tiles, packed = _tiles_of(p, table, counts, config.block_m), table is not None
    heads, width = p.shape[1], p.shape[-1]
    by_row = (0 if packed else lse.stride(0), lse.stride(-2))
    delta = _delta(out, dout, lse)
    slots_a_program = max(1, tiles.slots * heads // PROGRAMS)
    programs = -(-tiles.slots // slots_a_program)
    block = block_width(width)
    partial = torch.empty(programs, heads, block, block, device=p.device)
    _launch(
        _triton.backward_kernel,
        (programs, heads),
        p,
        *(p, _full_metric(p, metric), _bounds(tiles, lengths, lse), out, dout, lse, delta, dp, partial),
        *(_scratch(p, config),),
        *(*_strides(p), *_strides(dout), *_strides(dp), *by_row),
        *(tiles.rows, 1 / math.sqrt(width), tiles.slots, slots_a_program),
        **attention_constants(p, lengths, packed, config),
    )
    return _metric_gradient(partial, metric, width)


def _metric_gradient(partial: torch.Tensor, metric: torch.Tensor, width: int) -> torch.Tensor:
    """Sum [programs, H, BLOCK_K, BLOCK_K] to a gradient in the metric's own shape and type."""
    programs, heads, block, _ = partial.shape
    dmetric = torch.empty(metric.shape, dtype=metric.dtype, device=metric.device)
    _launch(
        _triton.metric_gradient_kernel,
        (-(-width * width // 128), heads),
        partial,
        *(partial, dmetric, programs),
        K=width,
        BLOCK_K=block,
        PACKED_METRIC=metric.dim() == 2,
        ROWS=16,
        BLOCK=128,
    )
    return dmetric


def _delta(out: torch.Tensor, dout: torch.Tensor, lse: torch.Tensor) -> torch.Tensor:
    """rowsum(dt * t) in float32, of lse's shape."""
    delta = torch.empty_like(lse)
    packed, heads, rows = out.dim() == 3, out.shape[1], lse.shape[-1]
    tiles = -(-rows // 64) * (1 if packed else out.shape[0])
    by_row = (0 if packed else lse.stride(0), lse.stride(-2))
    _launch(
        _triton.delta_kernel,
        (tiles, heads),
        out,
        *(out, dout, delta, *_strides(out), *_strides(dout), *by_row, rows),
        K=out.shape[-1],
        BLOCK_M=64,
        BLOCK_K=block_width(out.shape[-1]),
    )
    return delta


def _weight_strides(weight: torch.Tensor) -> tuple[int, int, int, int]:
    """Strides by text, head, seed and position of [B, H, S, N] or packed [H, S, T]."""
    if weight.dim() == 4:
        by_text, by_head, by_seed, by_position = weight.stride()
        return by_text, by_head, by_seed, by_position
    by_head, by_seed, by_position = weight.stride()
    return 0, by_head, by_seed, by_position


def seed_forward(
    seeds: torch.Tensor,
    p: torch.Tensor,
    metric: torch.Tensor,
    lengths: torch.Tensor | None,
    cu_lengths: torch.Tensor | None,
    pooled: torch.Tensor,
    weight: torch.Tensor,
) -> None:
    """Fill `pooled` and the valid part of `weight`."""
    texts, rows = _texts_and_rows(p, cu_lengths)
    bounds = cu_lengths if cu_lengths is not None else lengths if lengths is not None else weight
    _launch(
        _triton.seed_forward_kernel,
        (texts, p.shape[1]),
        p,
        *(seeds, p, _full_metric(p, metric), bounds, pooled, weight),
        *(*seeds.stride(), *_strides(p), *_weight_strides(weight)[:3]),
        *(rows, 1 / math.sqrt(p.shape[-1]), seeds.shape[1]),
        **seed_constants(seeds, p, lengths, cu_lengths is not None),
    )


def seed_backward(
    dpooled: torch.Tensor,
    dweight: torch.Tensor,
    seeds: torch.Tensor,
    p: torch.Tensor,
    metric: torch.Tensor,
    lengths: torch.Tensor | None,
    cu_lengths: torch.Tensor | None,
    weight: torch.Tensor,
    dp: torch.Tensor,
    dq_BHSK: torch.Tensor,
) -> None:
    """Fill `dp` and `dq_BHSK`, the gradient of q = seeds M by text."""
    texts, rows = _texts_and_rows(p, cu_lengths)
    bounds = cu_lengths if cu_lengths is not None else lengths if lengths is not None else weight
    _launch(
        _triton.seed_backward_kernel,
        (texts, p.shape[1]),
        p,
        *(seeds, p, _full_metric(p, metric), bounds, weight, dpooled, dweight, dp, dq_BHSK),
        *(*seeds.stride(), *_strides(p), *_weight_strides(weight)[:3], *_weight_strides(dweight)),
        *(*dpooled.stride(), *_strides(dp)),
        *(rows, 1 / math.sqrt(p.shape[-1]), seeds.shape[1]),
        **seed_constants(seeds, p, lengths, cu_lengths is not None),
    )
