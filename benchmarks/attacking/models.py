"""The model files of the attacks: good ones, and damaged ones."""

import json
import random
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import onnx
from running import command, environment

MANY_LABELS: Final = 120
_ROWS: Final = 8
_WORDS: Final = 12
_KEY: Final = "textcls"

Change = Callable[[dict[str, Any]], None]


def with_few_labels(tree: Path, folder: Path) -> Path:
    """Return a model of the bundled sample, trained by the checkout `tree` unless it is there."""
    return _trained(tree, tree / "textcls" / "demo" / "support_tickets.csv", folder / "few.onnx")


def with_many_labels(tree: Path, folder: Path) -> Path:
    """Return a model with `MANY_LABELS` labels, trained on made-up texts by the checkout `tree` unless it is there."""
    chance, data = random.Random(0), folder / "many.jsonl"
    with data.open("w", encoding="utf-8") as file:
        for label in range(MANY_LABELS):
            for _ in range(_ROWS):
                words = [f"word{label}of{chance.randrange(20)}" for _ in range(_WORDS)]
                file.write(json.dumps({"text": " ".join(words), "label": f"label {label:03}"}) + "\n")
    return _trained(tree, data, folder / "many.onnx", "--epochs", "3")


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
