"""`textcls evaluate`: how good a model is on labelled rows."""

import json
from collections.abc import Sequence
from pathlib import Path

import click
import numpy as np
from numpy.typing import NDArray

from textcls import abstaining, bulk, extras, metrics
from textcls.abstaining import Abstaining
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
from textcls.data import no_rows, open_labelled
from textcls.errors import ConfigError, InputError
from textcls.output import check_output_path


@click.command(epilog="Example: textcls evaluate tickets.onnx heldout.csv")
@model_argument
@data_argument
@text_column_option
@label_column_option
@click.option(
    "--target-precision",
    type=click.FloatRange(0, 1),
    metavar="SHARE",
    help="Find the lowest threshold at which the answers to these rows are right in such a share, as 0.95.",
)
@click.option(
    "--threshold",
    type=click.FloatRange(0, 1),
    help="Say how the answers are that are not below it, in place of the model's.",
)
@click.option("--store", is_flag=True, help="Write the threshold into MODEL, which then abstains below it.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of tables.")
@reading_options
def evaluate(
    model: Path,
    data: tuple[Path, ...],
    text_columns: tuple[str, ...],
    label_column: str | None,
    target_precision: float | None,
    threshold: float | None,
    store: bool,
    as_json: bool,
    reading: Reading,
) -> None:
    """Score MODEL on the labelled files DATA; - reads standard input.

    If the model abstains below a threshold, or is to, also say how many rows it answers and how many of these right.
    """
    metrics.require()
    _check(target_precision, threshold, store)
    if store:
        # Before the work, not after it.
        store_threshold = extras.load(extras.STORE_THRESHOLD, "textcls evaluate --store")
        check_output_path(model)
    classifier = Classifier.load(model)
    info = classifier.info
    once(data)
    scores, right = _answers(classifier, data, text_columns, label_column, reading)
    unknown = sorted(set(right) - set(info.labels))
    number = {name: i for i, name in enumerate([*info.labels, *unknown])}
    labels = np.array([number[label] for label in right], np.int64)
    report = metrics.report(scores, labels, info.labels, unknown)
    confidence, answered_right = scores.max(1), scores.argmax(1) == labels
    threshold = info.threshold if threshold is None else threshold
    found, reached = _abstaining(target_precision, threshold, confidence, answered_right)
    stored = False
    if store and found is not None and reached:
        store_threshold(model, found.threshold)
        stored = True
    reading.say_skipped()
    if as_json:
        more = {} if found is None else {"chosen": target_precision is not None, "reached": reached, "stored": stored}
        answer = report.to_json() | ({} if found is None else {"abstaining": found.to_json() | more})
        click.echo(json.dumps(answer, ensure_ascii=False))
    else:
        _show(report, unknown)
        if found is not None and reached:
            _show_abstaining(found, target_precision, model if stored else None)
    if found is not None and not reached:
        raise InputError(
            f"No threshold reaches a precision of {target_precision:.2%} on these rows; the best is "
            f"{found.precision or 0:.2%}, at threshold {found.threshold:g}, which answers {found.accepted:,} of "
            f"{found.rows:,} rows{'; nothing was stored' * store}."
        )


def _check(target_precision: float | None, threshold: float | None, store: bool) -> None:
    if target_precision is not None and threshold is not None:
        raise ConfigError("--target-precision chooses a threshold, and --threshold names one; give one of them.")
    if store and target_precision is None and threshold is None:
        raise ConfigError("--store needs --target-precision or --threshold.")


def _abstaining(
    target_precision: float | None, threshold: float | None, confidence: abstaining.Floats, right: abstaining.Bools
) -> tuple[Abstaining | None, bool]:
    """Return how the threshold does, if there is one, and whether it reaches what it was to reach."""
    if target_precision is not None:
        return abstaining.choose(target_precision, confidence, right)
    return None if threshold is None else abstaining.at(threshold, confidence, right), True


def _answers(
    classifier: Classifier,
    data: Sequence[Path],
    text_columns: tuple[str, ...],
    label_column: str | None,
    reading: Reading,
) -> tuple[NDArray[np.float32], list[str]]:
    """Return the probabilities [rows, labels] of all rows, and the right label of each."""
    probabilities: list[NDArray[np.float32]] = []
    right: list[str] = []
    with open_labelled(
        data,
        text_columns,
        label_column,
        usual=(classifier.info.text_columns, classifier.info.label_column),
        options=reading.options,
        bad=reading.bad,
    ) as table:
        reading.say(table.notes)
        for chunk in bulk.chunked(table.rows):
            probabilities += (answer.probabilities for answer in classifier.predict([row.text for row in chunk]))
            right += (row.label for row in chunk)
    if not right:
        raise no_rows(data, reading.bad)
    return np.array(probabilities), right


def _show(report: metrics.Report, unknown: Sequence[str]) -> None:
    console = render.console()
    console.print(render.score_line(report))
    console.print(render.label_table(report))
    confusions = render.confusion_table(report, console.width)
    if confusions is not None:
        console.print(confusions)
    if unknown:
        console.print(f"The model does not know {', '.join(map(repr, unknown))}: those rows count as errors.")


def _show_abstaining(found: Abstaining, target: float | None, stored: Path | None) -> None:
    console = render.console()
    console.print(render.abstaining_line(found))
    if target is not None:
        console.print(
            f"The threshold was chosen on these rows for a precision of {target:.2%}: check it on others before you "
            "promise anything."
        )
    if stored is not None:
        console.print(f"Stored in {stored}, which from now on abstains below it.", soft_wrap=True)
