"""`textcls drift`: what has changed since the training, and the accuracy to expect without labels."""

import math
from contextlib import nullcontext
from itertools import chain
from pathlib import Path

import click

from textcls.cli.options import PATH, model_argument, once, reading_options, text_column_option
from textcls.cli.reading import Reading
from textcls.data import no_rows
from textcls.display.plain_data import json_line
from textcls.display.terminal.console import show
from textcls.display.terminal.drift import drift_report
from textcls.errors import ConfigError
from textcls.evaluation.drift.drift import measure_drift
from textcls.evaluation.drift.summary import HeldOutSummary
from textcls.model.classifier import Classifier

# The exit code of --fail-above: neither success nor one of the errors.
CHANGED = 1


@click.command(
    epilog="""Example: textcls drift tickets.onnx thisweek.csv --before tickets.csv

    Example: textcls drift tickets.onnx thisweek.csv --fail-above 0.25"""
)
@model_argument
@click.argument("data", type=PATH)
@click.option(
    "--before",
    type=PATH,
    metavar="FILE",
    help="Rows of the training: also say which words are more frequent than in these.",
)
@text_column_option
@click.option("--label-column", metavar="NAME", help="Column of the label.  [default: as in training, if present]")
@click.option(
    "--fail-above",
    type=click.FloatRange(0),
    metavar="PSI",
    help=(
        "Exit with 1 if labels, scores or lengths are further from the training than this and than chance, "
        "for example 0.25; or if a column beside the text is lost in such a share of the rows."
    ),
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@reading_options
def drift(
    model: Path,
    data: Path,
    before: Path | None,
    text_columns: tuple[str, ...],
    label_column: str | None,
    fail_above: float | None,
    as_json: bool,
    reading: Reading,
) -> None:
    """Say what has changed since MODEL was trained, by the new texts DATA, which need no labels.

    Answers are held against those to the held-out rows of the training, which the model file counts: labels, scores,
    lengths, unknown words. The scores also tell the accuracy to expect, but not where a text may have several labels.
    Rows with a label give the real accuracy beside it.
    """
    if fail_above is not None and math.isnan(fail_above):
        raise ConfigError("--fail-above is a number, such as 0.25, and nan is above none.")
    once([data, *([] if before is None else [before])])
    classifier = Classifier.load(model)
    HeldOutSummary.of_model(classifier.info)  # Refused before anything is read.
    earlier = nullcontext() if before is None else reading.texts(before, text_columns, classifier.info.of_texts_alone)
    with reading.texts_and_labels(data, text_columns, label_column, classifier.info) as rows, earlier as trained_on:
        first = next(rows, None)
        if first is None:
            raise no_rows([data], reading.bad)
        found = measure_drift(
            classifier, chain([first], rows), None if trained_on is None else (text for text, _ in trained_on)
        )
    reading.say_skipped()
    if as_json:
        click.echo(json_line(found.as_json()))
    else:
        show(drift_report(found))
    above = [] if fail_above is None else found.above(fail_above)
    if above:
        click.echo(f"More than {fail_above:g} from the training: {', '.join(above)}.", err=True)
        click.get_current_context().exit(CHANGED)
