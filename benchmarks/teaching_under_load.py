"""Labels taught to a running service while it is asked at a steady rate, and while workers are killed.

python benchmarks/teaching_under_load.py MODEL.onnx

MODEL.onnx is one of prototypes (textcls train --head prototypes); a copy is taught. Everything is bounded: so many
labels, so many kills, so many seconds, over loopback. Results go to teaching_under_load.json and .md; it fails if a
request is lost while labels are taught, or if a label that was taught is not there after a kill.
"""

import json
import os
import shutil
import signal
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

import click
import httpx
import numpy as np

from common import about, headline
from running import ADMIN, BEARER, HERE, KEY, Server, children

RESULT: Final = HERE / "teaching_under_load.json"
REQUEST: Final = {"inputs": "where is the parcel that I ordered three weeks ago?"}
EXAMPLES: Final = 5
# So many answers in a row, each over a connection of its own, must come from the new file.
CHECKS: Final = 16
CLIENTS: Final = 4
BREATH_SECONDS: Final = 0.5


@dataclass
class Phase:
    """What became of the requests of a while: seconds from when each was due to its answer, statuses, failures."""

    seconds: list[float] = field(default_factory=list)
    statuses: Counter[int] = field(default_factory=Counter)
    lost: list[str] = field(default_factory=list)

    def row(self) -> dict[str, Any]:
        found = np.array(self.seconds) * 1000
        p50, p99, most = (round(float(x), 2) for x in (*np.quantile(found, [0.5, 0.99]), found.max()))
        return {
            "requests": len(found) + len(self.lost), "lost": len(self.lost), "statuses": dict(self.statuses),
            "p50_ms": p50, "p99_ms": p99, "most_ms": most,
        }  # fmt: skip


class Rate:
    """Clients that together ask so many times a second, whether or not earlier requests have been answered."""

    def __init__(self, url: str, rate: float) -> None:
        self.phase = Phase()
        self._url, self._pause = url, CLIENTS / rate
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._ask, args=(i,)) for i in range(CLIENTS)]

    @contextmanager
    def running(self) -> Iterator["Rate"]:
        for thread in self._threads:
            thread.start()
        try:
            yield self
        finally:
            self._stop.set()
            for thread in self._threads:
                thread.join()

    def next_phase(self) -> Phase:
        """Return the phase so far, and begin another."""
        done, self.phase = self.phase, Phase()
        return done

    def _ask(self, number: int) -> None:
        due = time.perf_counter() + self._pause * number / CLIENTS
        with httpx.Client(base_url=self._url, headers=BEARER, timeout=60, trust_env=False) as client:
            while not self._stop.wait(max(0, due - time.perf_counter())):
                phase = self.phase
                try:
                    phase.statuses[client.post("/v1/classify", json=REQUEST).status_code] += 1
                    phase.seconds.append(time.perf_counter() - due)
                except httpx.HTTPError as error:
                    phase.lost.append(type(error).__name__)
                due += self._pause


def teach(url: str, name: str, number: int) -> dict[str, Any]:
    """Teach a label; return the answer, and how long it took until it came and until fresh connections agreed."""
    examples = [f"zebra {word} of label {number}" for word in ("crossing", "lawn", "stripes", "herd", "crossing two")]
    with httpx.Client(base_url=url, headers=ADMIN, timeout=60, trust_env=False) as client:
        body = {"label": f"label {number}", "examples": examples[:EXAMPLES]}
        begun = time.perf_counter()
        answer = client.post(f"/v1/models/{name}/labels", json=body)
        answered = time.perf_counter() - begun
        answer.raise_for_status()
    found: dict[str, Any] = answer.json()
    return {"seconds": answered, "sha256": found["sha256"], "workers": found["workers"], "label": body["label"]}


def agree(url: str, digest: str) -> bool:
    """Whether so many fresh connections are all answered by the file with this SHA-256."""
    answers = (httpx.post(f"{url}/v1/classify", json=REQUEST, headers=BEARER, trust_env=False) for _ in range(CHECKS))
    return all(digest in answer.headers["x-model"] for answer in answers)


def labels_of(url: str, name: str) -> set[str]:
    answer = httpx.get(f"{url}/v1/models/{name}/labels", headers=ADMIN, trust_env=False)
    return {each["label"] for each in answer.json()["labels"] if each["taught_examples"]}


def kill_one(server: Server) -> float:
    """Kill a worker, and wait until there are as many as before; return how long that took."""
    before = children(server.process.pid)
    begun = time.perf_counter()
    os.kill(before[0], signal.SIGKILL)
    while len(now := children(server.process.pid)) < len(before) or before[0] in now:
        time.sleep(0.02)
    return time.perf_counter() - begun


@click.command()
@click.argument("model", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--labels", default=20, type=click.IntRange(1, 100))
@click.option("--rate", default=100.0, type=click.FloatRange(1, 1000), help="Requests a second.")
@click.option("--kills", default=5, type=click.IntRange(1, 20))
@click.option("--seconds", default=10.0, type=click.FloatRange(1, 60), help="Of the load before anything is taught.")
@click.option("--workers", default=2, type=click.IntRange(2, 8))
def main(model: Path, labels: int, rate: float, kills: int, seconds: float, workers: int) -> None:
    """Teach labels to a service under load, with kills between, and write down what came of it."""
    busy = os.getloadavg()[0]
    facts = about(packages=("textcls", "onnxruntime", "numpy", "uvicorn"))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(shutil.copy(model, Path(folder) / "tickets.onnx"))
        result = run(path, labels, rate, kills, seconds, workers)
    result |= {
        "about": facts,
        "model_bytes": model.stat().st_size,
        "rate": rate,
        "workers": workers,
        "busy": busy,
        "nice": os.nice(0),
    }
    RESULT.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    RESULT.with_suffix(".md").write_text(document(result), encoding="utf-8")
    print(document(result))
    if result["phases"]["taught"]["lost"] or not (result["agreed"] and result["kept"] and result["kept_by_restart"]):
        raise SystemExit("not passed")


def run(path: Path, labels: int, rate: float, kills: int, seconds: float, workers: int) -> dict[str, Any]:
    options = ("--workers", str(workers), "--teaching")
    server = Server(path, *options, key=KEY)
    try:
        with Rate(server.url, rate).running() as load:
            time.sleep(1)
            load.next_phase()
            time.sleep(seconds)
            phases = {"before": load.next_phase()}
            taught = [_taught(server.url, path, number) for number in range(labels)]
            phases["taught"] = load.next_phase()
            replaced = []
            for number in range(labels, labels + kills):
                # While the others take it up, and while the file is being written: at another moment each time.
                thread = threading.Timer(0.05 * (number - labels), lambda: replaced.append(kill_one(server)))
                thread.start()
                taught.append(_taught_at_last(server.url, path, number))
                thread.join()
                time.sleep(BREATH_SECONDS)
            phases["killed"] = load.next_phase()
        kept = labels_of(server.url, path.stem)
    finally:
        server.kill()
        server.close()
    again = Server(path, *options, key=KEY)
    try:
        after = labels_of(again.url, path.stem)
    finally:
        again.kill()
        again.close()
    wanted = {each["label"] for each in taught}
    quiet = [each["seconds"] for each in taught[:labels]]
    return {
        "labels": labels,
        "kills": len(replaced),
        "answer_seconds": {"median": round(float(np.median(quiet)), 3), "most": round(max(quiet), 3)},
        "replaced_seconds": round(max(replaced), 2),
        "agreed": all(each["agreed"] for each in taught[:labels]),
        "kept": kept >= wanted,
        "kept_by_restart": after == kept,
        "phases": {name: phase.row() for name, phase in phases.items()},
    }


def _taught(url: str, path: Path, number: int) -> dict[str, Any]:
    found = teach(url, path.stem, number)
    on_disk = sha256(path.read_bytes()).hexdigest() == found["sha256"]
    found["agreed"] = on_disk and agree(url, found["sha256"])
    time.sleep(BREATH_SECONDS)
    return found


def _taught_at_last(url: str, path: Path, number: int) -> dict[str, Any]:
    """Teach a label, again if whoever was to do it was killed: the same call twice changes nothing."""
    for _ in range(20):
        try:
            return teach(url, path.stem, number)
        except httpx.HTTPError:
            time.sleep(BREATH_SECONDS / 5)
    raise SystemExit(f"label {number} cannot be taught")


def document(result: dict[str, Any]) -> str:
    """Return the table as Markdown."""
    spent = result["answer_seconds"]
    lines = [
        "# Labels taught under load",
        "",
        f"`python benchmarks/teaching_under_load.py MODEL.onnx`: a model of {result['model_bytes'] / 1e6:.1f} MB in "
        f"{result['workers']} workers, asked {result['rate']:g} times a second over loopback by {CLIENTS} clients, "
        f"taught {result['labels']} labels of {EXAMPLES} examples one after the other; then {result['kills']} more, "
        "while a worker is killed with -9 each time. Times count from when a request was due. The load average of the "
        f"machine was {result['busy']:.1f} before it began; service and clients ran at nice {result['nice']}.",
        "",
        headline(result["about"]),
        "",
        "| while | requests | lost | p50 ms | p99 ms | most ms |",
        "|---|---|---|---|---|---|",
    ]
    names = {
        "before": "nothing is taught",
        "taught": "labels are taught",
        "killed": "labels are taught, workers killed",
    }
    for name, row in result["phases"].items():
        figures = (row["requests"], row["lost"], row["p50_ms"], row["p99_ms"], row["most_ms"])
        lines.append(f"| {names[name]} | " + " | ".join(f"{each:,}" for each in figures) + " |")
    lines += [
        "",
        f"- From the call to its answer, which comes once the file is on disk and every worker answers with it: "
        f"{spent['median']:.2f} s in the median, {spent['most']:.2f} s at most.",
        f"- {CHECKS} fresh connections after each answer were answered by the new file: "
        f"{'all' if result['agreed'] else 'NOT all'}.",
        f"- After {result['kills']} killed workers, each replaced within {result['replaced_seconds']:.1f} s, every "
        f"label was there: {'yes' if result['kept'] else 'NO'}; and after a kill of the whole service and a new start: "
        f"{'yes' if result['kept_by_restart'] else 'NO'}.",
        "",
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
