"""`textcls evaluate`: how good a model is on labelled rows."""

from pathlib import Path

import click

from textcls._util import optional_dependencies
from textcls._util.atomic_write import check_output_path
from textcls.classifier import Classifier
from textcls.cli.options import (
    Reading,
    data_argument,
    label_column_option,
    model_argument,
    once,
    reading_options,
    text_column_option,
)
from textcls.display.plain_data import json_line
from textcls.display.terminal.console import show, stdout_console
from textcls.display.terminal.evaluation import evaluation_report
from textcls.display.text import percent
from textcls.errors import ConfigError, InputError
from textcls.evaluation import metrics
from textcls.evaluation.evaluation import Evaluation
from textcls.evaluation.evaluation import evaluate as evaluate_rows


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
    _check(model, target_precision, threshold, store)
    once(data)
    classifier = Classifier.load(model)
    with reading.labelled_rows(data, text_columns, label_column, classifier.info) as rows:
        found = evaluate_rows(
            classifier, ((row.text, row.label) for row in rows), target_precision=target_precision, threshold=threshold
        )
    stored = store and _store(model, found)
    reading.say_skipped()
    if as_json:
        click.echo(json_line(_with_stored(found, stored)))
    else:
        console = stdout_console()
        show(evaluation_report(found, console.width), console)
        if stored:
            show([f"Stored in {model}, which from now on abstains below it."])
    _require_reached(found, store)


def _check(model: Path, target_precision: float | None, threshold: float | None, store: bool) -> None:
    """Refuse what cannot be done before the work, and not after it."""
    metrics.require()
    if target_precision is not None and threshold is not None:
        raise ConfigError("--target-precision chooses a threshold, and --threshold names one; give one of them.")
    if store and target_precision is None and threshold is None:
        raise ConfigError("--store needs --target-precision or --threshold.")
    if store:
        optional_dependencies.load(optional_dependencies.STORE_THRESHOLD, "textcls evaluate --store")
        check_output_path(model)


def _store(model: Path, found: Evaluation) -> bool:
    """Write the threshold into the model if it does what it should, and return whether it does."""
    if found.operating_point is None or not found.reached:
        return False
    store_threshold = optional_dependencies.load(optional_dependencies.STORE_THRESHOLD, "textcls evaluate --store")
    store_threshold(model, found.operating_point.threshold)
    return True


def _with_stored(found: Evaluation, stored: bool) -> dict[str, object]:
    answer = found.as_json()
    if "abstaining" in answer:
        answer["abstaining"]["stored"] = stored
    return answer


def _require_reached(found: Evaluation, store: bool) -> None:
    """Raise InputError if no threshold reaches the target, with the best that one does."""
    point = found.operating_point
    if point is None or found.target_precision is None or found.reached:
        return
    raise InputError(
        f"No threshold reaches a precision of {percent(found.target_precision, 2)} on these rows; the best is "
        f"{percent(point.precision or 0, 2)}, at threshold {point.threshold:g}, which answers {point.accepted:,} of "
        f"{point.rows:,} rows{'; nothing was stored' * store}."
    )
