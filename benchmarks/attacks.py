"""Attacks on a real `textcls serve` under a real memory limit: what each costs it, and what is lost.

python benchmarks/attacks.py [MODEL.onnx] [--tree CHECKOUT] [--as before | after] [--only WORDS] [--rounds N]

Each attack starts the server of the checkout, watches its memory, has /livez and /readyz asked every 50 ms, and
/metrics every 200, by another process, beside an ordinary caller with a key, and does its worst for some seconds: at
most 20, and 64 MB over a connection, and only to 127.0.0.1. The result goes into one of the two columns of
attacks.json, and the table of both into attacks.md. Without MODEL a model of the bundled sample is attacked; that one,
and others with up to 5,000 labels, are trained once, into the folder --work. Of several rounds the worst counts.
"""

import json
import os
from dataclasses import asdict
from datetime import date
from pathlib import Path
from tempfile import gettempdir
from typing import Any, Final

import click

from attacking import elsewhere, files, many_labels, models, report, search, stopping, strangers, work  # noqa: F401 - what they define is listed
from attacking.bench import ATTACKS, LIMIT_MIB, Attack, Bench
from attacking.limits import limited
from common import about
from running import HERE, ROOT

KEPT: Final = HERE / "attacks.json"
TABLE: Final = HERE / "attacks.md"
PACKAGES: Final = ("onnxruntime", "uvicorn", "httptools", "uvloop", "fastapi", "numpy")
FOLDER: Final = Path(gettempdir(), "textcls-attacks")


def run(one: Attack, bench: Bench, rounds: int) -> dict[str, Any]:
    """Run an attack some times; return what is kept of it: the worst, and what each round said."""
    load = os.getloadavg()[0]
    results = [one.run(bench) for _ in range(rounds)]
    worst = results[0]
    for other in results[1:]:
        worst.figures.merge(other.figures)
        worst.seen.broken += [each for each in other.seen.broken if each not in worst.seen.broken]
    return {
        "section": one.section,
        "broken": worst.broken(),
        "allowed_mb": round(worst.allowed_mb),
        "figures": {**asdict(worst.figures), "lost": worst.figures.lost},
        "said": [result.seen.said for result in results],
        "load_average": round(load, 1),
        "date": date.today().isoformat(),
    }


@click.command()
@click.argument("model", required=False, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--tree", default=ROOT, type=click.Path(exists=True, file_okay=False, path_type=Path), help="Whose code.")
@click.option("--as", "column", default="after", type=click.Choice(report.COLUMNS), help="Which column is written.")
@click.option("--only", default="", help="Only attacks whose name holds this.")
@click.option("--rounds", default=1, type=click.IntRange(min=1), help="How often each runs.")
@click.option("--work", "folder", default=FOLDER, type=click.Path(path_type=Path), help="Where files are made.")
def main(model: Path | None, tree: Path, column: str, only: str, rounds: int, folder: Path) -> None:
    """Attack the service, and fail if it does not stand it."""
    tree, folder = tree.resolve(), folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    few = model.resolve() if model else models.with_few_labels(tree, folder)
    bench = Bench(tree, few, folder)
    kept = json.loads(KEPT.read_text()) if KEPT.exists() else {}
    with limited(LIMIT_MIB) as limit:
        facts = about(tree, PACKAGES) | {"limit_mib": LIMIT_MIB, "limit_kept_by": limit.kept_by}
    found: dict[str, Any] = kept.setdefault(column, {"about": facts, "attacks": {}})
    found["about"] = facts
    broken = 0
    listed = sorted(ATTACKS, key=lambda each: each.section)
    for one in listed:
        if only in f"{one.section}: {one.name}":
            result = run(one, bench, rounds) | {"commit": facts["commit"]}
            broken += bool(result["broken"])
            found["attacks"][one.name] = result
            print(json.dumps({one.name: result}, indent=1), flush=True)
            # After each, so that a run that is broken off has kept what it saw.
            KEPT.write_text(json.dumps(kept, indent=1) + "\n")
            TABLE.write_text(report.page(kept, [each.name for each in listed]))
    if broken:
        raise SystemExit(f"Attacks that succeeded: {broken}")


if __name__ == "__main__":
    main()
