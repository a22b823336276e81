"""The service under stress: each command starts `textcls serve`, hurts it, and fails if it does not stand it.

python benchmarks/stress.py footprint MODEL.onnx
python benchmarks/stress.py soak MODEL.onnx TEXTS.csv --minutes 10
python benchmarks/stress.py fuzz MODEL.onnx --seconds 60
python benchmarks/stress.py rolling MODEL.onnx
python benchmarks/stress.py kill MODEL.onnx

The last result of each is kept in stress.json.
"""

import csv
import json
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from statistics import median
from typing import Any

import click
import httpx

from running import BEARER, HERE, KEY, Server, children, resident, serving

KEPT = HERE / "stress.json"
MARK = "xyzzyPlugh"  # stands in every text: it must not turn up in a log
MODEL = click.argument("model", type=click.Path(exists=True, dir_okay=False, path_type=Path))


def keep(name: str, result: dict[str, Any], passed: bool) -> None:
    """Write the result down, and fail if it is a bad one."""
    kept = json.loads(KEPT.read_text()) if KEPT.exists() else {}
    kept[name] = {"date": date.today().isoformat(), "passed": passed, **result}
    KEPT.write_text(json.dumps(dict(sorted(kept.items())), indent=1) + "\n")
    print(json.dumps({name: kept[name]}, indent=1))
    if not passed:
        raise SystemExit(f"{name}: not passed")


@click.group()
def main() -> None:
    """Hurt the service."""


@main.command()
@MODEL
@click.option("--rounds", default=5)
def footprint(model: Path, rounds: int) -> None:
    """Seconds from the start to the first answer, and megabytes of a worker over the bare interpreter."""
    seconds, memory = [], []
    bare = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    time.sleep(1)
    interpreter = resident(bare.pid)
    bare.communicate(b"\n")
    for _ in range(rounds):
        with serving(model) as server:
            httpx.get(f"{server.url}/readyz").raise_for_status()
            seconds.append(time.perf_counter() - server.begun)
            for _ in range(200):
                httpx.post(f"{server.url}/v1/classify", json={"inputs": "a few words", "explain": True})
            memory.append(server.memory())
    over = median(memory) - interpreter
    result = {
        "ready_seconds": [round(each, 2) for each in seconds],
        "worker_mb": round(median(memory), 1),
        "interpreter_mb": round(interpreter, 1),
        "over_interpreter_mb": round(over, 1),
    }
    keep(f"footprint, model of {model.stat().st_size / 1e6:.0f} MB", result, min(seconds) < 1 and over < 90)


def requests(texts: Sequence[str], chance: random.Random) -> dict[str, Any]:
    """One request of mixed length and size: mostly single short texts, now and then all the limits allow."""
    count = chance.choices([1, chance.randint(2, 16), 64], [8, 2, 1])[0]
    chosen = [f"{MARK} {text}" for text in chance.sample(texts, count)]
    if chance.random() < 0.02:
        chosen[0] = " ".join(chance.sample(texts, 40))[:90_000]
    return {"inputs": chosen if count > 1 else chosen[0], "explain": chance.random() < 0.3}


@main.command()
@MODEL
@click.argument("texts", type=click.Path(exists=True, path_type=Path))
@click.option("--minutes", default=10.0)
@click.option("--clients", default=8)
def soak(model: Path, texts: Path, minutes: float, clients: int) -> None:
    """Mixed lengths and batch sizes: resident memory grows by less than 5 % after the warm-up."""
    with texts.open(encoding="utf-8", newline="") as file:
        rows = [row["text"] for row in csv.DictReader(file)]
    statuses: Counter[int] = Counter()
    stop = threading.Event()

    def ask(seed: int, url: str) -> None:
        chance = random.Random(seed)
        with httpx.Client(base_url=url, timeout=60) as client:
            while not stop.is_set():
                statuses[client.post("/v1/classify", json=requests(rows, chance)).status_code] += 1

    with serving(model, "--log-requests") as server:
        threads = [threading.Thread(target=ask, args=(i, server.url)) for i in range(clients)]
        for thread in threads:
            thread.start()
        memory = []
        for _ in range(int(minutes * 60)):
            time.sleep(1)
            memory.append(server.memory())
        stop.set()
        for thread in threads:
            thread.join()
        log = server.log()
    # The warm-up is the first fifth; then tenths, so that a single large request does not decide.
    warm = median(memory[len(memory) // 5 : len(memory) // 5 + max(1, len(memory) // 10)])
    end = median(memory[-max(1, len(memory) // 10) :])
    result = {
        "minutes": minutes,
        "requests": dict(statuses),
        "warm_mb": round(warm, 1),
        "end_mb": round(end, 1),
        "most_mb": round(max(memory), 1),
        "growth": round(end / warm - 1, 4),
        "texts_in_log": log.count(MARK),
    }
    keep("soak", result, end < 1.05 * warm and set(statuses) <= {200, 413, 429} and MARK not in log)


@main.command()
@MODEL
@click.option("--seconds", default=60.0)
@click.option("--seed", default=0)
def fuzz(model: Path, seconds: float, seed: int) -> None:
    """schemathesis over the OpenAPI document, then damaged bytes: no 5xx, no traceback, no text in a log."""
    options = ("--log-requests", "--log-level", "info", "--receive-seconds", "2", "--request-seconds", "5")
    with serving(model, *options, key=KEY) as server:
        command = [sys.executable, "-m", "schemathesis.cli", "--config-file", str(HERE / "schemathesis.toml"), "run"]
        command += [f"{server.url}/openapi.json"]
        command += ["--max-examples", "500", "--seed", str(seed), "--no-color", "--continue-on-failure"]
        command += ["-H", f"Authorization: Bearer {KEY}"]
        found = subprocess.run(
            command,
            capture_output=True,
            text=True,
            check=False,
        )
        summary = [line for line in found.stdout.splitlines() if line.strip()][-25:]
        statuses, bad = damaged(server, seconds, random.Random(seed))
        alive = httpx.post(f"{server.url}/v1/classify", json={"inputs": MARK}, headers=BEARER).status_code
        log = server.log()
    result = {
        "schemathesis": summary,
        "schemathesis_exit": found.returncode,
        "damaged_requests": sum(statuses.values()),
        "statuses": dict(sorted(statuses.items())),
        "bad_answers": bad,
        "texts_in_log": log.count(MARK),
        "errors_in_log": sum('"level": "error"' in line for line in log.splitlines()),
        "alive": alive,
    }
    passed = not (found.returncode or bad or MARK in log or result["errors_in_log"]) and alive == 200
    keep("fuzz", result, passed)


def damaged(server: Server, seconds: float, chance: random.Random) -> tuple[Counter[str], list[str]]:
    """Send valid requests with random bytes changed, cut, repeated or put in; return the statuses, and bad answers."""
    url = httpx.URL(server.url)
    statuses: Counter[str] = Counter()
    bad = []
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        with socket.create_connection((url.host, url.port or 0), timeout=10) as connection:
            try:
                connection.sendall(damage(valid(chance), chance))
                # What is cut waits for its rest: the server gives it up later, this client at once.
                connection.settimeout(0.1)
                answer = b"".join(iter(lambda: connection.recv(65536), b""))
            except TimeoutError:
                answer = b"waits"
            except OSError as error:
                answer = type(error).__name__.encode()
        status = answer[9:12].decode("latin-1") if answer.startswith(b"HTTP") else answer[:20].decode() or "closed"
        statuses[status] += 1
        if status.startswith("5") or b"Traceback" in answer or b'File "' in answer:
            bad.append(answer[:500].decode("latin-1"))
    return statuses, bad[:10]


def valid(chance: random.Random) -> bytes:
    body = json.dumps({"inputs": f"{MARK} héllo 語 \ud83d", "explain": chance.random() < 0.5, "top_k": 2}).encode()
    other = ["GET /v1/models", "GET /metrics", "POST /v1/admin/reload", "GET /livez"]
    method, path = chance.choice(["POST /v1/classify"] * 6 + other).split()
    head = f"{method} {path} HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\nx-request-id: 1\r\n"
    head += f"connection: close\r\nx-api-key: {KEY}\r\n"
    if chance.random() < 0.3:
        cut = chance.randrange(len(body))
        pieces = b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in (body[:cut], body[cut:]) if part)
        return f"{head}transfer-encoding: chunked\r\n\r\n".encode() + pieces + b"0\r\n\r\n"
    return f"{head}content-length: {len(body)}\r\n\r\n".encode() + body


def damage(data: bytes, chance: random.Random) -> bytes:
    found = bytearray(data)
    for _ in range(chance.randint(0, 3)):
        at = chance.randrange(len(found) + 1)
        kind = chance.randrange(5)
        if kind == 0:
            found[at : at + 1] = bytes([chance.randrange(256)])
        elif kind == 1:
            del found[at : at + chance.randint(1, 30)]
        elif kind == 2:
            found[at:at] = chance.randbytes(chance.randint(1, 30))
        elif kind == 3:
            found[at:at] = found[at : at + 40]
        else:
            found[at:at] = chance.choice(
                [b"\0", b"\xff\xfe", b"\\ud800", b"NaN", b"1e999", b"[" * 2000, b"{", b'"', b"\r\n"]
            )
    return bytes(found)


class Clients:
    """Clients that ask without pause on kept connections, each of whichever address is in service."""

    def __init__(self, addresses: list[str], count: int = 8) -> None:
        self.addresses = addresses
        self.statuses: Counter[int] = Counter()
        self.failures: list[str] = []
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._ask, args=(i,)) for i in range(count)]
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def _ask(self, number: int) -> None:
        while not self._stop.is_set():
            # As behind a balancer: who closes the connection, or is not listed any more, is left.
            url = self.addresses[number % len(self.addresses)]
            with httpx.Client(base_url=url, timeout=60) as client:
                while not self._stop.is_set() and url in self.addresses:
                    try:
                        answer = client.post("/v1/classify", json={"inputs": "one two three"})
                    except httpx.HTTPError as error:
                        self.failures.append(f"{type(error).__name__}: {error}")
                        break
                    self.statuses[answer.status_code] += 1
                    if answer.headers.get("connection") == "close":
                        break


@main.command()
@MODEL
@click.option("--times", default=5)
@click.option("--workers", default=1)
def rolling(model: Path, times: int, workers: int) -> None:
    """Replace the whole service several times under load, as an orchestrator does: no request is lost."""
    options = ("--drain-seconds", "1", "--workers", str(workers))
    old = Server(model, *options)
    clients = Clients([old.url])
    codes = []
    for _ in range(times):
        time.sleep(1)
        new = Server(model, *options)
        clients.addresses.append(new.url)
        time.sleep(0.5)
        old.process.terminate()
        # The balancer learns of it a moment later, from /readyz.
        time.sleep(0.5)
        clients.addresses.remove(old.url)
        codes.append(old.process.wait(60))
        old = new
    time.sleep(1)
    clients.stop()
    codes.append(old.stop())
    result = {"restarts": times, "requests": dict(clients.statuses), "lost": clients.failures, "exit_codes": codes}
    name = "rolling" if workers == 1 else f"rolling, {workers} workers"
    keep(name, result, not clients.failures and set(clients.statuses) == {200} and set(codes) == {0})


@main.command()
@MODEL
@click.option("--times", default=5)
@click.option("--clients", "count", default=8)
def kill(model: Path, times: int, count: int) -> None:
    """Kill one of two workers with -9 under load, several times: it is replaced, and only what it held is lost."""
    with serving(model, "--workers", "2") as server:
        clients = Clients([server.url], count)
        worst = 0
        for _ in range(times):
            time.sleep(1)
            before, lost = children(server.process.pid), len(clients.failures)
            os.kill(before[0], signal.SIGKILL)
            while len(now := children(server.process.pid)) < 2 or before[0] in now:
                time.sleep(0.05)
            time.sleep(1.5)
            worst = max(worst, len(clients.failures) - lost)
        clients.stop()
        result = {
            "kills": times,
            "clients": count,
            "requests": dict(clients.statuses),
            "lost": len(clients.failures),
            "most_lost_at_once": worst,
            "kinds": sorted({failure.partition(":")[0] for failure in clients.failures}),
        }
        keep("kill", result, worst <= count and set(clients.statuses) == {200})


if __name__ == "__main__":
    main()
