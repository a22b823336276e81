"""The model files of the attacks: good ones, and damaged ones."""

import json
import random
import subprocess
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final

import onnx

from running import command, environment

# Models of more labels than that are made of fewer rows, for they are to be large and not good.
_GOOD_LABELS: Final = 120
_KEY: Final = "textcls"
_CHANCE: Final = random.Random(0)

Change = Callable[[dict[str, Any]], None]


def with_few_labels(tree: Path, folder: Path) -> Path:
    """Return a model of the bundled sample, trained by the checkout `tree` unless it is there."""
    return _trained(tree, tree / "textcls" / "demo" / "support_tickets.csv", folder / "few.onnx")


def with_labels(tree: Path, folder: Path, labels: int) -> Path:
    """Return a model with so many labels, trained on made-up texts by the checkout `tree` unless it is there."""
    good = labels <= _GOOD_LABELS
    options = ("--epochs", "3") if good else ("--epochs", "1", "--dim", "16", "--size", "full")
    texts = ((_text(label, good), f"label {label:04}") for label in range(labels) for _ in range(8 if good else 2))
    return _trained(tree, _written(folder / f"{labels}.jsonl", texts), folder / f"{labels}.onnx", *options)


def with_several_labels(tree: Path, folder: Path) -> Path:
    """Return a model of 100 labels, of which a text may have several, and whose names are as long as they may be."""
    texts = ((_text(label, True), [f"{each:03} ".ljust(250, "n") for each in (label, label // 2)]) for label in _EACH)
    return _trained(tree, _written(folder / "several.jsonl", texts), folder / "several.onnx", "--epochs", "3")


def with_prototypes(tree: Path, folder: Path) -> Path:
    """Return a model of 100 labels that are prototypes."""
    texts = ((_text(label, True), f"label {label:03}") for label in _EACH)
    options = ("--epochs", "3", "--head", "prototypes")
    return _trained(tree, _written(folder / "prototypes.jsonl", texts), folder / "prototypes.onnx", *options)


_EACH: Final = [label for label in range(100) for _ in range(8)]


def _text(label: int, good: bool) -> str:
    if good:
        return " ".join(f"word{label}of{_CHANCE.randrange(20)}" for _ in range(12))
    return " ".join(f"word{label % 97}of{_CHANCE.randrange(20)}" for _ in range(6)) + f" label{label}"


def _written(data: Path, rows: Iterable[tuple[str, Any]]) -> Path:
    if not data.exists():
        lines = [json.dumps({"text": text, "label": label}) for text, label in rows]
        data.write_text("\n".join(lines), encoding="utf-8")
    return data


def _trained(tree: Path, data: Path, model: Path, *options: str) -> Path:
    if not model.exists():
        train = command("train", str(data), "-o", str(model), "--quiet", *options)
        subprocess.run(train, env=environment(tree), stdout=subprocess.DEVNULL, check=True)
    return model


def changed(model: Path, to: Path, change: Change) -> Path:
    """Write a copy of a model whose metadata are changed."""
    graph = onnx.load(model)
    for entry in graph.metadata_props:
        if entry.key == _KEY:
            info = json.loads(entry.value)
            change(info)
            # Escaped: a lone surrogate has no other form.
            entry.value = json.dumps(info)
    onnx.save(graph, to)
    return to


def another(info: dict[str, Any]) -> None:
    """As good as before, and another file."""
    info["training"] = {**info["training"], "note": "another"}


def label_too_few(info: dict[str, Any]) -> None:
    info["labels"], info["bias"] = info["labels"][:-1], info["bias"][:-1]


def threshold_is(value: float) -> Change:
    def change(info: dict[str, Any]) -> None:
        info["threshold"] = value

    return change


def first_label_is(value: Any) -> Change:
    def change(info: dict[str, Any]) -> None:
        info["labels"][0] = value

    return change
