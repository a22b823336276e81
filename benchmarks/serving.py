"""Requests per second and latency over loopback, beside a FastAPI route that does nothing and two peers.

python benchmarks/serving.py MODEL.onnx TRAIN.csv [--rounds 5] [--without-peers] [--before CHECKOUT]

Load comes from h2load (Debian: nghttp2-client), one thread. All servers run at once and are asked in turn, round after
round, so that a busy moment of the machine hits all alike; figures are medians of rounds, ratios medians of the ratios
within a round. CPU time a request is what a busy machine changes least. Writes serving.json; prints a table. With
--before, another checkout's `textcls serve` is one of the servers: what a change has done to the speed.
"""

import csv
import json
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from statistics import median
from typing import Any

import click
import numpy as np

from running import ROOT, command, environment
from textcls import Classifier

HERE = Path(__file__).parent
CONNECTIONS = (1, 16, 64)
SECONDS = 1.5
LISTED = 64
SERVERS = ("textcls", "noop", "sklearn", "fasttext")
BEFORE = "textcls before"
Round = dict[str, float]


def payloads(texts: list[str]) -> dict[str, bytes]:
    """One text of median length, without and with explanation, and a list of texts."""
    alone = sorted(texts, key=len)[len(texts) // 2]
    return {
        "one text": json.dumps({"inputs": alone}).encode(),
        "one text, explained": json.dumps({"inputs": alone, "explain": True}).encode(),
        "64 texts": json.dumps({"inputs": texts[:LISTED]}).encode(),
    }


def ask(port: int, body: bytes) -> bytes:
    request = urllib.request.Request(f"http://127.0.0.1:{port}/v1/classify", body, {"content-type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        found: bytes = answer.read()
        return found


def cpu_seconds(process: int) -> float:
    """CPU time of all threads of a process, which a busy neighbour hardly changes."""
    tasks = Path(f"/proc/{process}/task").glob("*/schedstat")
    return sum(int(task.read_text().split()[0]) for task in tasks) / 1e9


def load(process: int, port: int, body: Path, connections: int, log: Path) -> Round:
    """Ask for a while; return the rate, the CPU time of a request, and percentiles of the latency in milliseconds."""
    log.unlink(missing_ok=True)
    command = ["h2load", "--h1", "-D", f"{SECONDS * 1000:.0f}ms", "-c", str(connections), "-t", "1", "-d", str(body)]
    command += ["-H", "content-type: application/json", "--log-file", str(log)]
    before = cpu_seconds(process)
    done = subprocess.run(
        [*command, f"http://127.0.0.1:{port}/v1/classify"], capture_output=True, text=True, check=True
    )
    spent = cpu_seconds(process) - before
    rows = np.loadtxt(log, dtype=np.int64, ndmin=2)
    failed = int((rows[:, 1] != 200).sum())
    if failed:
        raise SystemExit(f"{failed} of {len(rows)} requests failed:\n{done.stdout}")
    p50, p99 = np.percentile(rows[:, 2], (50, 99)) / 1000
    seconds = (rows[:, 0] + rows[:, 2]).max() - rows[:, 0].min()
    rate, cpu = len(rows) / float(seconds) * 1e6, spent / len(rows) * 1e6
    return {"rate": rate, "cpu_us": cpu, "p50": float(p50), "p99": float(p99)}


def in_process(model: Classifier, texts: list[str]) -> float:
    """Texts per second of the Python API, in batches as they are sent."""
    count, start = 0, time.perf_counter()
    while time.perf_counter() - start < SECONDS / 2:
        model.predict(texts[:LISTED])
        count += LISTED
    return count / (time.perf_counter() - start)


def start(name: str, port: int, model: Path, work: Path, tree: Path) -> "subprocess.Popen[bytes]":
    """Start a server; `tree` is the checkout whose code it runs."""
    line = [sys.executable, str(HERE / "serving_apps.py"), name, str(port), str(work)]
    if name in ("textcls", BEFORE):
        line = command("serve", str(model), "--port", str(port))
    return subprocess.Popen(line, env=environment(tree) | {"OMP_NUM_THREADS": "1"}, stdout=subprocess.DEVNULL)


def wait(port: int, body: bytes) -> None:
    for _ in range(600):
        try:
            ask(port, body)
            return
        except OSError:
            time.sleep(0.1)
    raise SystemExit(f"nothing answers on port {port}")


def measure(
    model_path: Path, train: Path, rounds: int, servers: tuple[str, ...], before: Path = ROOT, base: int = 8700
) -> dict[str, Any]:
    with train.open(encoding="utf-8", newline="") as file:
        texts = [row["text"] for row in csv.DictReader(file)]
    bodies, model = payloads(texts), Classifier.load(model_path)
    ports = {name: base + i for i, name in enumerate(servers)}
    found: dict[str, Any] = {name: {} for name in bodies}
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        (work / "train.csv").symlink_to(train.resolve())
        processes = [start("textcls", ports["textcls"], model_path, work, ROOT)]
        try:
            wait(ports["textcls"], bodies["one text"])
            (work / "sizes").write_text(" ".join(str(len(ask(ports["textcls"], body))) for body in bodies.values()))
            for name in servers[1:]:
                tree = before if name == BEFORE else ROOT
                processes.append(start(name, ports[name], model_path, work, tree))
                wait(ports[name], bodies["one text"])
            pids = {name: process.pid for name, process in zip(servers, processes, strict=True)}
            for kind, body in bodies.items():
                path = work / "body"
                path.write_bytes(body)
                for connections in CONNECTIONS:
                    # Peers that explain nothing are not asked to.
                    explaining = ("textcls", BEFORE, "noop")
                    names = [name for name in servers if kind != "one text, explained" or name in explaining]
                    cell: dict[str, list[Round]] = {name: [] for name in names}
                    local = []
                    for _ in range(rounds):
                        for name in names:
                            cell[name].append(load(pids[name], ports[name], path, connections, work / "log"))
                        if kind == "64 texts":
                            local.append(in_process(model, texts))
                    found[kind][connections] = summary(cell, local)
                    print(kind, connections, json.dumps(found[kind][connections]), file=sys.stderr, flush=True)
        finally:
            for process in processes:
                process.terminate()
                process.wait()
    return found


def summary(cell: dict[str, list[Round]], local: list[float]) -> dict[str, Any]:
    """Medians; ratios within rounds."""
    said: dict[str, Any] = {
        name: {key: round(median(each[key] for each in rounds), 3) for key in rounds[0]}
        for name, rounds in cell.items()
    }
    ours = cell["textcls"]
    said["of noop"] = [round(a["rate"] / b["rate"], 3) for a, b in zip(ours, cell["noop"], strict=True)]
    said["of noop, CPU"] = [round(b["cpu_us"] / a["cpu_us"], 3) for a, b in zip(ours, cell["noop"], strict=True)]
    if BEFORE in cell:
        said["of before"] = [round(a["rate"] / b["rate"], 3) for a, b in zip(ours, cell[BEFORE], strict=True)]
        said["of before, CPU"] = [round(b["cpu_us"] / a["cpu_us"], 3) for a, b in zip(ours, cell[BEFORE], strict=True)]
    said["p99/p50"] = round(median(each["p99"] / each["p50"] for each in ours), 2)
    if local:
        said["of in-process"] = [round(a["rate"] * LISTED / b, 3) for a, b in zip(ours, local, strict=True)]
    return said


def table(found: dict[str, Any]) -> str:
    lines = [
        "| request | connections | textcls /s | of no-op | CPU µs (of no-op) | p50 ms | p99 ms | p99/p50 | no-op /s | "
        "scikit-learn /s | fastText /s | of in-process | of before (CPU) |",
        "|" + "---|" * 13,
    ]
    for kind, rows in found.items():
        for connections, cell in rows.items():
            ours = cell["textcls"]
            peers = [f"{cell[name]['rate']:,.0f}" if name in cell else "" for name in ("noop", "sklearn", "fasttext")]
            share = f"{median(cell['of in-process']):.0%}" if "of in-process" in cell else ""
            before = f"{median(cell['of before']):.2f} ({median(cell['of before, CPU']):.2f})" if BEFORE in cell else ""
            lines.append(
                f"| {kind} | {connections} | {ours['rate']:,.0f} | {median(cell['of noop']):.0%} | "
                f"{ours['cpu_us']:.0f} ({median(cell['of noop, CPU']):.0%}) | {ours['p50']:.2f} | "
                f"{ours['p99']:.2f} | {cell['p99/p50']:.1f} | {' | '.join(peers)} | {share} | {before} |"
            )
    return "\n".join(lines)


@click.command()
@click.argument("model", type=click.Path(exists=True, path_type=Path))
@click.argument("train", type=click.Path(exists=True, path_type=Path))
@click.option("--rounds", default=5)
@click.option("--without-peers", is_flag=True, help="Only the route that does nothing.")
@click.option("--before", type=click.Path(exists=True, file_okay=False, path_type=Path), help="Another checkout.")
def main(model: Path, train: Path, rounds: int, without_peers: bool, before: Path | None) -> None:
    servers = SERVERS[:2] if without_peers else SERVERS
    results = measure(model, train, rounds, servers if before is None else (*servers, BEFORE), before or ROOT)
    path = HERE / "serving.json"
    kept = json.loads(path.read_text()) if path.exists() else {}
    kept["beside the no-op" if without_peers else "beside the peers"] = results
    path.write_text(json.dumps(kept, indent=1) + "\n")
    print(table(results))


if __name__ == "__main__":
    main()
