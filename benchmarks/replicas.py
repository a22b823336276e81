"""Copies of the service behind nginx: how many rows they answer, and what is lost when one of them dies or is stopped.

    python benchmarks/replicas.py MODEL.onnx TRAIN.csv

nginx (Debian: nginx-light) runs deploy/nginx.conf; load comes from h2load (Debian: nghttp2-client). As fast as they
can, one copy and two are asked for one text a request, and for 64. At a steady rate, a copy is killed, or stopped, in
the middle. Writes replicas.json and replicas.md; fails if a request is lost with deploy/nginx.conf.
"""

import csv
import json
import os
import re
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

import click
import numpy as np

from common import about, headline
from running import HERE, ROOT, Server, serving

CONF: Final = ROOT / "deploy" / "nginx.conf"
RESULT: Final = HERE / "replicas.json"
PACKAGES: Final = ("textcls", "onnxruntime")
# What makes nginx ask another copy again although the request is a POST.
AGAIN: Final = " non_idempotent"
LISTED: Final = 64
CONNECTIONS: Final = 16
RATE: Final = 320
DRAIN_SECONDS: Final = 2
START_SECONDS: Final = 10
Row = dict[str, Any]


def configuration(ports: list[int], listen: int, folder: Path, *, again: bool) -> Path:
    """Write deploy/nginx.conf for copies on these ports; return the file to start nginx with."""
    text = CONF.read_text()
    servers = re.findall(r"^ *server [\d.]+:\d+(.*)$", text, re.MULTILINE)
    text = re.sub(r"^ *server [\d.]+:\d+.*\n", "", text, flags=re.MULTILINE)
    lines = "".join(f"    server 127.0.0.1:{port}{servers[0]}\n" for port in ports)
    text = text.replace("    keepalive", f"{lines}    keepalive").replace("listen 8080", f"listen 127.0.0.1:{listen}")
    (folder / "textcls.conf").write_text(text if again else text.replace(AGAIN, ""))
    own = folder / "nginx.conf"
    own.write_text(
        f"pid {folder}/pid;\nerror_log {folder}/error.log;\nworker_processes 1;\n"
        "events { worker_connections 1024; }\n"
        f"http {{ access_log off; client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy;\n"
        f"include {folder}/textcls.conf; }}\n"
    )
    return own


@contextmanager
def proxied(model: Path, copies: int, *, again: bool = True) -> Iterator[tuple[str, list[Server]]]:
    """Run copies of the service behind nginx; give the address of nginx, and the copies."""
    options = ("--drain-seconds", str(DRAIN_SECONDS), "--keep-alive-seconds", "75")
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        servers = [stack.enter_context(serving(model, *options)) for _ in range(copies)]
        listen = 8790
        conf = configuration([server.port for server in servers], listen, folder, again=again)
        nginx = subprocess.Popen(["nginx", "-p", str(folder), "-c", str(conf), "-g", "daemon off; user root;"])
        stack.callback(nginx.wait)
        stack.callback(nginx.terminate)
        wait_for(f"http://127.0.0.1:{listen}/readyz")
        yield f"http://127.0.0.1:{listen}/v1/classify", servers


def wait_for(url: str) -> None:
    end = time.monotonic() + START_SECONDS
    while subprocess.run(["curl", "-sf", url], stdout=subprocess.DEVNULL, check=False).returncode:
        if time.monotonic() > end:
            raise SystemExit(f"nothing answers at {url}")
        time.sleep(0.1)


def load(url: str, body: bytes, seconds: float, rate: int | None) -> tuple[Row, np.ndarray[Any, Any]]:
    """Ask for a while; return what became of the requests, and start [us], status and duration [us] of each."""
    with tempfile.TemporaryDirectory() as name:
        sent, log = Path(name) / "body", Path(name) / "log"
        sent.write_bytes(body)
        call = ["h2load", "--h1", "-D", f"{seconds * 1000:.0f}ms", "-c", str(CONNECTIONS), "-t", "1", "-d", str(sent)]
        call += [] if rate is None else ["--rps", str(rate // CONNECTIONS)]
        call += ["-H", "content-type: application/json", "--log-file", str(log), url]
        subprocess.run(call, stdout=subprocess.DEVNULL, check=True)
        rows = np.loadtxt(log, dtype=np.int64, ndmin=2)
    span = (rows[:, 0] + rows[:, 2]).max() - rows[:, 0].min()
    p50, p99 = (round(float(x) / 1000, 2) for x in np.percentile(rows[:, 2], (50, 99)))
    lost = int((rows[:, 1] != 200).sum())
    found = {"requests": len(rows), "lost": lost, "a_second": round(len(rows) / float(span) * 1e6, 1)}
    return found | {"p50_ms": p50, "p99_ms": p99, "most_ms": round(float(rows[:, 2].max()) / 1000, 1)}, rows


def at_full_speed(model: Path, bodies: dict[str, tuple[bytes, int]], seconds: float) -> list[Row]:
    """Ask one copy, and two, as fast as they answer."""
    found = []
    for copies in (1, 2):
        with proxied(model, copies) as (url, _):
            for name, (body, texts) in bodies.items():
                load(url, body, 1, None)
                row, _ = load(url, body, seconds, None)
                rows_a_second = round(row["a_second"] * texts)
                found.append(
                    {
                        "what": f"{copies} cop{'ies' if copies > 1 else 'y'}, {name}",
                        **row,
                        "rows_a_second": rows_a_second,
                    }
                )
                print(json.dumps(found[-1]), flush=True)
    return found


def with_fault(model: Path, body: bytes, seconds: float, what: str, number: int, *, again: bool) -> Row:
    """Ask two copies at a steady rate; in the middle one of them gets a signal."""
    with proxied(model, 2, again=again) as (url, servers):
        load(url, body, 1, RATE)
        timer = threading.Timer(seconds / 2, servers[0].process.send_signal, [number])
        timer.start()
        row, _ = load(url, body, seconds, RATE)
        timer.join()
        gone = servers[0].process.poll() is not None
    found = {"what": what, **row, "rows_a_second": round(row["a_second"]), "ended": gone}
    print(json.dumps(found), flush=True)
    return found


def table(found: Row) -> str:
    lines = [
        "# Copies of the service behind nginx",
        "",
        f"`python benchmarks/replicas.py MODEL.onnx TRAIN.csv`: nginx runs `deploy/nginx.conf`, h2load asks "
        f"over {CONNECTIONS} connections. As fast as they answer, h2load, nginx and the copies share the cores below: "
        f"two copies show what they cost and not what they bring. With faults, {RATE} requests of one text a second "
        "come in, whether or not earlier ones are answered, and one of two copies gets a signal in the middle. Lost is "
        "what the client does not get a good answer to.",
        "",
        "| | requests | lost | rows a second | p50 ms | p99 ms | longest ms |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in [*found["speed"], *found["faults"]]:
        lines.append(
            f"| {row['what']} | {row['requests']:,} | {row['lost']} | {row['rows_a_second']:,} | {row['p50_ms']} | "
            f"{row['p99_ms']} | {row['most_ms']} |"
        )
    busy = f"Before the run, {found['load']:.1f} processes of other work waited for a core (load average of a minute)."
    return "\n".join([*lines, "", busy, headline(found["about"]), ""])


@click.command()
@click.argument("model", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.argument("train", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--seconds", default=6.0, help="Of each run.")
def main(model: Path, train: Path, seconds: float) -> None:
    """Ask copies of MODEL for the texts of TRAIN, and write the table."""
    with train.open(encoding="utf-8", newline="") as file:
        texts = [row["text"] for row, _ in zip(csv.DictReader(file), range(10 * LISTED), strict=False)]
    alone = sorted(texts, key=len)[len(texts) // 2]
    one = json.dumps({"inputs": alone}).encode()
    bodies = {
        "one text a request": (one, 1),
        f"{LISTED} texts a request": (json.dumps({"inputs": texts[:LISTED]}).encode(), LISTED),
    }
    model, load_average = model.resolve(), os.getloadavg()[0]
    speed = at_full_speed(model, bodies, seconds)
    faults = [
        with_fault(model, one, seconds, what, number, again=again)
        for what, number, again in (
            ("2 copies, nothing happens", 0, True),
            ("one is killed (-9)", signal.SIGKILL, True),
            ("one is stopped (SIGTERM)", signal.SIGTERM, True),
            ("one is killed (-9), nginx without `non_idempotent`", signal.SIGKILL, False),
        )
    ]
    found = {"about": about(packages=PACKAGES), "load": round(load_average, 1), "speed": speed, "faults": faults}
    RESULT.write_text(json.dumps(found, indent=1) + "\n")
    RESULT.with_suffix(".md").write_text(table(found))
    lost = [row["what"] for row in faults[:3] if row["lost"]]
    if lost:
        raise SystemExit(f"requests were lost: {', '.join(lost)}")


if __name__ == "__main__":
    main()
