"""What a shadow costs the requests of a service: asked at a steady rate with one and without, in turn.

python benchmarks/shadow.py MODEL.onnx SHADOW.onnx

Two services of one worker over loopback, one of a registry without a shadow, one with it; each rate is asked of both in
turn, some rounds. Results go to shadow.json and .md; it fails if a request is lost.
"""

import json
import os
import re
import subprocess
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from typing import Any, Final

import click
import httpx
from common import about, headline
from running import BEARER, HERE, KEY, command, environment, serving
from teaching_under_load import CLIENTS, Rate

RESULT: Final = HERE / "shadow.json"
RATES: Final = (20, 100, 300)
KINDS: Final = ("without", "with")
COUNTED: Final = re.compile(r"^textcls_shadow_(texts|dropped)_total\{[^}]*\} (\S+)$", re.MULTILINE)


def publish(folder: Path, model: Path, shadow: Path | None) -> None:
    """Publish a model, and its shadow if there is one."""
    calls = [["publish", str(model), str(folder), "--name", "tickets", "--promote"]]
    if shadow is not None:
        calls += [["publish", str(shadow), str(folder)], ["versions", str(folder), "--shadow", "2"]]
    for call in calls:
        subprocess.run(command(*call), check=True, stdout=subprocess.DEVNULL, env=environment())


def asked(url: str, rate: float, seconds: float) -> dict[str, Any]:
    """Ask a service so many times a second; return what became of the requests, and what the shadow was asked."""
    with Rate(url, rate).running() as load:
        time.sleep(1)
        load.next_phase()
        before = counted(url)
        time.sleep(seconds)
        row = load.next_phase().row()
    return row | {name: value - before[name] for name, value in counted(url).items()}


def counted(url: str) -> dict[str, float]:
    """Return how many texts the shadow was asked, and how many it was not."""
    said = httpx.get(f"{url}/metrics", headers=BEARER, trust_env=False).text
    return {name: float(value) for name, value in COUNTED.findall(said)}


@click.command()
@click.argument("model", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.argument("shadow", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--rounds", default=5, type=click.IntRange(1, 20))
@click.option("--seconds", default=6.0, type=click.FloatRange(1, 60), help="Of each rate in each round.")
def main(model: Path, shadow: Path, rounds: int, seconds: float) -> None:
    """Ask both services in turn, and write down how long answers took."""
    busy, facts = os.getloadavg()[0], about(packages=("textcls", "onnxruntime", "numpy", "uvicorn"))
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        folders = {kind: Path(folder) / kind for kind in KINDS}
        for kind, path in folders.items():
            publish(path, model, shadow if kind == "with" else None)
        urls = {kind: stack.enter_context(serving(path, key=KEY)).url for kind, path in folders.items()}
        for number in range(rounds):
            for rate in RATES:
                # Each goes first in every other round.
                for kind in KINDS if number % 2 else KINDS[::-1]:
                    rows.append({"kind": kind, "rate": rate, **asked(urls[kind], rate, seconds)})
    result = {"about": facts, "busy": busy, "seconds": seconds, "rounds": rounds, "rows": rows}
    result |= {"model_bytes": model.stat().st_size, "shadow_bytes": shadow.stat().st_size}
    RESULT.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    RESULT.with_suffix(".md").write_text(document(result), encoding="utf-8")
    print(document(result))
    if any(row["lost"] for row in rows):
        raise SystemExit("not passed")


def document(result: dict[str, Any]) -> str:
    """Return the table as Markdown."""
    lines = [
        "# What a shadow costs",
        "",
        f"`python benchmarks/shadow.py MODEL.onnx SHADOW.onnx`: a model of {result['model_bytes'] / 1e6:.1f} MB in one "
        f"worker, with a shadow of {result['shadow_bytes'] / 1e6:.1f} MB and without, asked in turn over loopback by "
        f"{CLIENTS} clients, {result['rounds']} rounds of {result['seconds']:g} seconds each. Medians of the rounds; "
        f"times count from when a request was due. The load average of the machine was {result['busy']:.1f} before.",
        "",
        headline(result["about"]),
        "",
        "| requests a second | shadow | p50 ms | p99 ms | lost | texts that the shadow was asked |",
        "|---|---|---|---|---|---|",
    ]
    for rate in RATES:
        for kind in KINDS:
            rows = [row for row in result["rows"] if (row["kind"], row["rate"]) == (kind, rate)]
            p50, p99 = (median(row[name] for row in rows) for name in ("p50_ms", "p99_ms"))
            texts, dropped = (sum(row.get(name, 0) for row in rows) for name in ("texts", "dropped"))
            share = f"{texts / (texts + dropped):.1%}" if texts + dropped else ""
            lines.append(f"| {rate} | {kind} | {p50:.2f} | {p99:.2f} | {sum(row['lost'] for row in rows)} | {share} |")
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    main()
