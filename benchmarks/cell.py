"""Train and measure one model on one data set, in a process of its own so that its memory is its own.

The benchmarks call `measure`; it starts this file, which reads a request in JSON and prints the figures in JSON.
"""

import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from common import Cost, load_ours, peak_mb, read, subset, train_ours, write
from measure import Figures, Trained, figures
from peers import PEERS, prepare
from runner import CommandError, figures_of
from state import Cell
from textcls.data import Labelled


def measure(folder: Path, cell: Cell) -> Figures:
    """Return the figures of `cell` on the data set in `folder`, measured in another process.

    Raises:
        CommandError: that process failed.
    """
    return figures_of([sys.executable, __file__, json.dumps({"folder": str(folder), **cell.to_json()})])


def _train(folder: Path, cell: Cell, train: Labelled, work: Path) -> tuple[Trained, Cost]:
    if not cell.ours:
        prepare(cell.model)
        start = time.perf_counter()
        model = PEERS[cell.model](train.texts, train.labels)
        return model, Cost(time.perf_counter() - start, peak_mb())
    data, saved = folder / "train.csv", work / "model.onnx"
    if cell.rows:
        data = work / "train.csv"
        write(data, train)
    cost = train_ours(data, saved, cell.options)
    return load_ours(saved), cost


def main(folder: str, **fields: Any) -> None:
    """Print the figures of the cell with these `fields` on the data set in `folder`."""
    cell = Cell(**fields)
    train = read(Path(folder) / "train.csv")
    if cell.rows:
        train = subset(train, cell.rows, cell.seed)
    with tempfile.TemporaryDirectory() as work:
        try:
            model, cost = _train(Path(folder), cell, train, Path(work))
        except CommandError as error:
            sys.exit(str(error))
    test = read(Path(folder) / "test.csv")
    about = {"train_rows": len(train.texts), "test_rows": len(test.texts), "labels": len(set(train.labels))}
    with threadpool_limits(1):
        found = figures(model, test.texts, test.labels)
    print(json.dumps({**about, **found, "train_s": cost.seconds, "peak_mb": cost.peak_mb}))


if __name__ == "__main__":
    main(**json.loads(sys.argv[1]))
