"""Answering a folder of files: rows a second by one process and by several, on this machine and on a cluster of Ray.

    python benchmarks/cluster.py tickets.onnx FOLDER --workers 1 --workers 2 --repeats 3

Writes benchmarks/cluster.json and benchmarks/cluster.md. The pace counts from when the first file is begun: starting
Ray takes seconds, whatever there is to do. CPU time is that of the workers while they answer, so that it can be
compared on a machine that does other things, too. Ray makes its workers nice, by 15, and here it does not. All outputs
must be the same, by a hash of their content.
"""

import hashlib
import json
import os
import resource
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import mean, stdev
from typing import Any, Final

import click

from common import MAXRSS_BYTES, ROOT, about, headline
from textcls.jobs import Engine
from textcls.jobs.batch.answer_columns import AnswerColumns
from textcls.jobs.batch.folder import MANIFEST, Answering, FileAnswered, FileJob, answer_folder
from textcls.jobs.engines import EngineName
from textcls.model import artifact

# Ray's own name.
NICENESS: Final = {"RAY_worker_niceness": "0"}
OUTPUT: Final = ROOT / "benchmarks" / "cluster"
PACKAGES: Final = ("textcls", "onnxruntime", "numpy", "pyarrow", "ray")


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured(Answering):
    """Answers, and writes down into a folder what each file took."""

    costs: Path = field(default=Path())

    def ready(self) -> Callable[[FileJob], FileAnswered]:
        do = Answering.ready(self)

        def measured(job: FileJob) -> FileAnswered:
            start = time.process_time()
            found = do(job)
            memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * MAXRSS_BYTES / 1e6
            cost = {"cpu": time.process_time() - start, "memory": memory, "process": os.getpid()}
            (self.costs / (Path(job.target).name + ".json")).write_text(json.dumps(cost))
            return found

        return measured


@contextmanager
def cluster(engine_name: str, workers: int) -> Iterator[None]:
    """Have a cluster of as many CPUs as there are workers, where one is asked for."""
    if engine_name == "local":
        yield
        return
    os.environ |= NICENESS
    import ray

    ray.init(address="local", num_cpus=workers, log_to_driver=False, logging_level="ERROR", include_dashboard=False)
    yield
    ray.shutdown()


def measure(model: Path, data: Path, engine_name: EngineName, workers: int, explain: bool) -> dict[str, Any]:
    """Answer all files of `data` once."""
    with tempfile.TemporaryDirectory() as folder, cluster(engine_name, workers):
        costs, output = Path(folder) / "costs", Path(folder) / "out"
        costs.mkdir()
        work = Measured(model=artifact.read_file(model), path=model, answer=AnswerColumns(explain=explain), costs=costs)
        start = time.perf_counter()
        standing = answer_folder(work, [str(data)], str(output), Engine(engine_name, workers))
        wall = time.perf_counter() - start
        found = [json.loads(path.read_text()) for path in costs.iterdir()]
        digest = hashlib.sha256()
        for path in sorted(output.iterdir()):
            if path.name != MANIFEST:
                digest.update(path.name.encode() + path.read_bytes())
    return {
        "engine": engine_name,
        "workers": workers,
        "rows": standing.rows,
        "seconds": round(wall, 2),
        "rows_per_second": round(standing.rows_per_second, 1),
        "cpu_us_per_row": round(sum(one["cpu"] for one in found) / standing.rows * 1e6, 2),
        "peak_mb": round(max(one["memory"] for one in found), 1),
        "processes": len({one["process"] for one in found}),
        "sha256": digest.hexdigest(),
    }


def table(runs: list[dict[str, Any]]) -> list[str]:
    """Return the lines of a table with a row for each engine and number of workers."""
    lines = [
        "| engine | workers | rows/s | beside one worker | beside local | CPU µs a row | peak MB a worker |",
        "|---|---|---|---|---|---|---|",
    ]
    cells: dict[tuple[str, int], list[dict[str, Any]]] = {}
    for run in runs:
        cells.setdefault((run["engine"], run["workers"]), []).append(run)

    def of(engine_name: str, workers: int, what: str = "rows_per_second") -> float | None:
        found = cells.get((engine_name, workers))
        return mean(one[what] for one in found) if found else None

    for (name, workers), found in sorted(cells.items()):
        paces = [one["rows_per_second"] for one in found]
        error = f" ± {stdev(paces) / len(paces) ** 0.5:,.0f}" if len(paces) > 1 else ""
        one, local = of(name, 1), of("local", workers)
        cpu, peak = of(name, workers, "cpu_us_per_row"), max(run["peak_mb"] for run in found)
        ratio = [f"{mean(paces) / other:.2f}" if other else "" for other in (one, local)]
        lines.append(
            f"| {name} | {workers} | {mean(paces):,.0f}{error} | {' | '.join(ratio)} | {cpu:.1f} | {peak:.0f} |"
        )
    return lines


@click.command()
@click.argument("model", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.argument("data", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--workers", multiple=True, type=int, default=(1, 2), show_default=True)
@click.option("--engine", "engines", multiple=True, default=("local", "ray"), show_default=True)
@click.option("--repeats", type=int, default=3, show_default=True)
@click.option("--explain", is_flag=True)
def main(
    model: Path, data: Path, workers: tuple[int, ...], engines: tuple[EngineName, ...], repeats: int, explain: bool
) -> None:
    """Measure each engine with each number of workers, in turn, as often as is asked for."""
    runs: list[dict[str, Any]] = []
    for _ in range(repeats):
        for number in workers:
            for name in engines:
                runs.append(measure(model, data, name, number, explain))
                click.echo(json.dumps(runs[-1]))
    same = len({run["sha256"] for run in runs}) == 1
    facts = about(packages=PACKAGES)
    files = len(list(data.iterdir()))
    OUTPUT.with_suffix(".json").write_text(json.dumps({"about": facts, "runs": runs}, indent=1) + "\n")
    verdict = "All outputs have the same bytes." if same else "THE OUTPUTS DIFFER."
    what = f"{runs[0]['rows']:,} rows in {files} files; mean ± standard error of {repeats} runs. {verdict}"
    text = "\n".join(["# Answering a folder", "", *table(runs), "", what, "", headline(facts), ""])
    OUTPUT.with_suffix(".md").write_text(text)
    click.echo(text)


if __name__ == "__main__":
    main()
