"""The launches of the kernels for short texts (`_short.py`): for which texts, with how many programs. Needs Triton.

Letters: H heads, N positions, K width of a head.
"""

import math
from typing import Any, NamedTuple

import torch

from textcls_kernels.attention import _short
from textcls_kernels.attention._launch_common import Config, bounds_of, prepared_metric, strides, variant
from textcls_kernels.attention._shapes import ShortConfig, short_block, short_configs
from textcls_kernels.attention.texts import LIMITS
from textcls_kernels.launching import block_width, launch

# Programs of a looping kernel, for all heads together: several per processor, yet few sums of dM.
SHORT_PROGRAMS = 1024
# Bytes that the sums of dM may take while a backward runs; beyond that, programs take turns.
PARTIAL_BYTES = 64 * 2**20


class ShortWork(NamedTuple):
    """The texts of one size class: BLOCK_N, the first slot and the number of texts."""

    block: int
    config: ShortConfig
    first: int
    texts: int


def short_work(p: torch.Tensor, table: torch.Tensor | None, counts: torch.Tensor | None) -> tuple[list[ShortWork], int]:
    """The part of a batch for the kernels for short texts, and the length of the longest of its texts, 0 if none."""
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


def _is_prepared(width: int) -> bool:
    """Whether M is unpacked beforehand, as for heads wider than 64, and not by each program."""
    return block_width(width) == 128


def short_constants(
    p: torch.Tensor,
    metric: torch.Tensor,
    lengths: torch.Tensor | None,
    packed: bool,
    block: int,
    warps: int,
    causal: bool = False,
) -> dict[str, Any]:
    """Return the constants that the kernels for short texts are compiled with."""
    constants = variant(p, lengths, packed, Config(0, block, warps, 1, 0), block)
    del constants["CHUNK"]
    metrics = {"PREPARED": _is_prepared(p.shape[-1]), "PACKED_METRIC": metric.dim() == 2}
    return constants | metrics | {"BLOCK_N": block, "CAUSAL": causal}


def _short_metric(p: torch.Tensor, metric: torch.Tensor) -> tuple[torch.Tensor, int, int, int]:
    """The metric in the form that a kernel for short texts reads, and its strides."""
    given = prepared_metric(p, metric) if _is_prepared(p.shape[-1]) else metric
    return given, given.stride(0), given.stride(1) if given.dim() == 3 else 0, given.stride(-1)


def short_forward(
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
    given, *by_metric = _short_metric(p, metric)
    launch(
        _short.short_forward_kernel,
        (min(work.texts, -(-SHORT_PROGRAMS // heads)), heads),
        p,
        *(p, given, bounds_of(table, lengths, out), out, *strides(p), *strides(out), *by_metric),
        *(p.shape[0] if packed else p.shape[2], 1 / math.sqrt(p.shape[-1]), work.first, work.texts),
        **short_constants(p, metric, lengths, packed, work.block, work.config.forward_warps, causal),
    )


def short_programs(work: ShortWork, heads: int, block: int) -> int:
    """Programs per head of a backward, each of which has its own sum of dM."""
    most = SHORT_PROGRAMS if work.config.loop else PARTIAL_BYTES // (4 * block * block)
    return min(work.texts, -(-most // heads))


def short_backward(
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
    given, *by_metric = _short_metric(p, metric)
    constants = short_constants(p, metric, lengths, packed, work.block, config.backward_warps, causal)
    constants["LOOP"] = config.loop
    at_once = work.texts if config.loop else programs
    for done in range(0, work.texts, at_once):
        texts = min(at_once, work.texts - done)
        launch(
            _short.short_backward_kernel,
            (min(programs, texts), p.shape[1]),
            p,
            *(p, given, bounds_of(table, lengths, dp), dout, dp, partial),
            *(*strides(p), *strides(dout), *strides(dp), *by_metric),
            *(p.shape[0] if packed else p.shape[2], 1 / math.sqrt(p.shape[-1])),
            *(work.first + done, texts, first_partial, int(done > 0)),
            **constants,
        )
