"""Time and memory of `textcls predict` on files of any length: rows a second, and the peak of the largest process.

    python benchmarks/predict_stream.py tickets.onnx --rows 200000 --rows 400000 --workers 1 --workers 2

The texts are made up: 5 to 25 words of random letters and of the words of a list, the same in every run.
"""

import csv
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import click
from common import MAXRSS_BYTES

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
                # Made into the other format by the command itself, without the answers' names in the way.
                data = _converted(model, data, suffix)
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


def _converted(model: Path, data: Path, suffix: str) -> Path:
    path = data.with_suffix(suffix)
    _run(model, data, path, 1, explain=False)
    if suffix == ".parquet":
        from pyarrow import parquet

        parquet.write_table(parquet.read_table(path, columns=["id", "text"]), path, row_group_size=1 << 14)
        return path
    raise click.UsageError("This script times .csv and .parquet.")


def _run(model: Path, data: Path, output: Path, workers: int, explain: bool) -> tuple[float, int]:
    call = [sys.executable, "-c", "from textcls.cli import main; main()", "predict", model, data, "-o", output]
    started = time.perf_counter()
    process = subprocess.Popen(
        [*call, "--workers", str(workers), *(["--explain"] if explain else [])], stdout=subprocess.DEVNULL
    )
    _, status, used = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"predict failed with status {status}")
    return time.perf_counter() - started, used.ru_maxrss * MAXRSS_BYTES


if __name__ == "__main__":
    main()
