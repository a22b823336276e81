"""Time and memory of `textcls predict` on files of any length: rows a second, and the peak of its memory.

    python benchmarks/predict_stream.py tickets.onnx --rows 200000 --rows 400000 --workers 1 --workers 2

The texts are made up: 5 to 25 words of random letters and of the words of a list, the same in every run.
"""

import csv
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import click

# Of the process itself: what `wait4` tells includes the one that started it, as it was then.
PREDICT = """
import sys
from pathlib import Path
from textcls.cli import main
main(sys.argv[1:], standalone_mode=False)
print(next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM")))
"""
CONVERT = """
import sys
from itertools import islice
from pathlib import Path
from textcls.data import open_table, writing
source, target = map(Path, sys.argv[1:])
with open_table(source) as table:
    kind = writing.format_of(target, None, table.format)
    with writing.open_writer(target, kind, table.columns, []) as writer:
        while rows := list(islice(table.rows, 1024)):
            writer.write(rows, [{}] * len(rows))
"""
WORDS = (
    "my",
    "card",
    "was",
    "charged",
    "twice",
    "please",
    "cancel",
    "the",
    "order",
    "parcel",
    "is",
    "late",
    "great",
    "film",
)


@click.command()
@click.argument("model", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--rows", multiple=True, type=int, default=(200_000, 400_000), show_default=True)
@click.option("--workers", multiple=True, type=int, default=(1, 2), show_default=True)
@click.option("--suffix", default=".csv", show_default=True, help="Of input and output: .csv, .jsonl, .parquet ...")
@click.option("--explain", is_flag=True)
def main(model: Path, rows: tuple[int, ...], workers: tuple[int, ...], suffix: str, explain: bool) -> None:
    """Print a row for each number of rows and of workers."""
    print("| rows | workers | seconds | rows/s | peak MB |\n|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for number in rows:
            data = _write(Path(folder), number)
            if suffix != ".csv":
                data = _converted(data, suffix)
            for processes in workers:
                output = Path(folder) / f"answers{suffix}"
                seconds, peak = _run(model, data, output, processes, explain)
                print(f"| {number:,} | {processes} | {seconds:.1f} | {number / seconds:,.0f} | {peak / 1e6:.0f} |")


def _write(folder: Path, rows: int) -> Path:
    path, chance = folder / f"{rows}.csv", random.Random(rows)
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(("id", "text"))
        for i in range(rows):
            made = ("".join(chance.choices("abcdefgh", k=5)) for _ in range(3))
            writer.writerow((i, " ".join([*chance.choices(WORDS, k=chance.randint(2, 22)), *made])))
    return path


def _converted(data: Path, suffix: str) -> Path:
    path = data.with_suffix(suffix)
    # In a process of its own: what this one holds would count as the peak of those it starts.
    subprocess.run([sys.executable, "-c", CONVERT, data, path], check=True)
    return path


def _run(model: Path, data: Path, output: Path, workers: int, explain: bool) -> tuple[float, int]:
    """Return the seconds of a run and the largest memory of the process that reads and writes."""
    options = ["--workers", str(workers), *(["--explain"] if explain else [])]
    started = time.perf_counter()
    call = [sys.executable, "-c", PREDICT, "predict", str(model), str(data), "-o", str(output), *options]
    done = subprocess.run(call, stdout=subprocess.PIPE, text=True, check=True)
    return time.perf_counter() - started, int(done.stdout.split()[-2]) * 1024


if __name__ == "__main__":
    main()
