"""How long one answer takes: a text of 45 tokens, in process, one thread, beside the peers in the same run.

python benchmarks/answer_time.py DATA/trec6/train.csv
"""

import sys
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from statistics import median

from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from common import load_ours, read, train_ours
from measure import microseconds
from peers import PEERS

TEXT = (
    "The quick brown fox, jumps over the lazy dog's back and then (as always) my card was charged twice by the shop in "
    "London; please refund the money back to my account as soon as possible! Thanks a"
)
ROUNDS, REPEATS = 7, 500
OURS = {"default": [], "without n-grams": ["--ngrams", "none"]}
THEIRS = ("fastText bigrams", "fastText sub-words, 25 epochs", "TF-IDF words + LR", "TF-IDF words + SVM")

Ask = Callable[[Sequence[str]], object]


def trained(path: Path) -> dict[str, Ask]:
    """Return what is asked, by its name, trained on the file at `path`."""
    rows = read(path)
    asked: dict[str, Ask] = {}
    with tempfile.TemporaryDirectory() as work:
        for name, options in OURS.items():
            train_ours(path, Path(work) / "model.onnx", options)
            model = load_ours(Path(work) / "model.onnx")
            asked[f"textcls {name}, label and attributions"] = partial(_first, model.alone)
            asked[f"textcls {name}, label"] = model.predict
    return asked | {name: PEERS[name](rows.texts, rows.labels).predict for name in THEIRS}


def _first(ask: Callable[[str], object], texts: Sequence[str]) -> object:
    return ask(texts[0])


def main(path: Path) -> None:
    asked = trained(path)
    times: dict[str, list[float]] = {name: [] for name in asked}
    with threadpool_limits(1):
        for _ in range(ROUNDS):
            # Interleaved, so that a busy moment of the machine hits all alike.
            for name, ask in asked.items():
                times[name].append(microseconds(ask, [[TEXT]] * REPEATS))
    reference = median(times["fastText bigrams"])
    print(f"{'':45} {'us':>7} {'times fastText':>15}")
    for name, found in times.items():
        print(f"{name:45} {median(found):7.1f} {median(found) / reference:15.1f}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
