"""Every rule about the arguments, in one pure function that all implementations run.

A message contains the rule, what was expected, and what was given. `check_arguments` looks only at shapes, types and
devices: reading values would wait for the GPU and could not be traced. The ends of texts in a packed batch decide what
memory is read, so they are read and checked all the same, by `check_ends` in an operator (`texts.py`). Out-of-range
lengths of a padded batch are clamped by every implementation.

Letters: B texts, H heads, N positions, T positions of all texts together, S seeds, K width of a head.
"""

from typing import NoReturn

import torch

from textcls_kernels.attention.packing import packed_width

MIN_WIDTH, MAX_WIDTH = 8, 128
MAX_SEEDS = 16
FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
INTEGERS = (torch.int32, torch.int64)


def _refuse(rule: str, expected: object, got: object) -> NoReturn:
    raise ValueError(f"{rule}; expected {expected}, got {got}")


def check_arguments(
    p: torch.Tensor,
    metric: torch.Tensor,
    lengths: torch.Tensor | None,
    cu_lengths: torch.Tensor | None,
    seeds: torch.Tensor | None = None,
) -> None:
    """Check the arguments of `metric_attention` and, with `seeds`, of `seed_metric_attention`.

    Args:
        p: [B, H, N, K], or [T, H, K] with `cu_lengths`; float16, bfloat16, float32 or float64; 8 <= K <= 128.
        metric: [H, K(K + 1)/2] or [H, K, K]; the type of p or float32.
        lengths: [B] or None; int32 or int64.
        cu_lengths: [B + 1] or None; int32 or int64.
        seeds: [H, S, K] or None; the type of p or float32; 1 <= S <= 16.

    Raises:
        ValueError: a shape or a device breaks a rule.
        TypeError: a type breaks a rule.
    """
    _check_layout(p, lengths, cu_lengths)
    heads, width = p.shape[1], p.shape[-1]
    if not MIN_WIDTH <= width <= MAX_WIDTH:
        _refuse("the width K of a head is bounded", f"{MIN_WIDTH} <= K <= {MAX_WIDTH}", f"K = {width}")
    _check_metric(metric, heads, width)
    if seeds is not None:
        _check_seeds(seeds, heads, width)
    _check_types(p, {"metric": metric, "seeds": seeds}, {"lengths": lengths, "cu_lengths": cu_lengths})


def _check_layout(p: torch.Tensor, lengths: torch.Tensor | None, cu_lengths: torch.Tensor | None) -> None:
    if lengths is not None and cu_lengths is not None:
        _refuse("a batch is padded or packed, not both", "lengths or cu_lengths", "both")
    if cu_lengths is None:
        if p.dim() != 4:
            _refuse("p of a padded batch is [B, H, N, K]", "4 dimensions", list(p.shape))
        if lengths is not None and lengths.shape != p.shape[:1]:
            _refuse("lengths holds one number a text", list(p.shape[:1]), list(lengths.shape))
        return
    if p.dim() != 3:
        _refuse("p of a packed batch (cu_lengths given) is [T, H, K]", "3 dimensions", list(p.shape))
    check_cu_lengths(cu_lengths)


def check_cu_lengths(cu_lengths: torch.Tensor) -> None:
    """Check the shape and type of `cu_lengths`; raise ValueError or TypeError."""
    if cu_lengths.dim() != 1 or cu_lengths.shape[0] < 1:
        _refuse("cu_lengths holds 0 and the end of each text", "[B + 1]", list(cu_lengths.shape))
    _check_integers("cu_lengths", cu_lengths)


def check_ends(ends: torch.Tensor, rows: int) -> None:
    """Check the values of `cu_lengths`, [B + 1] on the CPU, against the rows of p; raise ValueError."""
    if int(ends[0]) != 0:
        _refuse("cu_lengths starts at 0", 0, int(ends[0]))
    falls = (ends.diff() < 0).nonzero()
    if len(falls):
        place = int(falls[0]) + 1
        _refuse(f"cu_lengths does not decrease, but does at place {place}", f">= {ends[place - 1]}", int(ends[place]))
    if int(ends[-1]) != rows:
        _refuse("cu_lengths ends at the number of p's rows", rows, int(ends[-1]))


def check_rows(p: torch.Tensor, rows: int) -> None:
    """Check that p has the rows that its texts were packed for; raise ValueError."""
    if p.shape[0] != rows:
        _refuse("packed_texts was made for another number of rows than p has", rows, p.shape[0])


def _check_integers(name: str, tensor: torch.Tensor) -> None:
    if tensor.dtype not in INTEGERS:
        raise TypeError(f"{name} counts positions; expected int32 or int64, got {tensor.dtype}")


def _check_metric(metric: torch.Tensor, heads: int, width: int) -> None:
    packed, full = [heads, width * (width + 1) // 2], [heads, width, width]
    if list(metric.shape) in (packed, full):
        return
    got = str(list(metric.shape))
    if metric.dim() == 2 and packed_width(metric.shape[1]) is not None:
        got += f" (the packed numbers of {metric.shape[0]} heads of width {packed_width(metric.shape[1])})"
    _refuse("the metric is packed [H, K(K + 1)/2] or full [H, K, K] for p's H and K", f"{packed} or {full}", got)


def _check_seeds(seeds: torch.Tensor, heads: int, width: int) -> None:
    if seeds.dim() != 3 or seeds.shape[0] != heads or seeds.shape[2] != width:
        _refuse("seeds are [H, S, K] for p's H and K", [heads, "S", width], list(seeds.shape))
    if not 1 <= seeds.shape[1] <= MAX_SEEDS:
        _refuse("the number of seeds is bounded", f"1 <= S <= {MAX_SEEDS}", f"S = {seeds.shape[1]}")


def _check_types(
    p: torch.Tensor, parameters: dict[str, torch.Tensor | None], integers: dict[str, torch.Tensor | None]
) -> None:
    if p.dtype not in FLOATS:
        raise TypeError(f"p is floating; expected one of {list(FLOATS)}, got {p.dtype}")
    for name, tensor in parameters.items():
        if tensor is not None and tensor.dtype not in (p.dtype, torch.float32):
            raise TypeError(f"{name} has p's type or float32; expected {p.dtype} or float32, got {tensor.dtype}")
    for name, tensor in integers.items():
        if tensor is not None:
            _check_integers(name, tensor)
    for name, tensor in (parameters | integers).items():
        if tensor is not None and tensor.device != p.device:
            _refuse(f"{name} lies where p lies", p.device, tensor.device)
