"""A training that is killed at random moments, over and over; run as a program of its own, which forks cheaply.

    python killed.py FOLDER CONFIG ROWS KILLS

It is killed so often, and until half as many runs went on from a checkpoint. Printed is JSON: how many were killed, how
many went on, the hashes of all models, of which nobody has killed the first two, the first without a state, and how
long the second took.
"""

import hashlib
import json
import os
import random
import signal
import sys
import time
from pathlib import Path
from typing import Any

from textcls_training.config.settings import from_options
from textcls_training.data.labelled_texts import LabelledTexts
from textcls_training.fit.callbacks import Callback
from textcls_training.pipeline import training as pipeline
from textcls_training.state import folder as state_folder

SEED = 5
LABELS = ("billing", "returns", "shipping")


class Notes(Callback):
    """A callback that writes the notes of a training down."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def note(self, text: str) -> None:
        with self._path.open("a") as file:
            file.write(f"{text}\n")


def went_on(notes: Path) -> int:
    """How many trainings went on from a checkpoint."""
    return sum(line.startswith("Going on") for line in notes.read_text().splitlines())


def rows_of(count: int) -> LabelledTexts:
    """Texts of made-up words, of which some tell the label."""
    draw = random.Random(SEED)
    texts, labels = [], []
    for i in range(count):
        words = [f"word{draw.randrange(3_000)}" for _ in range(12)]
        told = LABELS[i % 3] if draw.random() < 0.8 else draw.choice(LABELS)
        texts.append(" ".join([*words, f"{told}{draw.randrange(20)}"]))
        labels.append(LABELS[i % 3])
    return LabelledTexts(texts=texts, labels=labels)


def main(folder: Path, options: dict[str, Any], count: int, kills: int) -> None:
    rows, config, output, notes = rows_of(count), from_options(options), folder / "model.onnx", folder / "notes.txt"
    # As often as it is offered: between some milliseconds each.
    state_folder.EVERY_SECONDS = state_folder.WRITING_SHARE = 0

    def train(state: Path | None) -> None:
        pipeline.train(rows, output, config, callback=Notes(notes), state=state)

    def hash_of_the_model() -> str:
        found = hashlib.sha256(output.read_bytes()).hexdigest()
        output.unlink()
        return found

    train(None)
    began = time.monotonic()
    hashes = [hash_of_the_model()]
    train(folder / "state-0")
    span = time.monotonic() - began
    hashes.append(hash_of_the_model())
    draw, killed = random.Random(), 0
    while killed < kills or (went_on(notes) < kills // 2 and killed < 10 * kills):
        child = os.fork()
        if not child:
            train(folder / f"state-{len(hashes)}")
            os._exit(0)
        deadline = time.monotonic() + draw.uniform(0, span)
        while (ended := os.waitpid(child, os.WNOHANG))[0] == 0 and time.monotonic() < deadline:
            time.sleep(0.002)
        if ended[0] == 0:
            os.kill(child, signal.SIGKILL)
            ended = os.waitpid(child, 0)
        if os.WIFSIGNALED(ended[1]):
            killed += 1
        elif ended[1]:
            sys.exit("a training failed")
        else:
            hashes.append(hash_of_the_model())
    left = folder / f"state-{len(hashes)}"
    if left.exists():
        train(left)
        hashes.append(hash_of_the_model())
    found = {"killed": killed, "went_on": went_on(notes), "hashes": hashes, "seconds": span}
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    main(Path(sys.argv[1]), json.loads(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]))
