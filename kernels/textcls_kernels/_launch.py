"""From tensors to kernels: grids, strides, tile sizes, and the choice of the variant. Needs Triton.

Letters: B texts, H heads, N positions, T positions of all texts together, S seeds, K width of a head.
"""

import math
import os
from collections import Counter
from contextlib import nullcontext
from typing import Any, NamedTuple

import torch

from textcls_kernels import _short, _triton
from textcls_kernels._shapes import ShortConfig, block_width, short_block, short_configs
from textcls_kernels.texts import LIMITS, TILE

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


# Programs of a looping kernel, all heads together: some for every processor, and few sums of dM.
SHORT_PROGRAMS = 1024
# Bytes that the sums of dM may take while a backward runs; beyond, programs take turns.
PARTIAL_BYTES = 64 * 2**20


class ShortWork(NamedTuple):
    """The texts of one size class: BLOCK_N, the first slot and the number of texts."""

    block: int
    config: ShortConfig
    first: int
    texts: int


def _short_work(
    p: torch.Tensor, table: torch.Tensor | None, counts: torch.Tensor | None
) -> tuple[list[ShortWork], int]:
    """What the kernels for short texts take of a batch, and the longest text that they take, 0 if none."""
    configs = short_configs(p.device, p.shape[-1], p.element_size())
    if table is None or counts is None:
        block = short_block(p)
        return ([ShortWork(block, configs[block], 0, p.shape[0])], block) if block else ([], 0)
    longer = dict(zip(LIMITS, counts[0].tolist(), strict=True))
    work, below, base = [], 0, table.shape[0] - longer[-1]
    for block, config in configs.items():
        texts = longer[below] - longer[block]
        if texts:
            work.append(ShortWork(block, config, base + longer[block], texts))
        below = block
    return work, below


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


def _tiles_of(
    p: torch.Tensor, table: torch.Tensor | None, counts: torch.Tensor | None, block: int, limit: int
) -> Tiles:
    """The tiles of `block` rows in a batch, without those of texts up to `limit`, which others take."""
    if table is None or counts is None:
        return Tiles(None, p.shape[2], 0 if limit else p.shape[0] * -(-p.shape[2] // block))
    return Tiles(table, p.shape[0], int(counts[1, LIMITS.index(limit)]) * (TILE // block))


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


def attention_constants(
    p: torch.Tensor, lengths: torch.Tensor | None, packed: bool, config: Config, causal: bool = False
) -> dict[str, Any]:
    """Return what `forward_kernel` and `backward_kernel` are compiled with."""
    blocks = {"BLOCK_M": config.block_m, "BLOCK_N": config.block_n, "WIDE": config.wide, "CAUSAL": causal}
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
    causal: bool,
) -> None:
    """Fill `out`, and `lse` where `backward` will read it."""
    work, limit = _short_work(p, table, counts)
    for share in work:
        _short_forward(p, metric, lengths, table, out, share, causal)
    config = FORWARD[block_width(p.shape[-1])][p.element_size()]
    tiles, packed = _tiles_of(p, table, counts, config.block_m, limit), table is not None
    if not tiles.slots:
        return
    _launch(
        _triton.forward_kernel,
        (tiles.slots, p.shape[1]),
        p,
        *(p, _full_metric(p, metric), _bounds(tiles, lengths, lse), out, lse, _scratch(p, config)),
        *(*_strides(p), *_strides(out), 0 if packed else lse.stride(0), lse.stride(-2)),
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
    work, limit = _short_work(p, table, counts)
    config = BACKWARD[block_width(p.shape[-1])][p.element_size()]
    tiles = _tiles_of(p, table, counts, config.block_m, limit)
    heads, block = p.shape[1], block_width(p.shape[-1])
    slots_a_program = max(1, tiles.slots * heads // PROGRAMS)
    programs = [*(_short_programs(share, heads, block) for share in work), -(-tiles.slots // slots_a_program)]
    partial = torch.empty(sum(programs), heads, block, block, device=p.device)
    place = 0
    for share, number in zip(work, programs, strict=False):
        _short_backward(dout, p, metric, lengths, table, dp, partial, share, place, number, causal)
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
    _launch(
        _triton.backward_kernel,
        (partial.shape[0], p.shape[1]),
        p,
        *(p, _full_metric(p, metric), _bounds(tiles, lengths, lse), out, dout, lse, _delta(out, dout, lse), dp),
        *(partial, _scratch(p, config)),
        *(*_strides(p), *_strides(dout), *_strides(dp), *by_row),
        *(tiles.rows, 1 / math.sqrt(p.shape[-1]), tiles.slots, slots_a_program),
        **attention_constants(p, lengths, packed, config, causal),
    )


def short_constants(
    p: torch.Tensor,
    metric: torch.Tensor,
    lengths: torch.Tensor | None,
    packed: bool,
    block: int,
    warps: int,
    causal: bool = False,
) -> dict[str, Any]:
    """Return what the kernels for short texts are compiled with."""
    constants = _variant(p, lengths, packed, Config(0, block, warps, 1, 0), block)
    del constants["CHUNK"]
    metrics = {"PREPARED": constants["BLOCK_K"] == 128, "PACKED_METRIC": metric.dim() == 2}
    return constants | metrics | {"BLOCK_N": block, "CAUSAL": causal}


def _short_metric(p: torch.Tensor, metric: torch.Tensor) -> tuple[torch.Tensor, int, int, int]:
    """The metric as a kernel for short texts takes it, and its strides; a wide one is unpacked beforehand."""
    given = _full_metric(p, metric) if block_width(p.shape[-1]) == 128 else metric
    return given, given.stride(0), given.stride(1) if given.dim() == 3 else 0, given.stride(-1)


def _short_forward(
    p: torch.Tensor,
    metric: torch.Tensor,
    lengths: torch.Tensor | None,
    table: torch.Tensor | None,
    out: torch.Tensor,
    work: ShortWork,
    causal: bool,
) -> None:
    """Fill `out` at the texts of a size class."""
    packed, heads = table is not None, p.shape[1]
    bounds = table if table is not None else lengths if lengths is not None else out
    given, *by_metric = _short_metric(p, metric)
    _launch(
        _short.short_forward_kernel,
        (min(work.texts, -(-SHORT_PROGRAMS // heads)), heads),
        p,
        *(p, given, bounds, out, *_strides(p), *_strides(out), *by_metric),
        *(p.shape[0] if packed else p.shape[2], 1 / math.sqrt(p.shape[-1]), work.first, work.texts),
        **short_constants(p, metric, lengths, packed, work.block, work.config.forward_warps, causal),
    )


def _short_programs(work: ShortWork, heads: int, block: int) -> int:
    """Programs a head of a backward, each of which has its sum of dM."""
    most = SHORT_PROGRAMS if work.config.loop else PARTIAL_BYTES // (4 * block * block)
    return min(work.texts, -(-most // heads))


def _short_backward(
    dout: torch.Tensor,
    p: torch.Tensor,
    metric: torch.Tensor,
    lengths: torch.Tensor | None,
    table: torch.Tensor | None,
    dp: torch.Tensor,
    partial: torch.Tensor,
    work: ShortWork,
    first_partial: int,
    programs: int,
    causal: bool,
) -> None:
    """Fill `dp` at the texts of a size class, and `programs` places of `partial` with their part of dM."""
    packed, config = table is not None, work.config
    bounds = table if table is not None else lengths if lengths is not None else dp
    given, *by_metric = _short_metric(p, metric)
    constants = short_constants(p, metric, lengths, packed, work.block, config.backward_warps, causal)
    constants["LOOP"] = config.loop
    at_once = work.texts if config.loop else programs
    for done in range(0, work.texts, at_once):
        texts = min(at_once, work.texts - done)
        _launch(
            _short.short_backward_kernel,
            (min(programs, texts), p.shape[1]),
            p,
            *(p, given, bounds, dout, dp, partial),
            *(*_strides(p), *_strides(dout), *_strides(dp), *by_metric),
            *(p.shape[0] if packed else p.shape[2], 1 / math.sqrt(p.shape[-1])),
            *(work.first + done, texts, first_partial, int(done > 0)),
            **constants,
        )


def _metric_gradient(partial: torch.Tensor, metric: torch.Tensor, width: int) -> torch.Tensor:
    """Sum [programs, H, BLOCK_K, BLOCK_K] to a gradient in the metric's own shape and type."""
    programs, heads, block, _ = partial.shape
    dmetric = torch.empty(metric.shape, dtype=metric.dtype, device=metric.device)
    _launch(
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
