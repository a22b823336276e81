"""Do people mark the same phrases and sentences? Plausibility of each method by token, by phrase and by sentence.

    python benchmarks/units.py DATA/hatexplain DATA/sst2

Of hatexplain: its test posts with the tokens that people marked, one by one, and joined to documents of one marked post
and five that are normal, a sentence each. Of sst2: documents of two sentences of one label among six of the other,
where the whole sentences of the first are what speaks for it. The score of a unit is the mean over its tokens. Written
are units.json and units.md; what stands in the .json already is not measured again.
"""

import json
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import click
import numpy as np

from common import FOLDERS, about, data_sets, headline, read, train_ours
from faithfulness.benchmark import explain_benchmark
from faithfulness.plausibility import Rationale
from faithfulness.rationales import read_rationales
from runner import markdown_table
from textcls import Classifier

Document = tuple[str, Rationale]
METHODS: Final = ("contributions", "attention", "leave_one_out", "lime", "shap", "random")
UNITS: Final = {"token": "", "phrase": "_phrase", "sentence": "_sentence"}
FIGURES: Final = {"AUPRC": "auprc", "token F1": "token_f1", "IOU F1": "iou_f1_merged"}
DOCUMENTS: Final = 150
AMONG: Final = 5
RESULTS: Final = Path(__file__).with_suffix(".json")


def posts(folder: Path) -> list[Document]:
    """Return the marked test posts of hatexplain, each with the reasons for its label."""
    rows, marked = read(folder / "test.csv"), read_rationales(folder / "rationales_test.jsonl")
    every = [(rows.texts[row], Rationale(found.tokens, found.gold, rows.labels[row])) for row, found in marked.items()]
    found = [(text, rationale) for text, rationale in every if any(rationale.gold) and rationale.label != "normal"]
    return found[:DOCUMENTS]


def joined_posts(folder: Path) -> list[Document]:
    """Return marked posts, each among normal ones at a place of its own."""
    rows, random = read(folder / "test.csv"), np.random.default_rng(0)
    normal = [text for text, label in zip(rows.texts, rows.labels, strict=True) if label == "normal"]
    found = []
    for _, rationale in posts(folder):
        parts = [(words := normal[i].split(), [False] * len(words)) for i in random.integers(len(normal), size=AMONG)]
        parts.insert(int(random.integers(AMONG + 1)), (list(rationale.tokens), list(rationale.gold)))
        found.append(_document(parts, rationale.label))
    return found


def joined_sentences(folder: Path) -> list[Document]:
    """Return documents of two sentences of one label among six of the other, all of the first marked."""
    rows, random = read(folder / "test.csv"), np.random.default_rng(0)
    labels = sorted(set(rows.labels))
    by_label = {name: [t for t, label in zip(rows.texts, rows.labels, strict=True) if label == name] for name in labels}
    found = []
    for i in range(DOCUMENTS):
        own, other = labels[i % 2], labels[1 - i % 2]
        few = [(by_label[own][k].split(), True) for k in random.integers(len(by_label[own]), size=2)]
        many = [(by_label[other][k].split(), False) for k in random.integers(len(by_label[other]), size=6)]
        parts = [(words, [gold] * len(words)) for words, gold in few + many]
        found.append(_document([parts[k] for k in random.permutation(len(parts))], own))
    return found


def _document(parts: Sequence[tuple[list[str], list[bool]]], label: str | None) -> Document:
    """Return texts as sentences of one: a full stop, which nobody marked, behind each."""
    tokens = [token for words, _ in parts for token in (*words, ".")]
    gold = [mark for _, marks in parts for mark in (*marks, False)]
    return " ".join(tokens), Rationale(tuple(tokens), tuple(gold), label)


KINDS: Final[dict[str, tuple[str, Callable[[Path], list[Document]]]]] = {
    "hatexplain, posts": ("hatexplain", posts),
    "hatexplain, six posts a text": ("hatexplain", joined_posts),
    "sst2, eight sentences a text": ("sst2", joined_sentences),
}


def measure(folder: Path, documents: Sequence[Document]) -> dict[str, Any]:
    """Return the figures of each method, by unit."""
    with tempfile.TemporaryDirectory() as place:
        model = Path(place) / "model.onnx"
        train_ours(folder / "train.csv", model)
        texts, rationales = [text for text, _ in documents], [rationale for _, rationale in documents]
        result = explain_benchmark(
            Classifier.load(model), texts, methods=METHODS, rationales=rationales, with_robustness=False
        )
    figures = {
        method.name: {name: [one.value, one.low, one.high] for name, one in method.figures["plausibility"].items()}
        for method in result.methods
    }
    return {"texts": result.texts, "tokens": result.tokens, "methods": figures}


def rows(found: dict[str, Any]) -> Iterator[list[str]]:
    """Yield a line for each method."""
    best = {
        (figure, suffix): max(methods[f"{figure}{suffix}"][0] for methods in found["methods"].values())
        for figure in FIGURES.values()
        for suffix in UNITS.values()
    }
    for name, figures in found["methods"].items():
        cells = []
        for (figure, suffix), most in best.items():
            value = figures[f"{figure}{suffix}"][0]
            cells.append(f"**{value:.3f}**" if value == most else f"{value:.3f}")
        yield [name, *cells]


@click.command()
@FOLDERS
def main(data: tuple[Path, ...]) -> None:
    """Measure plausibility by unit on the sets DATA."""
    kept = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.is_file() else {}
    done: dict[str, Any] = kept.get("kinds", {})
    folders = data_sets(data)
    for kind, (name, documents) in KINDS.items():
        if name in folders and kind not in done:
            done[kind] = measure(folders[name], documents(folders[name]))
            kept = {**about(), "kinds": done}
            RESULTS.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
    assert __doc__
    lines = ["# Plausibility by token, phrase and sentence", "", __doc__.split("\n\n")[2], ""]
    heads = ("method", *(f"{figure}, {unit}" for figure in FIGURES for unit in UNITS))
    for kind, found in done.items():
        about_texts = f"{found['texts']:,} texts of {found['tokens']:.0f} tokens in the mean."
        lines += [f"## {kind}", "", about_texts, "", *markdown_table(heads, rows(found)), ""]
    RESULTS.with_suffix(".md").write_text("\n".join([*lines, headline(kept), ""]), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
