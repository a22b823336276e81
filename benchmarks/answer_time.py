"""How long one answer takes: a text of 45 tokens, in process, one thread, beside the peers in the same run.

python benchmarks/answer_time.py DATA/trec6/train.csv
"""

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from peers import PEERS

from textcls import Classifier
from textcls.data import read_labelled

TEXT = (
    "The quick brown fox, jumps over the lazy dog's back and then (as always) my card was charged twice by the shop in "
    "London; please refund the money back to my account as soon as possible! Thanks a"
)
ROUNDS, REPEATS = 7, 500


def main(path: Path) -> None:
    rows = read_labelled(path, ["text"], "label")
    asked: dict[str, Callable[[], Any]] = {}
    with tempfile.TemporaryDirectory() as work:
        for name, options in {"default": [], "without n-grams": ["--ngrams", "none"]}.items():
            model = Path(work) / "model.onnx"
            tool = Path(sys.executable).parent / "textcls"
            subprocess.run([tool, "train", path, "-o", model, *options], check=True, capture_output=True)
            classifier = Classifier.load(model)
            asked[f"textcls {name}, label and attributions"] = partial(classifier.predict, TEXT, explain=True)
            asked[f"textcls {name}, label"] = partial(classifier.predict, TEXT)
    for name in ("fastText bigrams", "fastText sub-words, 25 epochs", "TF-IDF words + LR", "TF-IDF words + SVM"):
        asked[name] = partial(PEERS[name](rows.texts, rows.labels).predict, [TEXT])

    times: dict[str, list[float]] = {name: [] for name in asked}
    for _ in range(ROUNDS):
        # Interleaved, so that a busy moment of the machine hits all alike.
        for name, ask in asked.items():
            start = time.perf_counter()
            for _ in range(REPEATS):
                ask()
            times[name].append(1e6 * (time.perf_counter() - start) / REPEATS)
    reference = median(times["fastText bigrams"])
    print(f"{'':45} {'us':>7} {'times fastText':>15}")
    for name, found in times.items():
        print(f"{name:45} {median(found):7.1f} {median(found) / reference:15.1f}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
