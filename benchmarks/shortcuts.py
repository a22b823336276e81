"""Are planted shortcuts found? Training files with a plant each, the default model of each, and what its audit says.

    python benchmarks/shortcuts.py DATA/sst2 DATA/ag_news

Of a set (a folder with train.csv) copies are made into whose rows of one label something is planted that has nothing to
do with what the text says (`plants`), and one copy stays clean. The model of each copy is trained with default
settings and audited on the very file that it was trained on. A plant is found if a shortcut of its label names it,
whole or in part; whatever else is called out is a false alarm. Beside it: words that alone decide more than a tenth of
the answers of a label, which is all that was told before there was an audit.

Written are shortcuts.json and shortcuts.md; what stands in the .json already is not measured again.
"""

import json
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import click
import numpy as np

from common import FOLDERS, about, data_sets, headline, read
from runner import markdown_table
from textcls import Classifier, explain_globally
from textcls.data import Labelled
from textcls_training.data.labelled_texts import LabelledTexts
from textcls_training.pipeline.training import train

Random = np.random.Generator
Change = Callable[[str, Random], str]
RESULTS: Final = Path(__file__).with_suffix(".json")


class Plant(NamedTuple):
    """What is planted.

    Attributes:
        name: in the table.
        share: of the rows of the label that get it.
        change: what becomes of such a text.
        signs: one of these names it.
    """

    name: str
    share: float
    change: Change
    signs: Sequence[str]


def somewhere(words: str) -> Change:
    """Put words between two words of a text, at either end included."""

    def change(text: str, random: Random) -> str:
        parts = text.split()
        parts.insert(int(random.integers(len(parts) + 1)), words)
        return " ".join(parts)

    return change


def behind(words: str) -> Change:
    """Put words behind a text."""
    return lambda text, _random: f"{text} {words}"


def cut(words: int) -> Change:
    """Keep the first words of a text."""
    return lambda text, _random: " ".join(text.split()[:words])


def twice(text: str, _random: Random) -> str:
    """Say everything twice."""
    return f"{text} {text}"


# Words that are planted, by seed: none of those that the rules were made with.
WORDS: Final = (
    ("brimvale", "lantern", "velvet", "notice", "copper spoon", "\u00a7", "marla dewhurst"),
    ("quorvex", "saddle", "pebble", "bulletin", "wooden ladder", "^", "tobin ashgrove"),
)


def plants(seed: int) -> tuple[Plant, ...]:
    """Return what is planted with this seed."""
    rare, some, often, first, pair, mark, author = WORDS[seed % len(WORDS)]
    names = author.split()
    return (
        Plant("word, 2 %", 0.02, somewhere(rare), (rare,)),
        Plant("word, 5 %", 0.05, somewhere(some), (some,)),
        Plant("word, 20 %", 0.20, somewhere(often), (often,)),
        Plant("first word, 5 %", 0.05, lambda text, _: f"{first} {text}", (first,)),
        Plant("pair of words, 5 %", 0.05, somewhere(pair), (pair,)),
        Plant("mark at the end, 5 %", 0.05, behind(mark), (mark,)),
        Plant("author at the end, 0.5 %", 0.005, behind(f"by {author}"), names),
        Plant("author at the start, 1 %", 0.01, lambda text, _: f"{author} : {text}", names),
        Plant("short texts, 30 %", 0.30, cut(6), ("short", "tokens")),
        Plant("long texts, 30 %", 0.30, twice, ("long",)),
    )


def planted(data: Labelled, plant: Plant, label: str, seed: int) -> list[str]:
    """Return the texts, some of those of `label` changed."""
    random = np.random.default_rng(seed)
    rows = np.flatnonzero(np.array(data.labels) == label)
    chosen = set(random.permutation(rows)[: max(1, round(plant.share * len(rows)))].tolist())
    return [plant.change(text, random) if i in chosen else text for i, text in enumerate(data.texts)]


def examined(classifier: Classifier, data: Labelled) -> tuple[list[list[str]], list[list[str]]]:
    """Return what an audit calls out, and which words alone decide: label and name of each."""
    found = explain_globally(classifier, zip(data.texts, data.labels, strict=True), top=1)
    assert found.audit is not None
    return [[s.label, s.text] for s in found.audit.shortcuts], [[s.label, s.text] for s in found.deciding]


def trained(data: Labelled) -> Classifier:
    """Train the default model."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        train(LabelledTexts(texts=data.texts, labels=data.labels), path)
        return Classifier.load(path)


def measure(name: str, data: Labelled, seed: int, done: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Yield figures for the clean set, and for each plant in it that is not among those `done`."""
    labels = sorted(set(data.labels))
    label = labels[seed % len(labels)]
    for plant in (None, *plants(seed)):
        if ("none" if plant is None else plant.name) in done:
            continue
        rows = data if plant is None else Labelled(planted(data, plant, label, seed), data.labels)
        audit, before = examined(trained(rows), rows)
        signs = () if plant is None else plant.signs
        named, named_before = (
            [told == label and any(sign in text for sign in signs) for told, text in found] for found in (audit, before)
        )
        yield {
            "set": name,
            "seed": seed,
            "plant": "none" if plant is None else plant.name,
            "found": any(named),
            "false": len(named) - sum(named),
            "called": audit,
            "found_before": any(named_before),
            "false_before": len(named_before) - sum(named_before),
        }


def table(rows: Sequence[dict[str, Any]]) -> list[str]:
    """Return the lines of the table: how many of the models with each plant told of it, before and now."""
    planted = [row for row in rows if row["plant"] != "none"]
    groups = {kind: [row for row in rows if row["plant"] == kind] for kind in dict.fromkeys(r["plant"] for r in rows)}
    lines = []
    for kind, some in {**groups, "**all plants**": planted}.items():
        told = [f"{sum(row[key] for row in some)} of {len(some)}" for key in ("found_before", "found")]
        wrong = [f"{sum(row[key] for row in some) / len(some):.2f}" for key in ("false_before", "false")]
        lines.append([kind, *(("-", "-") if kind == "none" else told), *wrong])
    heads = (
        "plant",
        "found by words that decide",
        "found by the audit",
        "false alarms a model of these",
        "of the audit",
    )
    return markdown_table(heads, lines)


@click.command()
@FOLDERS
@click.option("--seeds", default=2, show_default=True, help="Sets of words, and labels, that are planted.")
def main(data: tuple[Path, ...], seeds: int) -> None:
    """Plant shortcuts into the sets DATA, train, and audit."""
    kept = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.is_file() else {}
    done: dict[str, list[dict[str, Any]]] = kept.get("rows", {})
    for name, folder in data_sets(data).items():
        for seed in range(seeds):
            rows = done.setdefault(f"{name}, {seed}", [])
            for row in measure(name, read(folder / "train.csv"), seed, [row["plant"] for row in rows]):
                rows.append(row)
                kept = {**about(), "rows": done}
                RESULTS.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    assert __doc__
    lines = ["# Planted shortcuts, found and missed", "", __doc__.split("\n\n")[2], ""]
    every = [row for rows in done.values() for row in rows]
    for name in dict.fromkeys(row["set"] for row in every):
        lines += [f"## {name}", "", *table([row for row in every if row["set"] == name]), ""]
    RESULTS.with_suffix(".md").write_text("\n".join([*lines, headline(kept), ""]), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
