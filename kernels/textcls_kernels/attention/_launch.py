"""From tensors to kernels: which share of a batch each gets, grids and tile sizes. Needs Triton.

Letters: B texts, H heads, N positions, T positions of all texts together, S seeds, K width of a head.
"""

import math
from typing import Any, NamedTuple

import torch

from textcls_kernels.attention import _triton
from textcls_kernels.attention._launch_common import Config, bounds_of, prepared_metric, strides, variant
from textcls_kernels.attention._launch_short import short_backward, short_forward, short_programs, short_work
from textcls_kernels.attention.texts import LIMITS, TILE
from textcls_kernels.launching import block_width, launch

# Programs per backward: enough to fill the largest GPU several times (132 processors on an H200), few enough that
# their K x K sums of dM stay small compared with p.
PROGRAMS = 1024


class Tiles(NamedTuple):
    """The work of a kernel: the table's tiles if texts are packed, N or T, and the number of slots."""

    table: torch.Tensor | None
    rows: int
    slots: int


# By BLOCK_K, then by bytes per number.
FORWARD: dict[int, dict[int, Config]] = {
    16: {2: Config(64, 64, 4, 3, 16), 4: Config(64, 64, 4, 2, 16)},
    32: {2: Config(64, 64, 4, 3, 32), 4: Config(64, 64, 4, 2, 16)},
    64: {2: Config(64, 64, 4, 3, 32), 4: Config(64, 32, 4, 2, 16)},
    128: {2: Config(64, 64, 4, 2, 32), 4: Config(64, 32, 8, 1, 16, wide=True)},
}
BACKWARD: dict[int, dict[int, Config]] = {
    16: {2: Config(64, 64, 4, 2, 16), 4: Config(64, 16, 4, 1, 16)},
    32: {2: Config(64, 32, 4, 2, 16), 4: Config(64, 16, 4, 2, 16, wide=True)},
    64: {2: Config(64, 32, 4, 1, 32), 4: Config(32, 32, 8, 1, 16, wide=True)},
    128: {2: Config(64, 32, 8, 2, 16, wide=True), 4: Config(32, 16, 8, 1, 16, wide=True)},
}
# block_m is not used: the seeds are one tile.
SEED: dict[int, dict[int, Config]] = {
    16: {2: Config(0, 64, 4, 2, 16), 4: Config(0, 32, 4, 2, 16)},
    32: {2: Config(0, 64, 4, 2, 32), 4: Config(0, 32, 4, 1, 16)},
    64: {2: Config(0, 64, 4, 2, 32), 4: Config(0, 32, 4, 2, 16)},
    128: {2: Config(0, 64, 4, 2, 32), 4: Config(0, 16, 4, 1, 16)},
}


def _texts_and_rows(p: torch.Tensor, cu_lengths: torch.Tensor | None) -> tuple[int, int]:
    """(B, N), or (B, T) when packed."""
    return (p.shape[0], p.shape[2]) if cu_lengths is None else (cu_lengths.shape[0] - 1, p.shape[0])


def _tiles_of(
    p: torch.Tensor, table: torch.Tensor | None, counts: torch.Tensor | None, block: int, limit: int
) -> Tiles:
    """The tiles of `block` rows in a batch, without texts of up to `limit` positions, which other kernels process."""
    if table is None or counts is None:
        return Tiles(None, p.shape[2], 0 if limit else p.shape[0] * -(-p.shape[2] // block))
    return Tiles(table, p.shape[0], int(counts[1, LIMITS.index(limit)]) * (TILE // block))


def _scratch(p: torch.Tensor, config: Config) -> torch.Tensor:
    """Memory for q in float32, strided like p's gradient, for wide kernels, which cannot keep it in registers."""
    return torch.empty_like(p, dtype=torch.float32) if config.wide else p


def attention_constants(
    p: torch.Tensor, lengths: torch.Tensor | None, packed: bool, config: Config, causal: bool = False
) -> dict[str, Any]:
    """Return the constants that `forward_kernel` and `backward_kernel` are compiled with."""
    blocks = {"BLOCK_M": config.block_m, "BLOCK_N": config.block_n, "WIDE": config.wide, "CAUSAL": causal}
    constants = blocks | variant(p, lengths, packed, config, config.block_m, config.block_n)
    return constants | {"EVEN": constants["EVEN"] and not config.wide}  # without masks a wide kernel spills


def seed_constants(seeds: torch.Tensor, p: torch.Tensor, lengths: torch.Tensor | None, packed: bool) -> dict[str, Any]:
    """Return the constants that the seed kernels are compiled with."""
    config = SEED[block_width(p.shape[-1])][p.element_size()]
    blocks = {"BLOCK_S": block_width(seeds.shape[1]), "BLOCK_N": config.block_n}
    return blocks | variant(p, lengths, packed, config, config.block_n)


def forward(
    p: torch.Tensor,
    metric: torch.Tensor,
    lengths: torch.Tensor | None,
    table: torch.Tensor | None,
    counts: torch.Tensor | None,
    out: torch.Tensor,
    lse: torch.Tensor,
    causal: bool,
) -> None:
    """Fill `out`, and `lse` wherever `backward` will read it."""
    work, limit = short_work(p, table, counts)
    for share in work:
        short_forward(p, metric, lengths, table, out, share, causal)
    config = FORWARD[block_width(p.shape[-1])][p.element_size()]
    tiles, packed = _tiles_of(p, table, counts, config.block_m, limit), table is not None
    if not tiles.slots:
        return
    launch(
        _triton.forward_kernel,
        (tiles.slots, p.shape[1]),
        p,
        *(p, prepared_metric(p, metric), bounds_of(table, lengths, lse), out, lse, _scratch(p, config)),
        *(*strides(p), *strides(out), 0 if packed else lse.stride(0), lse.stride(-2)),
        *(tiles.rows, 1 / math.sqrt(p.shape[-1])),
        **attention_constants(p, lengths, packed, config, causal),
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
    causal: bool,
) -> torch.Tensor:
    """Fill `dp` and return the gradient of the metric in its own shape and type."""
    work, limit = short_work(p, table, counts)
    config = BACKWARD[block_width(p.shape[-1])][p.element_size()]
    tiles = _tiles_of(p, table, counts, config.block_m, limit)
    heads, block = p.shape[1], block_width(p.shape[-1])
    slots_a_program = max(1, tiles.slots * heads // PROGRAMS)
    programs = [*(short_programs(share, heads, block) for share in work), -(-tiles.slots // slots_a_program)]
    partial = torch.empty(sum(programs), heads, block, block, device=p.device)
    place = 0
    for share, number in zip(work, programs, strict=False):
        short_backward(dout, p, metric, lengths, table, dp, partial, share, place, number, causal)
        place += number
    if tiles.slots:
        _long_backward(dout, p, metric, lengths, tiles, out, lse, dp, partial[place:], slots_a_program, causal)
    return _metric_gradient(partial, metric, p.shape[-1])


def _long_backward(
    dout: torch.Tensor,
    p: torch.Tensor,
    metric: torch.Tensor,
    lengths: torch.Tensor | None,
    tiles: Tiles,
    out: torch.Tensor,
    lse: torch.Tensor,
    dp: torch.Tensor,
    partial: torch.Tensor,
    slots_a_program: int,
    causal: bool,
) -> None:
    """Fill `dp` at the tiles, and `partial` with their part of the metric's gradient."""
    config = BACKWARD[block_width(p.shape[-1])][p.element_size()]
    packed = tiles.table is not None
    by_row = (0 if packed else lse.stride(0), lse.stride(-2))
    launch(
        _triton.backward_kernel,
        (partial.shape[0], p.shape[1]),
        p,
        *(
            p,
            prepared_metric(p, metric),
            bounds_of(tiles.table, lengths, lse),
            out,
            dout,
            lse,
            _delta(out, dout, lse),
            dp,
        ),
        *(partial, _scratch(p, config)),
        *(*strides(p), *strides(dout), *strides(dp), *by_row),
        *(tiles.rows, 1 / math.sqrt(p.shape[-1]), tiles.slots, slots_a_program),
        **attention_constants(p, lengths, packed, config, causal),
    )


def _metric_gradient(partial: torch.Tensor, metric: torch.Tensor, width: int) -> torch.Tensor:
    """Sum [programs, H, BLOCK_K, BLOCK_K] to a gradient in the metric's own shape and type."""
    programs, heads, block, _ = partial.shape
    dmetric = torch.empty(metric.shape, dtype=metric.dtype, device=metric.device)
    launch(
        _triton.metric_gradient_kernel,
        ((-(-width // 8)) ** 2, heads),
        partial,
        *(partial, dmetric, programs),
        K=width,
        BLOCK_K=block,
        PACKED_METRIC=metric.dim() == 2,
        ROWS=64,
        EDGE=8,
    )
    return dmetric


def _delta(out: torch.Tensor, dout: torch.Tensor, lse: torch.Tensor) -> torch.Tensor:
    """rowsum(dt * t) in float32, of lse's shape."""
    delta = torch.empty_like(lse)
    packed, heads, rows = out.dim() == 3, out.shape[1], lse.shape[-1]
    tiles = -(-rows // 64) * (1 if packed else out.shape[0])
    by_row = (0 if packed else lse.stride(0), lse.stride(-2))
    launch(
        _triton.delta_kernel,
        (tiles, heads),
        out,
        *(out, dout, delta, *strides(out), *strides(dout), *by_row, rows),
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
    launch(
        _triton.seed_forward_kernel,
        (texts, p.shape[1]),
        p,
        *(seeds, p, prepared_metric(p, metric), bounds_of(cu_lengths, lengths, weight), pooled, weight),
        *(*seeds.stride(), *strides(p), *_weight_strides(weight)[:3]),
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
    launch(
        _triton.seed_backward_kernel,
        (texts, p.shape[1]),
        p,
        *(seeds, p, prepared_metric(p, metric), bounds_of(cu_lengths, lengths, weight)),
        *(weight, dpooled, dweight, dp, dq_BHSK),
        *(*seeds.stride(), *strides(p), *_weight_strides(weight)[:3], *_weight_strides(dweight)),
        *(*dpooled.stride(), *strides(dp)),
        *(rows, 1 / math.sqrt(p.shape[-1]), seeds.shape[1]),
        **seed_constants(seeds, p, lengths, cu_lengths is not None),
    )
