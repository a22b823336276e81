# mypy: disable-error-code="import-not-found, import-untyped, no-untyped-call"
# ruff: noqa: T201
"""Checks, times and tabulates metric attention against what PyTorch offers at its best. Needs a CUDA GPU, or `--dry`.

    PYTHONPATH=kernels python kernels/benchmarks/bench_metric_attention.py --output table.md
    PYTHONPATH=kernels python kernels/benchmarks/bench_metric_attention.py --dry        no GPU: all of it, without times

First the tests of the kernels run, and nothing is timed unless they pass. Then, for each case, every competitor
computes the same function; its values, dp and dM on several texts are held against float64, then it is timed:

    kernels          the fused kernels; a packed batch's texts are prepared beforehand (`packed_texts`)
    sdpa-flash       q = p M and scaled_dot_product_attention(q, p, p), compiled as one function by torch.compile,
    sdpa-cudnn       on each backend that takes the shape
    sdpa-efficient
    flex             FlexAttention with the projection, compiled as one function; packed texts by a block mask
    varlen           torch.nn.attention.varlen on packed texts, with the projection, compiled as one function
    twin             the plain PyTorch twin, compiled

Ragged texts run packed through the kernels, flex and varlen, and padded through the others, which have no other way.
Seed attention, which training uses, has the compiled twin as its competitor.

A cell of times is the median of the repeats and, in brackets, the least and the greatest, in microseconds: replayed
as a CUDA graph, which is what the GPU needs, and eager, launches from Python included. Inputs stay in the cache from
run to run, for everyone. TFLOP/s count the products of the plain algorithm, alike for all: 2 of each pair of positions
forward, 5 backward, and the projection, 1 and 2; by graph where there is one, else eager. Ratios are a competitor's
time over that of the kernels, by graph where both have one, else both eager. A competitor that fails is a row that
says so. Each row is on disk before the next is measured.
"""

import argparse
import datetime
import math
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cache, partial
from pathlib import Path
from typing import NamedTuple, TextIO

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention

from textcls_kernels import PackedTexts, metric_attention, packed_texts, seed_metric_attention
from textcls_kernels.attention.packing import full_metric, symmetric
from textcls_kernels.testing import make_inputs

ROOT = Path(__file__).parents[2]
TESTS = ("tests/kernels/test_short.py", "tests/kernels/test_kernels.py")
DRY_TESTS = ("tests/kernels/test_short.py::test_a_step_of_short_texts_is_three_launches",)
BACKENDS = {
    "sdpa-flash": SDPBackend.FLASH_ATTENTION,
    "sdpa-cudnn": SDPBackend.CUDNN_ATTENTION,
    "sdpa-efficient": SDPBackend.EFFICIENT_ATTENTION,
}
PHASES = ("forward", "backward", "both")
# Relative errors beyond which a competitor computes something else: of t and dp, and of dM, which all but the kernels
# make from a rounded t.
LIMITS = {torch.float32: (5e-3, 5e-2), torch.float16: (1e-2, 5e-2), torch.bfloat16: (3e-2, 2e-1)}
Function = Callable[..., torch.Tensor]
Tensors = tuple[torch.Tensor, ...]


class Shape(NamedTuple):
    """What is measured: texts, heads, positions, width; ragged lengths of a mean, or seeds, where they are given."""

    texts: int
    heads: int
    positions: int
    width: int
    dtype: torch.dtype
    mean: int = 0
    seeds: int = 0

    @property
    def name(self) -> str:
        """The first cell of a row."""
        kind = f"ragged, mean {self.mean}, " if self.mean else f"{self.seeds} seeds, " if self.seeds else ""
        sizes = f"{self.texts}x{self.heads}x{self.positions}x{self.width}"
        return f"{kind}{sizes} {str(self.dtype).removeprefix('torch.')}"


HALF, FULL = torch.bfloat16, torch.float32
SHAPES = (
    Shape(256, 4, 128, 32, HALF),
    Shape(256, 4, 512, 32, HALF, mean=40),
    Shape(256, 4, 128, 64, HALF),
    Shape(256, 4, 128, 32, HALF, seeds=1),
    Shape(1024, 4, 40, 32, HALF),
    Shape(64, 8, 512, 64, HALF),
    Shape(256, 4, 64, 128, HALF),
    Shape(256, 4, 128, 32, FULL),
    Shape(256, 4, 128, 32, FULL, seeds=1),
    Shape(8, 16, 4096, 64, HALF),
    Shape(16, 8, 512, 128, HALF),
    Shape(64, 8, 512, 64, FULL),
)
DRY_SHAPES = (
    Shape(3, 2, 10, 16, torch.float16),
    Shape(4, 2, 20, 16, FULL, mean=8),
    Shape(3, 2, 10, 16, FULL, seeds=1),
)


class Case(NamedTuple):
    """A shape's inputs: what is differentiated, padded and packed, and where its texts lie."""

    shape: Shape
    padded: Tensors
    packed: Tensors | None
    lengths: list[int]
    texts: PackedTexts | None

    @property
    def device(self) -> torch.device:
        """Where it lies."""
        return self.padded[0].device

    def operations(self, phase: str) -> float:
        """Operations of the plain algorithm."""
        heads, width = self.shape.heads, self.shape.width
        queries = [self.shape.seeds or length for length in self.lengths]
        pairs = heads * sum(query * length for query, length in zip(queries, self.lengths, strict=True))
        rows = heads * (self.shape.seeds or sum(self.lengths))
        forward, backward = (2 * width * (a * pairs + b * width * rows) for a, b in ((2, 1), (5, 2)))
        return {"forward": forward, "backward": backward, "both": forward + backward}[phase]


class Competitor(NamedTuple):
    """A way to compute a case; whether its inputs are the packed ones; a context to call it in."""

    name: str
    function: Function
    packed: bool = False
    context: Callable[[], AbstractContextManager[object]] = nullcontext


class Timing(NamedTuple):
    """Repeats of one measurement, in microseconds."""

    repeats: tuple[float, ...]

    @property
    def median(self) -> float:
        """The middle one."""
        return statistics.median(self.repeats)

    def __str__(self) -> str:
        return f"{self.median:.1f} [{min(self.repeats):.1f}, {max(self.repeats):.1f}]"


def make_case(shape: Shape, device: str) -> Case:
    """Draw the inputs of a shape."""
    sizes = (shape.texts, shape.heads, shape.positions, shape.width)
    p, metric = make_inputs(sizes, shape.dtype, scale=0.5, spread=0.05, device=device)
    # As training has it: the projection is [B, N, H, K], read as [B, H, N, K].
    p = p.transpose(1, 2).contiguous().transpose(1, 2)
    if shape.seeds:
        seeds = torch.randn(shape.heads, shape.seeds, shape.width, generator=torch.Generator().manual_seed(2))
        return Case(shape, (seeds.to(p), p, metric), None, [shape.positions] * shape.texts, None)
    if not shape.mean:
        return Case(shape, (p, metric), None, [shape.positions] * shape.texts, None)
    lengths = ragged_lengths(shape)
    packed = torch.cat([p[text, :, :length].transpose(0, 1) for text, length in enumerate(lengths)]).contiguous()
    ends = torch.tensor([0, *lengths], device=device).cumsum(0)
    return Case(shape, (p, metric), (packed, metric), lengths, packed_texts(ends, packed.shape[0]))


def ragged_lengths(shape: Shape) -> list[int]:
    """Lengths from 5 to the longest, exponential above 5, with about the mean asked for."""
    generator = torch.Generator().manual_seed(0)
    drawn = 5 - (shape.mean - 5) * torch.rand(shape.texts, generator=generator).clamp_min(1e-6).log()
    numbers: list[int] = drawn.round().long().clamp(5, shape.positions).tolist()
    return numbers


def competitors(case: Case, compiler: str) -> Iterator[Competitor]:
    """The ways to compute a case, the kernels first. They are built when they are asked for."""
    compiled = partial(torch.compile, backend=compiler, dynamic=False)
    if case.shape.seeds:
        yield Competitor("kernels", lambda s, p, m: seed_metric_attention(s, p, m, impl="triton")[0])
        yield Competitor("twin", compiled(lambda s, p, m: seed_metric_attention(s, p, m, impl="reference")[0]))
        return
    texts, lengths = case.texts, None
    if texts is not None:
        lengths = texts.cu_lengths.diff()
    yield Competitor("kernels", partial(metric_attention, cu_lengths=texts, impl="triton"), texts is not None)
    mask = None
    if lengths is not None:
        positions = torch.arange(case.shape.positions, device=case.device)
        mask = (positions < lengths[:, None])[:, None, None]

    def sdpa(p: torch.Tensor, metric: torch.Tensor) -> torch.Tensor:
        return scaled_dot_product_attention(p @ symmetric(full_metric(metric)), p, p, attn_mask=mask)

    for name, backend in BACKENDS.items():
        yield Competitor(name, compiled(sdpa), context=partial(sdpa_kernel, backend))
    yield Competitor("flex", flex(case, compiled), texts is not None)
    if texts is not None:
        yield Competitor("varlen", compiled(varlen(case, texts)), True)
    yield Competitor("twin", compiled(partial(metric_attention, lengths=lengths, impl="reference")))


def flex(case: Case, compiled: Callable[[Function], Function]) -> Function:
    """FlexAttention, built when it is first called: what fails there is a row of the table."""
    built = cache(lambda: compiled(build_flex(case)))
    return lambda p, metric: built()(p, metric)


def build_flex(case: Case) -> Function:
    """FlexAttention over whole texts, or over packed ones with a block mask by text."""
    from torch.nn.attention.flex_attention import BlockMask, create_block_mask, flex_attention

    def attend(p: torch.Tensor, metric: torch.Tensor, mask: BlockMask | None = None) -> torch.Tensor:
        out = flex_attention(p @ symmetric(full_metric(metric)), p, p, block_mask=mask)
        assert isinstance(out, torch.Tensor)
        return out

    if case.texts is None:
        return attend
    total, cu = case.texts.rows, case.texts.cu_lengths
    text_T = torch.searchsorted(cu[1:], torch.arange(total, device=case.device, dtype=cu.dtype), right=True)

    def same_text(_b: torch.Tensor, _h: torch.Tensor, c: torch.Tensor, d: torch.Tensor) -> torch.Tensor:
        return text_T[c] == text_T[d]

    mask = create_block_mask(same_text, None, None, total, total, device=case.device.type)
    return lambda p, metric: attend(p.transpose(0, 1)[None], metric, mask)[0].transpose(0, 1)


def varlen(case: Case, texts: PackedTexts) -> Function:
    """PyTorch's attention over packed texts."""

    def run(p: torch.Tensor, metric: torch.Tensor) -> torch.Tensor:
        from torch.nn.attention.varlen import varlen_attn

        q = torch.einsum("thk,hkl->thl", p, symmetric(full_metric(metric)))
        longest = max(case.lengths)
        out = varlen_attn(q, p, p, texts.cu_lengths, texts.cu_lengths, longest, longest)
        assert isinstance(out, torch.Tensor)
        return out

    return run


def check(case: Case, competitor: Competitor, leaves: Tensors) -> dict[str, float]:
    """Relative errors of t, dp and dM against float64, for a gradient that comes from several texts alone."""
    chosen = sorted({0, case.shape.texts // 3, case.shape.texts - 1, case.lengths.index(max(case.lengths))})
    with competitor.context():
        out = competitor.function(*leaves)
    generator = torch.Generator().manual_seed(1)
    upstream = torch.zeros_like(out)
    exact_out, exact_p, got_out, got_p = [], [], [], []
    exact_metric = torch.zeros_like(leaves[-1], dtype=torch.float64)
    starts = [0, *torch.tensor(case.lengths).cumsum(0).tolist()]
    places: list[tuple[int | slice, ...]] = []
    for text in chosen:
        place: tuple[int | slice, ...] = (text, slice(None), slice(0, case.lengths[text]))
        if case.shape.seeds:
            place = (text,)
        elif competitor.packed:
            place = (slice(starts[text], starts[text + 1]),)
        drawn = torch.randn(out[place].shape, generator=generator, dtype=torch.float64)
        upstream[place] = drawn.to(upstream)
        places.append(place)
    gradients = torch.autograd.grad(out, leaves, upstream)
    for text, place in zip(chosen, places, strict=True):
        t, dp, dmetric = exact_text(case, text, upstream[place], competitor.packed)
        exact_out.append(t)
        exact_p.append(dp)
        exact_metric += dmetric
        got_out.append(out[place].detach().transpose(0, 1) if competitor.packed else out[place].detach())
        of_p = gradients[-2]
        if competitor.packed:
            got_p.append(of_p[place].transpose(0, 1))
        else:
            got_p.append(of_p[text, :, : case.lengths[text]])
    pairs: dict[str, tuple[list[torch.Tensor], list[torch.Tensor]]] = {
        "t": (got_out, exact_out),
        "dp": (got_p, exact_p),
        "dM": ([gradients[-1]], [exact_metric]),
    }
    return {name: relative(*pair) for name, pair in pairs.items()}


def exact_text(case: Case, text: int, upstream: torch.Tensor, packed: bool) -> Tensors:
    """(t, dp, dM) of one text in float64, from the twin."""
    *seeds, p, metric = (leaf.detach().double() for leaf in case.padded)
    own = p[text : text + 1, :, : case.lengths[text]].clone().requires_grad_()
    metric.requires_grad_()
    if seeds:
        t = seed_metric_attention(seeds[0], own, metric, impl="reference")[0]
    else:
        t = metric_attention(own, metric, impl="reference")
    of_t = upstream.double().transpose(0, 1)[None] if packed else upstream.double()[None]
    dp, dmetric = torch.autograd.grad(t, (own, metric), of_t)
    return t[0].detach(), dp[0], dmetric


def relative(got: Sequence[torch.Tensor], exact: Sequence[torch.Tensor]) -> float:
    """Norm of the difference over the norm."""
    gap = sum(float((a.double() - b).square().sum()) for a, b in zip(got, exact, strict=True))
    return math.sqrt(gap / max(sum(float(b.square().sum()) for b in exact), 1e-300))


def wrong(errors: dict[str, float], dtype: torch.dtype) -> list[str]:
    """Names of the tensors that are beyond their limits; NaN is."""
    near, of_metric = LIMITS[dtype]
    return [name for name, error in errors.items() if not error <= (of_metric if name == "dM" else near)]


def phases(competitor: Competitor, leaves: Tensors) -> dict[str, Callable[[], object]]:
    """What is timed: forward without a graph of gradients, backward alone, and both."""
    with competitor.context():
        out = competitor.function(*leaves)
    upstream = torch.randn_like(out)

    def forward() -> object:
        with torch.no_grad(), competitor.context():
            return competitor.function(*leaves)

    def backward() -> object:
        return torch.autograd.grad(out, leaves, upstream, retain_graph=True)

    def both() -> object:
        with competitor.context():
            return torch.autograd.grad(competitor.function(*leaves), leaves, upstream)

    return {"forward": forward, "backward": backward, "both": both}


def time_calls(call: Callable[[], object], repeats: int, seconds: float = 0.05) -> Timing:
    """Microseconds a call, from the GPU's clock around enough calls to fill `seconds`, `repeats` times."""

    def run(number: int) -> float:
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        for _ in range(number):
            call()
        end.record()
        end.synchronize()
        return float(start.elapsed_time(end)) * 1000 / number

    run(3)
    number = max(5, min(2000, int(seconds * 1e6 / max(run(5), 1e-3))))
    return Timing(tuple(run(number) for _ in range(repeats)))


def by_graph(call: Callable[[], object], repeats: int) -> Timing:
    """The same, replayed as a CUDA graph."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            call()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        call()
    return time_calls(graph.replay, repeats)


def reason(error: BaseException) -> str:
    """A failure in the words of a cell."""
    lines = str(error).strip().splitlines() or [""]
    return f"{type(error).__name__}: {lines[0]}".replace("|", "/")[:90]


class Measured(NamedTuple):
    """A competitor on a case: errors, times by phase, by graph and eager, and the peak of memory; or why not."""

    errors: dict[str, float]
    graph: dict[str, Timing]
    eager: dict[str, Timing]
    peak: float
    failure: str = ""

    def best(self, phase: str) -> float:
        """Microseconds by graph, else eager; NaN where there is neither."""
        timing = self.graph.get(phase) or self.eager.get(phase)
        return timing.median if timing else math.nan

    def ratio(self, own: "Measured", phase: str) -> float:
        """A time over that of `own`, taken in the same way: both by graph, else both eager, else NaN."""
        for times, others in ((self.graph, own.graph), (self.eager, own.eager)):
            if phase in times and phase in others:
                return times[phase].median / others[phase].median
        return math.nan


def measure(case: Case, competitor: Competitor, repeats: int, dry: bool) -> Measured:
    """Check, then time. A graph that cannot be captured leaves its cell empty."""
    inputs = case.packed if competitor.packed and case.packed is not None else case.padded
    leaves = tuple(tensor.detach().requires_grad_() for tensor in inputs)
    errors = check(case, competitor, leaves)
    beyond = wrong(errors, case.shape.dtype)
    if beyond or dry:
        return Measured(errors, {}, {}, math.nan, f"computes something else: {', '.join(beyond)}" if beyond else "")
    torch.cuda.synchronize()
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    calls = phases(competitor, leaves)
    calls["both"]()
    torch.cuda.synchronize()
    peak = (torch.cuda.max_memory_allocated() - before) / 2**20
    eager = {name: time_calls(call, repeats) for name, call in calls.items()}
    graph = {}
    for name in PHASES:
        try:
            graph[name] = by_graph(phases(competitor, leaves)[name], repeats)
        except Exception as error:  # whatever it is, eager times stand
            print(f"no graph of {competitor.name}, {name}: {reason(error)}", file=sys.stderr)
            torch.cuda.synchronize()
    return Measured(errors, graph, eager, peak)


def attempt(case: Case, competitor: Competitor, repeats: int, dry: bool) -> Measured:
    """Measure; a failure is a result too."""
    try:
        return measure(case, competitor, repeats, dry)
    except Exception as error:  # one competitor does not end the run
        return Measured({}, {}, {}, math.nan, reason(error))


COLUMNS = [
    *("case", "by", "error t", "error dp", "error dM"),
    *(f"{phase} us, {how}" for phase in PHASES for how in ("graph", "eager")),
    *(f"{phase} ratio" for phase in PHASES),
    *("TFLOP/s forward", "TFLOP/s backward", "peak MiB", "note"),
]


def row(case: Case, name: str, result: Measured, own: Measured | None) -> str:
    """A line of the table."""
    cells = [
        case.shape.name,
        name,
        *(f"{result.errors[e]:.1e}" if e in result.errors else "" for e in ("t", "dp", "dM")),
    ]
    for phase in PHASES:
        cells += [str(timings.get(phase, "")) for timings in (result.graph, result.eager)]
    ratios = [result.ratio(own, phase) if own else math.nan for phase in PHASES]
    speeds = [case.operations(phase) / result.best(phase) / 1e6 for phase in ("forward", "backward")]
    cells += [f"{number:.2f}" if number == number else "" for number in ratios]  # NaN is a blank
    cells += [f"{number:.1f}" if number == number else "" for number in speeds]
    cells += [f"{result.peak:.0f}" if result.peak == result.peak else "", result.failure]
    return f"| {' | '.join(cells)} |"


def ceilings(repeats: int) -> list[str]:
    """What this machine reaches now: products of 8192 x 8192 matrices, and a copy of 1 GiB read and written."""
    lines = []
    for dtype, tf32 in ((torch.bfloat16, False), (torch.float16, False), (FULL, False), (FULL, True)):
        a, b = (torch.randn(8192, 8192, device="cuda", dtype=dtype) for _ in range(2))
        torch.backends.cuda.matmul.allow_tf32 = tf32
        took = time_calls(lambda a=a, b=b: a @ b, repeats)  # type: ignore[misc]
        name = f"{str(dtype).removeprefix('torch.')}{' as TF32' if tf32 else ''}"
        lines.append(f"- products, {name}: {2 * 8192**3 / took.median / 1e6:.0f} TFLOP/s")
    torch.backends.cuda.matmul.allow_tf32 = False
    source = torch.empty(2**28, device="cuda")
    target = torch.empty_like(source)
    took = time_calls(lambda: target.copy_(source), repeats)
    lines.append(f"- copy: {2 * 2**30 / took.median / 1e6:.2f} TB/s, read and written")
    took = time_calls(lambda: target[:1].copy_(source[:1]), repeats)
    lines.append(f"- the smallest launch, eager: {took.median:.1f} us")
    return lines


def heading(dry: bool, gate: str) -> list[str]:
    """What a table needs to be believed."""
    import triton

    device = "no GPU: a dry run, nothing is timed" if dry else torch.cuda.get_device_name()
    return [
        f"# Metric attention: {device}",
        "",
        f"torch {torch.__version__}, triton {triton.__version__}, CUDA {torch.version.cuda}, "
        f"{datetime.datetime.now(datetime.UTC):%Y-%m-%d %H:%M} UTC; tests of the kernels: {gate}",
        "",
    ]


def run_gate(dry: bool) -> str:
    """Run the tests of the kernels; return pytest's last line, or end the program where they do not pass."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *(DRY_TESTS if dry else TESTS)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"the tests of the kernels do not pass, so nothing is timed:\n{done.stdout}{done.stderr}")
    return done.stdout.strip().splitlines()[-1]


class Report:
    """Lines on the screen and, where asked, on disk, each as it comes."""

    def __init__(self, path: Path | None) -> None:
        self.file: TextIO | None = path.open("w", encoding="utf-8") if path else None

    def add(self, *lines: str) -> None:
        """Write lines and see them to the disk."""
        for line in lines:
            print(line, flush=True)
            if self.file:
                self.file.write(line + "\n")
                self.file.flush()
                os.fsync(self.file.fileno())


def run_case(shape: Shape, report: Report, options: argparse.Namespace, deadline: float) -> bool:
    """Measure every competitor on a case; return whether the kernels computed what they should."""
    torch.compiler.reset()
    case = make_case(shape, "cpu" if options.dry else "cuda")
    own: Measured | None = None
    for competitor in competitors(case, "aot_eager" if options.dry else "inductor"):
        if time.monotonic() > deadline:
            report.add(row(case, competitor.name, Measured({}, {}, {}, math.nan, "left out: the time is up"), own))
            continue
        result = attempt(case, competitor, options.repeats, options.dry)
        if competitor.name == "kernels":
            own = result
        report.add(row(case, competitor.name, result, own))
    return own is None or not own.failure


def main() -> None:
    """Measure all cases and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, help="write the table here too, row by row")
    parser.add_argument("--budget-s", type=float, default=math.inf, help="seconds after which the rest is left out")
    parser.add_argument("--repeats", type=int, default=3, help="repeats of each measurement")
    parser.add_argument("--case", default="", help="only cases whose name holds this")
    parser.add_argument("--no-gate", action="store_true", help="do not run the tests first; the table says so")
    parser.add_argument("--dry", action="store_true", help="tiny shapes in Triton's interpreter, checks without times")
    options = parser.parse_args()
    deadline = time.monotonic() + options.budget_s
    if options.dry:
        os.environ["TRITON_INTERPRET"] = "1"
    elif not torch.cuda.is_available():
        parser.error("a CUDA GPU is needed, and there is none; --dry runs without")
    gate = "not run (--no-gate)" if options.no_gate else run_gate(options.dry)
    report = Report(options.output)
    report.add(*heading(options.dry, gate))
    if not options.dry:
        report.add(*ceilings(options.repeats), "")
    report.add(f"| {' | '.join(COLUMNS)} |", "|" + "---|" * len(COLUMNS))
    shapes = [shape for shape in (DRY_SHAPES if options.dry else SHAPES) if options.case in shape.name]
    right = [run_case(shape, report, options, deadline) for shape in shapes]
    if not all(right):
        raise SystemExit("the kernels failed on a case; see its row")


if __name__ == "__main__":
    main()
