"""`textcls inspect`: what a model file says of itself."""

import json
from dataclasses import asdict
from pathlib import Path

import click
from rich.table import Table
from rich.text import Text

from textcls.artifact import ModelInfo
from textcls.classifier import Classifier
from textcls.cli import render
from textcls.cli.options import model_argument


@click.command(epilog="Example: textcls inspect tickets.onnx")
@model_argument
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def inspect(model: Path, as_json: bool) -> None:
    """Show the labels, settings, training summary and format of MODEL."""
    info = Classifier.load(model).info
    if as_json:
        click.echo(json.dumps(asdict(info), ensure_ascii=False))
        return
    table = Table(box=None, pad_edge=False, show_header=False)
    for name, value in _facts(model, info):
        table.add_row(Text(name, style="dim"), Text(value))
    render.console().print(table)


def _facts(path: Path, info: ModelInfo) -> list[tuple[str, str]]:
    training, network = info.training, info.model
    features = ["words", *(["bigrams"] if info.features.bigrams else [])]
    if info.features.ngram_sizes:
        features.append(f"character n-grams of {' and '.join(map(str, info.features.ngram_sizes))}")
    return [
        ("file", f"{path}, {path.stat().st_size / 1e6:.2f} MB, format {info.format_version}"),
        ("task", info.task),
        (f"{len(info.labels)} labels", ", ".join(info.labels)),
        ("columns", f"{', '.join(info.text_columns)} -> {info.label_column}"),
        (
            "trained on",
            f"{training['rows']:,} rows, sha256 {training['data_sha256'][:12]}, "
            f"seed {training['seed']}, {training['epochs']} epochs",
        ),
        ("held out", f"{training['held_out_rows']:,} rows, accuracy {training['held_out_accuracy']}"),
        ("temperature", f"{info.temperature:.3f}"),
        ("threshold", "none: never abstains" if info.threshold is None else f"{info.threshold:.3f}"),
        ("reads", f"the first {info.max_tokens:,} tokens of a text: {', '.join(features)}"),
        # The configuration holds the gate's start; what it has become stands with the training.
        ("network", ", ".join(f"{name} {value}" for name, value in network.items() if name != "gate")),
        *([("learned gate", f"{training['gate']}")] if training.get("gate") is not None else []),
        ("made with", ", ".join(f"{name} {value}" for name, value in training["versions"].items())),
    ]
