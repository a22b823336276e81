"""What goes wrong while a cluster answers a folder of files: what is lost, what is done twice, what a person is told.

    python benchmarks/faults.py tickets.onnx

Starts clusters of Ray with several nodes on this machine, runs `textcls predict --engine ray` on them, and does
to them what machines do: workers, a node and the command itself are killed, a disk is full, files and rows are damaged,
a node is slow. Where the command did not end well it is typed again, with what was wrong put right, and the folder is
compared with one that nothing happened to. Writes benchmarks/faults.md. Needs root for a disk that is small.
"""

import hashlib
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import click

from cluster import NICENESS
from common import ROOT, about, headline
from textcls.jobs.batch.folder import MANIFEST

OUTPUT: Final = ROOT / "benchmarks" / "faults.md"
PACKAGES: Final = ("textcls", "onnxruntime", "ray")
FILES, ROWS = 12, 8000
WORDS: Final = ("my", "card", "was", "charged", "twice", "please", "cancel", "the", "order", "parcel", "is", "late")
# Seconds that nothing here should take.
PATIENCE: Final = 600.0


@dataclass
class Place:
    """Where one fault happens: the cluster, the inputs and the outputs.

    Attributes:
        nodes: Ray's `Cluster`.
        model: the model file.
        data: the folder of the inputs.
        output: the folder of the answers.
    """

    nodes: Any
    model: Path
    data: Path
    output: Path

    def start(self, *more: str) -> "subprocess.Popen[str]":
        """Start the command."""
        call = [sys.executable, "-m", "textcls", "predict", self.model, f"{self.data}/*.jsonl", "-o", self.output]
        return subprocess.Popen(
            [*map(str, call), "--engine", "ray", "--workers", "2", *more],
            env={**os.environ, "RAY_ADDRESS": self.nodes.address},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def answered(self) -> int:
        """Return how many files are answered."""
        return len(list(self.output.glob("*.jsonl")))

    def wait_for(self, files: int, process: "subprocess.Popen[str]") -> None:
        """Wait until so many files are answered, and others are begun."""
        until = time.monotonic() + PATIENCE
        while (self.answered() < files or not self.parts()) and process.poll() is None and time.monotonic() < until:
            time.sleep(0.02)

    def parts(self) -> list[Path]:
        """Return files that are begun, or that were."""
        return list(self.output.glob(".textcls-*"))


@dataclass
class End:
    """How a command ended: its exit code, and what it said last, and before that of workers."""

    code: int
    said: str

    @classmethod
    def of(cls, process: "subprocess.Popen[str]") -> "End":
        """Wait for the end of a command."""
        out, error = process.communicate(timeout=PATIENCE)
        notes = [line for line in error.splitlines() if "worker" in line and line.startswith("Note:")]
        lines = [line for line in (error if process.returncode else out).splitlines() if line.strip()]
        return cls(process.returncode, " ".join([*notes, *lines[-1:]]))


Fault = Callable[[Place], list[End]]


def worker_killed(place: Place) -> list[End]:
    """a worker is killed"""
    process = place.start()
    place.wait_for(3, process)
    os.kill(workers()[0], signal.SIGKILL)
    return [End.of(process)]


def node_killed(place: Place) -> list[End]:
    """a node is killed, with its worker"""
    node = place.nodes.add_node(num_cpus=1)
    process = place.start("--workers", "3")
    place.wait_for(3, process)
    place.nodes.remove_node(node, allow_graceful=False)
    return [End.of(process)]


def command_killed(place: Place) -> list[End]:
    """the command is killed, and typed again"""
    process = place.start()
    place.wait_for(3, process)
    process.kill()
    return [End.of(process), End.of(place.start())]


def file_damaged(place: Place) -> list[End]:
    """an input file is cut off; it is copied again"""
    damaged = place.data / "05.jsonl"
    whole = damaged.read_bytes()
    damaged.write_bytes(whole[: len(whole) // 2])
    first = End.of(place.start())
    damaged.write_bytes(whole)
    return [first, End.of(place.start())]


def row_damaged(place: Place) -> list[End]:
    """a row is not JSON; it is corrected"""
    damaged = place.data / "07.jsonl"
    whole = damaged.read_text()
    damaged.write_text(whole.replace('{"id": 57000', '"id": 57000', 1))
    first = End.of(place.start())
    damaged.write_text(whole)
    return [first, End.of(place.start())]


def disk_full(place: Place) -> list[End]:
    """the disk is full; room is made"""
    place.output.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(place.output)]
    subprocess.run(mount, check=True)
    try:
        first = End.of(place.start())
        subprocess.run(["mount", "-o", "remount,size=100m", str(place.output)], check=True)
        second = End.of(place.start())
        kept = place.output.with_name("kept")
        shutil.copytree(place.output, kept)
    finally:
        subprocess.run(["umount", str(place.output)], check=True)
    place.output.rmdir()
    kept.rename(place.output)
    return [first, second]


def node_slow(place: Place) -> list[End]:
    """a node stands still for 20 seconds"""
    process = place.start()
    place.wait_for(3, process)
    slow, before = workers()[0], place.answered()
    os.kill(slow, signal.SIGSTOP)
    time.sleep(20)
    meanwhile = place.answered() - before
    os.kill(slow, signal.SIGCONT)
    end = End.of(process)
    return [End(end.code, f"{end.said} (meanwhile {meanwhile} files by the other)")]


FAULTS: Final[tuple[Fault, ...]] = (
    worker_killed,
    node_killed,
    command_killed,
    file_damaged,
    row_damaged,
    disk_full,
    node_slow,
)


def workers() -> list[int]:
    """Return the processes of workers of Ray that do jobs now."""
    found = []
    for folder in Path("/proc").iterdir():
        try:
            title = (folder / "cmdline").read_bytes().decode(errors="replace") if folder.name.isdigit() else ""
        except OSError:
            continue
        if title.startswith("ray::Worker.attempt"):
            found.append(int(folder.name))
    return sorted(found)


def write(folder: Path) -> None:
    """Write the inputs, the same in every run."""
    folder.mkdir()
    chance = random.Random(0)
    for file in range(FILES):
        rows = [
            {"id": file * ROWS + i, "text": " ".join(chance.choices(WORDS, k=chance.randint(5, 25)))}
            for i in range(ROWS)
        ]
        (folder / f"{file:02}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def content(folder: Path) -> dict[str, str]:
    """Return the files of a folder by a hash of their content."""
    files = [path for path in folder.iterdir() if path.name != MANIFEST and not path.name.startswith(".textcls-")]
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


@contextmanager
def cluster() -> Iterator[Any]:
    """Have a cluster of a node without CPUs and two with one each."""
    from ray.cluster_utils import Cluster

    nodes = Cluster(initialize_head=True, head_node_args={"num_cpus": 0})
    nodes.add_node(num_cpus=1)
    nodes.add_node(num_cpus=1)
    try:
        yield nodes
    finally:
        nodes.shutdown()


def row_of(fault: Fault, model: Path, folder: Path, right: dict[str, str]) -> str:
    """Let a fault happen, and return its line of the table."""
    place = folder / fault.__name__
    shutil.copytree(folder / "data", place / "data")
    with cluster() as nodes:
        here = Place(nodes, model, place / "data", place / "out")
        ends = fault(here)
    lost = len(right.items() - content(here.output).items())
    said = "<br>".join(f"{end.code}: {end.said.replace(str(place), '')}" for end in ends)
    line = f"| {fault.__doc__} | {lost} | {len(here.parts())} | {re.sub(r'[|]', '/', said)} |"
    click.echo(line)
    return line


@click.command()
@click.argument("model", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--only", multiple=True, help="Names of faults.")
def main(model: Path, only: tuple[str, ...]) -> None:
    """Let each fault happen on a cluster of its own, and write the table."""
    os.environ |= NICENESS
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write(folder / "data")
        call = [sys.executable, "-m", "textcls", "predict", model, folder / "data", "-o", f"{folder}/right/"]
        subprocess.run([*map(str, call), "--quiet"], check=True, stdout=subprocess.DEVNULL)
        right = content(folder / "right")
        rows = [row_of(fault, model.resolve(), folder, right) for fault in FAULTS if not only or fault.__name__ in only]
    head = [
        "# Faults of a cluster",
        "",
        f"{FILES} files of {ROWS:,} rows, answered by two workers. Missing or different are files in the end, against "
        "a run on this machine that nothing happened to; begun twice are files that a killed process had not finished.",
        "",
        "| what happens | missing or different | begun twice | exit code, and the last that was said |",
        "|---|---|---|---|",
    ]
    if not only:
        OUTPUT.write_text("\n".join([*head, *rows, "", headline(about(packages=PACKAGES)), ""]))


if __name__ == "__main__":
    main()
