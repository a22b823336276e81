"""`textcls evaluate`: how good a model is on labelled rows."""

import json
from pathlib import Path

import click
import numpy as np
from numpy.typing import NDArray

from textcls import bulk, metrics
from textcls.classifier import Classifier
from textcls.cli import render
from textcls.cli.options import (
    Reading,
    data_argument,
    label_column_option,
    model_argument,
    once,
    reading_options,
    text_column_option,
)
from textcls.data import open_labelled
from textcls.errors import InputError


@click.command(epilog="Example: textcls evaluate tickets.onnx heldout.csv")
@model_argument
@data_argument
@text_column_option
@label_column_option
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of tables.")
@reading_options
def evaluate(
    model: Path,
    data: tuple[Path, ...],
    text_columns: tuple[str, ...],
    label_column: str | None,
    as_json: bool,
    reading: Reading,
) -> None:
    """Score MODEL on the labelled files DATA; - reads standard input."""
    metrics.require()
    classifier = Classifier.load(model)
    info = classifier.info
    once(data)
    probabilities: list[NDArray[np.float32]] = []
    right: list[str] = []
    with open_labelled(
        data,
        text_columns,
        label_column,
        usual=(info.text_columns, info.label_column),
        options=reading.options,
        bad=reading.bad,
    ) as table:
        reading.say(table.notes)
        for chunk in bulk.chunked(table.rows):
            probabilities += (answer.probabilities for answer in classifier.predict([row.text for row in chunk]))
            right += (row.label for row in chunk)
    if not right:
        raise InputError(f"{' and '.join(map(str, data))} has no rows{' that can be used' * bool(reading.bad.count)}.")
    unknown = sorted(set(right) - set(info.labels))
    number = {name: i for i, name in enumerate([*info.labels, *unknown])}
    labels = np.array([number[label] for label in right], np.int64)
    report = metrics.report(np.array(probabilities), labels, info.labels, unknown)
    reading.say_skipped()
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
