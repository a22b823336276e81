# mypy: disable-error-code="import-not-found, import-untyped"
# ruff: noqa: T201
"""Builds every shipped configuration for sm_90 without a GPU; of short texts, the table and the readout for sm_80 and
sm_100 too.

Not a test: `test_ahead_of_time.py` runs it in a process of its own, for Triton compiles or interprets, never both. It
prints one JSON object a kernel, or everything as the table that is kept:

    PYTHONPATH=kernels python tests/kernels/ahead_of_time.py float16
    PYTHONPATH=kernels python tests/kernels/ahead_of_time.py table > kernels/benchmarks/builds.md
"""

import contextlib
import io
import json
import os
import re
import sys
from collections.abc import Iterator
from typing import Any

import torch

if __name__ == "__main__":
    os.environ.pop("TRITON_INTERPRET", None)

import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from textcls_kernels.attention import _launch, _launch_short, _shapes, _short, _triton
from textcls_kernels.readout import _kernels as _readout
from textcls_kernels.readout import _launch as _launch_readout
from textcls_kernels.rows import _launch_table, _launch_uses, _table, _uses

WIDTHS = (16, 32, 64, 128)
ARCHITECTURES = (90, 80, 100)
TYPES = (torch.float16, torch.bfloat16, torch.float32)
POINTER = {torch.float16: "*fp16", torch.bfloat16: "*bf16", torch.float32: "*fp32"}
# Pointers whose type is not p's, integers, and the strides that are 1 for contiguous tensors.
FLOAT32 = ("lse", "delta", "partial", "scratch", "weight", "dweight", "dq", "dmetric")
INTEGERS = (
    "N",
    "S",
    "places",
    "uses",
    "slots",
    "slots_a_program",
    "programs",
    "first",
    "texts",
    "tokens",
    "types",
    "first_partial",
    "again",
    "T",
    "C",
)
# Of the table: pointers to whole numbers, and its widths, one of them no power of two.
NUMBERS = {"bounds": "*i32", "row_R": "*i32", "place_R": "*i32", "order_R": "*i64", "start_X": "*i64", "length": "*i32"}
NUMBERS |= {"token_P": "*i32", "own_VY": "*i32", "row": "*i32"}
NUMBERS |= dict.fromkeys(("start_N", "first_VY", "pair_V", "text_B", "end_VB"), "*i64")
TABLE_WIDTHS = (16, 32, 64, 100, 128, 1024)
# Of the readout: widths and numbers of seeds.
READOUTS = ((32, 1), (64, 1), (100, 2), (128, 1), (128, 4), (128, 16))
UNIT_STRIDES = ("p_k", "m_c", "o_k", "d_k", "g_k", "s_k", "y_k", "x_n")


def source(kernel: Any, constants: dict[str, Any], dtype: torch.dtype) -> ASTSource:
    """The kernel as the just-in-time compiler would see it: 16-byte pointers and strides of 16 are told apart."""
    signature: dict[str, str] = {}
    values: dict[str, Any] = {}
    attributes: dict[tuple[int, ...], list[list[Any]]] = {}
    for place, name in enumerate(kernel.arg_names):
        if name in constants or name in UNIT_STRIDES:
            signature[name], values[name] = "constexpr", constants.get(name, 1)
        elif name in ("scale", "focus"):
            signature[name] = "fp32"
        elif name in INTEGERS:
            signature[name] = "i32"
        else:
            stride = re.fullmatch("[a-z]_[a-z]", name)
            signature[name] = "i32" if stride else NUMBERS.get(name, POINTER[dtype])
            if name in FLOAT32:
                signature[name] = "*fp32"
            if name == "target" and constants["HARD"]:
                signature[name] = "*i64"
            attributes[(place,)] = [["tt.divisibility", 16]]
    return ASTSource(fn=kernel, signature=signature, constexprs=values, attrs=attributes)


def build(kernel: Any, constants: dict[str, Any], dtype: torch.dtype, architecture: int = 90) -> dict[str, Any]:
    resources = ("num_warps", "num_stages", "maxnreg")
    options: dict[str, Any] = {name: constants.pop(name) for name in resources if name in constants}
    log = io.StringIO()
    target = GPUTarget("cuda", architecture, 32)
    with contextlib.redirect_stdout(log), contextlib.redirect_stderr(log):
        built = triton.compile(source(kernel, constants, dtype), target=target, options=options)
    registers = re.search(r"Used (\d+) registers", log.getvalue())
    spills = re.search(r"(\d+) bytes spill stores, (\d+) bytes spill loads", log.getvalue())
    assert registers is not None
    assert spills is not None
    told = ("K", "D", "S", "SETS", "BLOCK_M", "BLOCK_N", "WIDE", "EVEN", "CAUSAL", "PACKED", "LOOP")
    return {
        "kernel": kernel.__name__,
        "architecture": architecture,
        "type": str(dtype).removeprefix("torch."),
        **{name: constants[name] for name in told if name in constants},
        **options,
        "registers": int(registers[1]),
        "spilled": int(spills[1]) + int(spills[2]),
        "shared": built.metadata.shared,
        "wgmma": built.asm["ptx"].count("wgmma.mma_async"),
        "mma": len(re.findall(r"\bmma\.sync", built.asm["ptx"])),
        "tcgen05": built.asm["ptx"].count("tcgen05.mma"),
    }


def build_all(dtype: torch.dtype) -> Iterator[dict[str, Any]]:
    for width in WIDTHS:
        p = torch.empty(1, 1, 64, width, dtype=dtype)
        size = p.element_size()
        for kernel, table in ((_triton.forward_kernel, _launch.FORWARD), (_triton.backward_kernel, _launch.BACKWARD)):
            config = table[width][size]
            # The two most masked variants, and the one without masks.
            for is_packed, causal in ((True, False), (True, True), (False, False)):
                yield build(kernel, _launch.attention_constants(p, None, is_packed, config, causal), dtype)
        seeds = torch.empty(1, 1, width, dtype=dtype)
        for kernel in (_triton.seed_forward_kernel, _triton.seed_backward_kernel):
            yield build(kernel, _launch.seed_constants(seeds, p, None, True), dtype)
    narrow = torch.empty(1, 1, 64, 24, dtype=dtype)  # a width that is padded
    config = _launch.BACKWARD[32][narrow.element_size()]
    yield build(_triton.backward_kernel, _launch.attention_constants(narrow, None, True, config), dtype)
    yield build(_triton.delta_kernel, {"K": 128, "BLOCK_M": 64, "BLOCK_K": 128}, dtype)
    common = {"K": 128, "BLOCK_K": 128, "PACKED_METRIC": True}
    yield build(_triton.prepare_metric_kernel, common | {"BLOCK": 256}, dtype)
    yield build(_triton.metric_gradient_kernel, common | {"ROWS": 64, "EDGE": 8}, dtype)
    for architecture in ARCHITECTURES:
        # What differs between the 16-bit types is a letter in an instruction.
        if architecture == 90 or dtype != torch.bfloat16:
            yield from build_short(dtype, architecture)
        if dtype == torch.float32:
            yield from build_table(architecture)
            yield from build_readout(architecture)


def build_short(dtype: torch.dtype, architecture: int) -> Iterator[dict[str, Any]]:
    """The kernels for short texts, masked, and where there are most registers in use, without masks."""
    table = _shapes.SHORT[architecture // 10]
    for (width, size), configs in table.items():
        if size != dtype.itemsize:
            continue
        metric = torch.empty(1, width * (width + 1) // 2)
        for block, config in configs.items():
            all_three = block == max(configs) and architecture == 90
            variants = ((True, False), (True, True), (False, False)) if all_three else ((True, False),)
            for packed, causal in variants:
                p = torch.empty(1, 1, block, width, dtype=dtype)
                forward, backward = (
                    _launch_short.short_constants(p, metric, None, packed, block, warps, causal)
                    for warps in (config.forward_warps, config.backward_warps)
                )
                yield build(_short.short_forward_kernel, forward, dtype, architecture)
                yield build(_short.short_backward_kernel, backward | {"LOOP": config.loop}, dtype, architecture)


def build_table(architecture: int) -> Iterator[dict[str, Any]]:
    """The kernels of the table, which know float32 alone, and that of its uses, which has whole numbers alone."""
    for width in TABLE_WIDTHS:
        gather, adagrad = _launch_table.gather_constants(width), _launch_table.adagrad_constants(width)
        yield build(_table.gather_kernel, gather, torch.float32, architecture)
        for kernel in (_table.adagrad_kernel, _table.adagrad_pieces_kernel):
            yield build(kernel, dict(adagrad), torch.float32, architecture)
    yield build(_uses.uses_kernel, dict(_launch_uses.CONSTANTS), torch.float32, architecture)


def build_readout(architecture: int) -> Iterator[dict[str, Any]]:
    """The kernels of the readout with all that is optional, of both losses."""
    options = {"NORM": True, "ADDED": True}
    for width, seeds in READOUTS:
        constants = _launch_readout.readout_constants(width, seeds, labels=150) | options
        for sets in (False, True):
            loss = {"KEEP": True, "ROWS": True, "SETS": sets, "HARD": not sets}
            yield build(_readout.readout_forward_kernel, constants | loss, torch.float32, architecture)
        yield build(_readout.readout_backward_kernel, constants, torch.float32, architecture)


def print_table() -> None:
    """Every build, a line each."""
    print(f"Builds of every kernel, Triton {triton.__version__}, by `tests/kernels/ahead_of_time.py table`, no GPU.")
    print("D is the width of a table's rows and of the readout's vectors, S its seeds, SETS the loss of several labels")
    print("a text; EVEN is the variant without masks, LOOP a program that goes through several texts; registers are a")
    print("thread's, shared memory a block's, in bytes; the last three columns count products in the program text.\n")
    columns = [
        "kernel",
        "architecture",
        "type",
        "K",
        "D",
        "S",
        "SETS",
        "BLOCK_M",
        "BLOCK_N",
        "WIDE",
        "EVEN",
        "CAUSAL",
        "LOOP",
        "num_warps",
    ]
    columns += ["num_stages", "registers", "spilled", "shared", "wgmma", "mma", "tcgen05"]
    print(f"| {' | '.join(columns)} |\n|{'---|' * len(columns)}")
    for dtype in TYPES:
        for row in build_all(dtype):
            cells = (row.get(column, "") for column in columns)
            words = ({True: "yes", False: "no"}.get(cell, cell) if isinstance(cell, bool) else cell for cell in cells)
            print(f"| {' | '.join(str(word) for word in words)} |", flush=True)


if __name__ == "__main__":
    triton.knobs.compilation.always_compile = True
    triton.knobs.nvidia.dump_ptxas_log = True
    if sys.argv[1] == "table":
        print_table()
    else:
        for row in build_all(getattr(torch, sys.argv[1])):
            print(json.dumps(row), flush=True)
