"""`textcls evaluate`: how good a model is on labelled rows."""

import json
from pathlib import Path

import click
import numpy as np

from textcls import data as tables
from textcls import metrics
from textcls.classifier import Classifier
from textcls.cli import render
from textcls.cli.options import PATH, model_argument, text_column_option


@click.command(epilog="Example: textcls evaluate tickets.onnx heldout.csv")
@model_argument
@click.argument("data", type=PATH)
@text_column_option
@click.option("--label-column", metavar="NAME", help="Column of the label.  [default: that of the training]")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of tables.")
def evaluate(model: Path, data: Path, text_columns: tuple[str, ...], label_column: str | None, as_json: bool) -> None:
    """Score MODEL on the labelled CSV file DATA."""
    metrics.require()
    classifier = Classifier.load(model)
    info = classifier.info
    rows = tables.read_labelled(data, text_columns or info.text_columns, label_column or info.label_column)
    probabilities = np.array([answer.probabilities for answer in classifier.predict(rows.texts)])
    unknown = sorted(set(rows.labels) - set(info.labels))
    number = {name: i for i, name in enumerate([*info.labels, *unknown])}
    labels = np.array([number[label] for label in rows.labels], np.int64)
    report = metrics.report(probabilities, labels, info.labels, unknown)
    if as_json:
        click.echo(json.dumps(report.to_json(), ensure_ascii=False))
        return
    console = render.console()
    console.print(render.score_line(report))
    console.print(render.label_table(report))
    confusions = render.confusion_table(report, console.width)
    if confusions is not None:
        console.print(confusions)
    if unknown:
        console.print(f"The model does not know {', '.join(map(repr, unknown))}: those rows count as errors.")
