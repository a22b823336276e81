"""How often a further model's number lies in the interval of 95 % that `explain --stability` tells.

    python benchmarks/intervals.py DATA/sst2 DATA/trec6 ...

Of each set 2,500 training rows and 400 texts are drawn, by a seed of the system. Of fourteen models of these rows six
tell the intervals, and the other eight are the further ones. Beside it the range of the six, from smallest to largest.
"""

import argparse
import csv
import random
import secrets
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from textcls import Classifier
from textcls.explain.stability import beside, with_spread
from textcls.model.prediction import explanation_of

ROWS, TEXTS, TOLD, FURTHER = 2500, 400, 6, 8


def coverage(rows: list[dict[str, str]], folder: Path) -> tuple[float, float, float]:
    """Return which share of further numbers lies in the interval and in the range, and how much wider the former is."""
    table, model = folder / "rows.csv", folder / "model.onnx"
    with table.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, ("text", "label"), extrasaction="ignore")
        writer.writeheader()
        writer.writerows(rows[:ROWS])
    command = [sys.executable, "-m", "textcls", "train", table, "-o", model, "--vectors", "none", "--quiet"]
    resamples = TOLD + FURTHER - 1
    subprocess.run([*command, "--resamples", str(resamples)], check=True, stdout=subprocess.DEVNULL)
    models = [Classifier.load(model), *map(Classifier.load, sorted(beside(model).glob("*.onnx")))]
    inside, among, wide, narrow, total = 0, 0, 0.0, 0.0, 0
    for row in rows[ROWS : ROWS + TEXTS]:
        answers = [one.predict(row["text"], explain=True) for one in models]
        label = answers[0].label
        value_MT = np.stack([explanation_of(one).attribution(label).values for one in answers])
        told = with_spread(explanation_of(answers[0]).attribution(label), answers[0], answers[1:TOLD]).spread
        assert told is not None
        low_T, high_T = value_MT[:TOLD].min(0), value_MT[:TOLD].max(0)
        further_MT = value_MT[TOLD:]
        inside += int(((told.low <= further_MT) & (further_MT <= told.high)).sum())
        among += int(((low_T <= further_MT) & (further_MT <= high_T)).sum())
        wide, narrow = wide + float((told.high - told.low).sum()), narrow + float((high_T - low_T).sum())
        total += further_MT.size
    return inside / total, among / total, wide / narrow


def main() -> None:
    """Print a line a set."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="+", type=Path, help="folders with train.csv")
    given = parser.parse_args()
    seed = secrets.randbits(32)
    print(f"seed {seed}\n\n| set | in the interval | in the range | width, interval / range |\n|---|---|---|---|")
    for folder in given.sets:
        with (folder / "train.csv").open(newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        random.Random(seed).shuffle(rows)
        with tempfile.TemporaryDirectory() as place:
            interval, within, wider = coverage(rows, Path(place))
        print(f"| {folder.name} | {interval:.1%} | {within:.1%} | {wider:.2f} |", flush=True)


if __name__ == "__main__":
    main()
