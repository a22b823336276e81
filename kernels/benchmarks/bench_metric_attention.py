# mypy: disable-error-code="import-not-found, import-untyped"
"""Checks, times and tabulates metric attention against what PyTorch offers. Needs a CUDA GPU.

    python kernels/benchmarks/bench_metric_attention.py --output table.md

Every competitor computes the same function, checked in float64 before it is timed:

    triton          the fused kernels
    sdpa-flash      scaled_dot_product_attention with q = p M, k = v = p, on each backend that takes the shape:
    sdpa-efficient  the products with M, and their gradients, are part of the time
    sdpa-cudnn
    flex            FlexAttention, compiled; the ragged batch with a block mask by text
    compiled        the plain PyTorch twin under torch.compile

The ragged case (256 texts of 5 to 512 positions, 40 in the mean) runs packed through the kernels and FlexAttention,
and padded through the others, which have no other way.

Columns: milliseconds (median), peak memory above the inputs, and the share of the card's limits that the least
possible traffic (every tensor once) and the products of the plain algorithm would reach in that time.
"""

import argparse
import datetime
import math
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import torch
import triton
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.attention.flex_attention import create_block_mask, flex_attention
from torch.nn.functional import scaled_dot_product_attention

from textcls_kernels import metric_attention
from textcls_kernels.packing import full_metric, symmetric
from textcls_kernels.testing import make_inputs

SHAPES = ((256, 4, 128, 32), (64, 8, 512, 64), (8, 16, 4096, 64))
RAGGED = (256, 4, 512, 32)  # texts, heads, longest, width
BACKENDS = {
    "sdpa-flash": SDPBackend.FLASH_ATTENTION,
    "sdpa-efficient": SDPBackend.EFFICIENT_ATTENTION,
    "sdpa-cudnn": SDPBackend.CUDNN_ATTENTION,
}
BYTES_A_SECOND, OPERATIONS_A_SECOND = 4.8e12, 989e12  # H200 data sheet: HBM3e, dense 16-bit products
Function = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]


class Case(NamedTuple):
    """One shape: the padded p, its metric, lengths where ragged, and the packed p with its cumulative lengths."""

    name: str
    p_BHNK: torch.Tensor
    metric_HL: torch.Tensor
    lengths: torch.Tensor | None
    p_THK: torch.Tensor | None
    cu_lengths: torch.Tensor | None

    @property
    def pairs(self) -> int:
        """Pairs of positions that attend to each other, over all heads."""
        texts, heads, positions, _ = self.p_BHNK.shape
        squares = texts * positions**2 if self.lengths is None else int((self.lengths.long() ** 2).sum())
        return heads * squares

    @property
    def numbers(self) -> int:
        """Numbers in p that are not padding."""
        return self.p_BHNK.numel() if self.p_THK is None else self.p_THK.numel()


class Competitor(NamedTuple):
    """A way to compute a case: a function of p and the metric, and whether its p is the packed one."""

    name: str
    function: Function
    packed: bool


def ragged_lengths(texts: int, longest: int, mean: float) -> torch.Tensor:
    """Lengths from 5 to `longest`, exponential above 5, with the mean asked for."""
    generator = torch.Generator().manual_seed(0)
    drawn = 5 - (mean - 5) * torch.rand(texts, generator=generator).clamp_min(1e-6).log()
    return drawn.round().long().clamp(5, longest)


def make_case(shape: tuple[int, int, int, int], dtype: torch.dtype, lengths: torch.Tensor | None) -> Case:
    """Draw the inputs of a shape on the GPU."""
    p, metric = make_inputs(shape, dtype, spread=0.05, device="cuda")
    if lengths is None:
        return Case(str(shape), p, metric, None, None, None)
    packed = torch.cat([p[text, :, :number].transpose(0, 1) for text, number in enumerate(lengths.tolist())])
    ends = torch.cat([torch.zeros(1, dtype=torch.int64), lengths.cumsum(0)])
    return Case(f"ragged {shape}", p, metric, lengths.cuda(), packed.contiguous(), ends.cuda())


def competitors(case: Case) -> list[Competitor]:
    """List the ways to compute a case, the kernels first."""
    lengths, cu, positions = case.lengths, case.cu_lengths, case.p_BHNK.shape[2]
    mask = None
    if lengths is not None:
        mask = (torch.arange(positions, device="cuda") < lengths[:, None])[:, None, None]

    def sdpa(backend: SDPBackend) -> Function:
        def run(p: torch.Tensor, metric: torch.Tensor) -> torch.Tensor:
            with sdpa_kernel(backend):
                return scaled_dot_product_attention(p @ symmetric(full_metric(metric)), p, p, attn_mask=mask)

        return run

    def twin(p: torch.Tensor, metric: torch.Tensor) -> torch.Tensor:
        return metric_attention(p, metric, lengths=lengths, impl="reference")

    def kernels(p: torch.Tensor, metric: torch.Tensor) -> torch.Tensor:
        return metric_attention(p, metric, cu_lengths=cu, impl="triton")

    return [
        Competitor("triton", kernels, cu is not None),
        *(Competitor(name, sdpa(backend), False) for name, backend in BACKENDS.items()),
        Competitor("flex", flex(case), cu is not None),
        Competitor("compiled", torch.compile(twin), False),
    ]


def flex(case: Case) -> Function:
    """FlexAttention over whole texts, or over packed ones with a block mask by text."""
    block_mask = None
    if case.p_THK is not None and case.cu_lengths is not None:
        total = case.p_THK.shape[0]
        text_T = torch.searchsorted(case.cu_lengths[1:], torch.arange(total, device="cuda"), right=True)

        def same_text(_b: torch.Tensor, _h: torch.Tensor, c: torch.Tensor, d: torch.Tensor) -> torch.Tensor:
            return text_T[c] == text_T[d]

        block_mask = create_block_mask(same_text, None, None, total, total, device="cuda")
    compiled = torch.compile(flex_attention)

    def run(p: torch.Tensor, metric: torch.Tensor) -> torch.Tensor:
        p_BHNK = p if p.dim() == 4 else p.transpose(0, 1)[None]
        out = compiled(p_BHNK @ symmetric(full_metric(metric)), p_BHNK, p_BHNK, block_mask=block_mask)
        return out if p.dim() == 4 else out[0].transpose(0, 1)

    return run


def check(case: Case, competitor: Competitor, p: torch.Tensor) -> float:
    """Return the relative error against float64 on the first text; raise where it is not the same function."""
    number = case.p_BHNK.shape[2] if case.lengths is None else int(case.lengths[0])
    first = case.p_BHNK[:1, :, :number]
    exact = metric_attention(first.double(), case.metric_HL.double(), impl="reference")[0]
    out = competitor.function(p, case.metric_HL)
    got = out[:number].transpose(0, 1) if competitor.packed else out[0, :, :number]
    error = float((got.double() - exact).norm() / exact.norm())
    if not error < 0.02:
        raise ValueError(f"{competitor.name} computes something else on {case.name}: relative error {error:.2g}")
    return error


def measure(function: Function, p: torch.Tensor, metric: torch.Tensor) -> dict[str, float]:
    """Return milliseconds forward, backward and both, and the peak of both in MiB above what was allocated."""
    p, metric = p.detach().requires_grad_(), metric.detach().requires_grad_()
    out = function(p, metric)
    upstream = torch.randn_like(out)

    def forward() -> None:
        with torch.no_grad():
            function(p, metric)

    def backward() -> None:
        torch.autograd.grad(out, (p, metric), upstream, retain_graph=True)

    def both() -> None:
        torch.autograd.grad(function(p, metric), (p, metric), upstream)

    both()
    torch.cuda.synchronize()
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    both()
    torch.cuda.synchronize()
    peak = (torch.cuda.max_memory_allocated() - before) / 2**20
    times = {
        run.__name__: float(triton.testing.do_bench(run, return_mode="median")) for run in (forward, backward, both)
    }
    return times | {"peak": peak}


def limits(case: Case, milliseconds: float) -> tuple[float, float]:
    """Shares of the card's bandwidth and product rate in that time, forward + backward, by the least possible work."""
    width = case.p_BHNK.shape[-1]
    # p, t out; dt, p, t in and dp out. Forward: 2 products of 2 K operations a pair; backward: 5.
    bytes_moved = 6 * case.numbers * case.p_BHNK.element_size()
    operations = 7 * 2 * width * case.pairs
    seconds = milliseconds / 1000
    return bytes_moved / seconds / BYTES_A_SECOND, operations / seconds / OPERATIONS_A_SECOND


def rows_of(case: Case) -> list[str]:
    """Measure every competitor on a case; a line of the table each, refusals included."""
    rows, fastest_other, own = [], math.inf, math.nan
    for competitor in competitors(case):
        p = case.p_THK if competitor.packed and case.p_THK is not None else case.p_BHNK
        try:
            error = check(case, competitor, p)
            took = measure(competitor.function, p, case.metric_HL)
        except (RuntimeError, torch.OutOfMemoryError) as refusal:
            reason = str(refusal).strip().splitlines()[0][:60]
            rows.append(f"| {case.name} | {competitor.name} | refused: {reason} | | | | | | |")
            continue
        if competitor.name == "triton":
            own = took["both"]
        else:
            fastest_other = min(fastest_other, took["both"])
        bandwidth, products = limits(case, took["both"])
        rows.append(
            f"| {case.name} | {competitor.name} | {took['forward']:.3f} | {took['backward']:.3f} | {took['both']:.3f} "
            f"| {took['peak']:.0f} | {bandwidth:.0%} | {products:.0%} | {error:.1e} |"
        )
    rows.append(f"| {case.name} | **fastest other / triton** | | | {fastest_other / own:.2f}x | | | | |")
    return rows


def heading(dtype: torch.dtype) -> list[str]:
    """What a table needs to be believed: device, versions, commit, date."""
    commit = subprocess.run(
        ["git", "describe", "--always", "--dirty"],
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).parent,
    )
    return [
        f"{torch.cuda.get_device_name()}, {str(dtype).removeprefix('torch.')}, torch {torch.__version__}, "
        f"triton {triton.__version__}, CUDA {torch.version.cuda}, commit {commit.stdout.strip() or 'unknown'}, "
        f"{datetime.datetime.now(datetime.UTC):%Y-%m-%d}",
        "",
        "| shape | by | forward ms | backward ms | both ms | peak MiB | of bandwidth | of products | error |",
        "|---|---|---|---|---|---|---|---|---|",
    ]


def main() -> None:
    """Measure all cases and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dtype", choices=["bfloat16", "float16", "float32"], default="bfloat16")
    parser.add_argument("--output", type=Path, help="write the table here too")
    options = parser.parse_args()
    if not torch.cuda.is_available():
        parser.error("a CUDA GPU is needed; on this machine there is none")
    dtype = getattr(torch, options.dtype)
    table = heading(dtype)
    cases: list[tuple[tuple[int, int, int, int], torch.Tensor | None]] = [(shape, None) for shape in SHAPES]
    cases.append((RAGGED, ragged_lengths(RAGGED[0], RAGGED[2], mean=40)))
    for shape, lengths in cases:
        torch.compiler.reset()
        table += rows_of(make_case(shape, dtype, lengths))
    text = "\n".join(table) + "\n"
    sys.stdout.write(text)
    if options.output:
        options.output.write_text(text)


if __name__ == "__main__":
    main()
