# mypy: disable-error-code="import-not-found, import-untyped"
# ruff: noqa: T201
"""Builds every shipped configuration for sm_90 without a GPU; prints one JSON object a kernel.

Not a test: `test_ahead_of_time.py` runs it in a process of its own, for Triton compiles or interprets, never both.

    python ahead_of_time.py float16
"""

import contextlib
import io
import json
import os
import re
import sys
from typing import Any

import torch

if __name__ == "__main__":
    os.environ.pop("TRITON_INTERPRET", None)

import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from textcls_kernels import _launch, _triton

WIDTHS = (16, 32, 64, 128)
POINTER = {torch.float16: "*fp16", torch.bfloat16: "*bf16", torch.float32: "*fp32"}
# Pointers whose type is not p's, integers, and the strides that are 1 for contiguous tensors.
FLOAT32 = ("lse", "delta", "partial", "scratch", "weight", "dweight", "dq", "dmetric")
INTEGERS = ("N", "S", "slots", "slots_a_program", "programs")
UNIT_STRIDES = ("p_k", "m_c", "o_k", "d_k", "g_k", "s_k", "y_k", "x_n")


def source(kernel: Any, constants: dict[str, Any], dtype: torch.dtype) -> ASTSource:
    """The kernel as the just-in-time compiler would see it: 16-byte pointers and strides of 16 are told apart."""
    signature: dict[str, str] = {}
    values: dict[str, Any] = {}
    attributes: dict[tuple[int, ...], list[list[Any]]] = {}
    for place, name in enumerate(kernel.arg_names):
        if name in constants or name in UNIT_STRIDES:
            signature[name], values[name] = "constexpr", constants.get(name, 1)
        elif name == "scale":
            signature[name] = "fp32"
        elif name in INTEGERS:
            signature[name] = "i32"
        else:
            stride = re.fullmatch("[a-z]_[a-z]", name)
            signature[name] = "i32" if stride else "*i32" if name == "bounds" else POINTER[dtype]
            if name in FLOAT32:
                signature[name] = "*fp32"
            attributes[(place,)] = [["tt.divisibility", 16]]
    return ASTSource(fn=kernel, signature=signature, constexprs=values, attrs=attributes)


def build(kernel: Any, constants: dict[str, Any], dtype: torch.dtype) -> None:
    options: dict[str, Any] = {name: constants.pop(name) for name in ("num_warps", "num_stages") if name in constants}
    log = io.StringIO()
    with contextlib.redirect_stdout(log), contextlib.redirect_stderr(log):
        built = triton.compile(source(kernel, constants, dtype), target=GPUTarget("cuda", 90, 32), options=options)
    registers = re.search(r"Used (\d+) registers", log.getvalue())
    spills = re.search(r"(\d+) bytes spill stores, (\d+) bytes spill loads", log.getvalue())
    assert registers is not None
    assert spills is not None
    row: dict[str, Any] = {
        "kernel": kernel.__name__,
        "type": str(dtype).removeprefix("torch."),
        **{
            name: constants[name] for name in ("K", "BLOCK_M", "BLOCK_N", "WIDE", "EVEN", "PACKED") if name in constants
        },
        **options,
        "registers": int(registers[1]),
        "spilled": int(spills[1]) + int(spills[2]),
        "shared": built.metadata.shared,
        "wgmma": built.asm["ptx"].count("wgmma.mma_async"),
        "mma": len(re.findall(r"\bmma\.sync", built.asm["ptx"])),
    }
    print(json.dumps(row), flush=True)


def build_all(dtype: torch.dtype) -> None:
    for width in WIDTHS:
        p = torch.empty(1, 1, 64, width, dtype=dtype)
        size = p.element_size()
        for kernel, table in ((_triton.forward_kernel, _launch.FORWARD), (_triton.backward_kernel, _launch.BACKWARD)):
            config = table[width][size]
            for is_packed in (True, False):  # the most masked variant, and the one without masks
                build(kernel, _launch.attention_constants(p, None, is_packed, config), dtype)
        seeds = torch.empty(1, 1, width, dtype=dtype)
        for kernel in (_triton.seed_forward_kernel, _triton.seed_backward_kernel):
            build(kernel, _launch.seed_constants(seeds, p, None, True), dtype)
    narrow = torch.empty(1, 1, 64, 24, dtype=dtype)  # a width that is padded
    config = _launch.BACKWARD[32][narrow.element_size()]
    build(_triton.backward_kernel, _launch.attention_constants(narrow, None, True, config), dtype)
    build(_triton.delta_kernel, {"K": 128, "BLOCK_M": 64, "BLOCK_K": 128}, dtype)
    common = {"K": 128, "BLOCK_K": 128, "PACKED_METRIC": True}
    build(_triton.prepare_metric_kernel, common | {"BLOCK": 256}, dtype)
    build(_triton.metric_gradient_kernel, common | {"ROWS": 16, "BLOCK": 128}, dtype)


if __name__ == "__main__":
    triton.knobs.compilation.always_compile = True
    triton.knobs.nvidia.dump_ptxas_log = True
    build_all(getattr(torch, sys.argv[1]))
