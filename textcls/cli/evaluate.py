"""`textcls evaluate`: how good a model is on labelled rows."""

from pathlib import Path

import click

from textcls._util.atomic_write import check_output_path
from textcls.classifier import Classifier
from textcls.cli.options import (
    Reading,
    data_argument,
    label_column_option,
    label_options,
    model_argument,
    once,
    reading_options,
    text_column_option,
)
from textcls.data import TargetOptions
from textcls.display.plain_data import json_line
from textcls.display.terminal.console import show, stdout_console
from textcls.display.terminal.evaluation import evaluation_report
from textcls.display.terminal.label_set_evaluation import label_set_evaluation_report
from textcls.display.text import percent
from textcls.errors import ConfigError, InputError
from textcls.evaluation import label_set_evaluation, metrics
from textcls.evaluation.evaluation import Evaluation
from textcls.evaluation.evaluation import evaluate as evaluate_rows
from textcls.evaluation.label_thresholds import Goal
from textcls.model_file.thresholds import store_threshold, store_thresholds


@click.command(epilog="Example: textcls evaluate tickets.onnx heldout.csv")
@model_argument
@data_argument
@text_column_option
@label_column_option
@click.option(
    "--target-precision",
    type=click.FloatRange(0, 1),
    metavar="SHARE",
    help="Find the lowest threshold at which the answers to these rows are right in such a share, as 0.95; of several "
    "labels that of each.",
)
@click.option(
    "--target-recall",
    type=click.FloatRange(0, 1),
    metavar="SHARE",
    help="Of several labels: find the highest threshold of each at which such a share of its rows is found.",
)
@click.option(
    "--threshold",
    type=click.FloatRange(0, 1),
    help="Say how the answers are that are not below it, in place of the model's; of several labels one for all.",
)
@click.option(
    "--store",
    is_flag=True,
    help="Write the threshold into MODEL, which then abstains below it, or assigns labels from theirs on.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of tables.")
@label_options
@reading_options
def evaluate(
    model: Path,
    data: tuple[Path, ...],
    text_columns: tuple[str, ...],
    label_column: str | None,
    target_precision: float | None,
    target_recall: float | None,
    threshold: float | None,
    store: bool,
    as_json: bool,
    targets: TargetOptions,
    reading: Reading,
) -> None:
    """Score MODEL on the labelled files DATA; - reads standard input.

    If the model abstains below a threshold, or is to, also say how many rows it answers and how many of these right. If
    it may give several labels, say how each fares at its threshold, and which labels are mixed up.
    """
    _check(model, target_precision, target_recall, threshold, store)
    once(data)
    classifier = Classifier.load(model)
    columns = (text_columns, label_column)
    if classifier.info.several:
        goal = Goal.of(target_precision, target_recall)
        _label_sets(model, classifier, data, columns, targets, goal, threshold, store, as_json, reading)
        return
    if target_recall is not None:
        raise ConfigError("--target-recall is for models that may give several labels a text, and MODEL gives one.")
    if targets.label_sets:
        raise ConfigError(f"{model} gives one label a text; evaluate it on rows with one label each.")
    with reading.labelled_rows(data, *columns, classifier.info) as rows:
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


def _label_sets(
    model: Path,
    classifier: Classifier,
    data: tuple[Path, ...],
    columns: tuple[tuple[str, ...], str | None],
    targets: TargetOptions,
    goal: Goal | None,
    threshold: float | None,
    store: bool,
    as_json: bool,
    reading: Reading,
) -> None:
    """Score a model that may give several labels a text."""
    with reading.label_sets(data, *columns, targets, classifier.info) as rows:
        found = label_set_evaluation.evaluate(
            classifier, ((row.text, row.label) for row in rows), goal=goal, threshold=threshold
        )
    if store:
        store_thresholds(model, found.thresholds)
    reading.say_skipped()
    if as_json:
        click.echo(json_line(found.as_json() | ({"stored": store} if goal or threshold is not None else {})))
        return
    show(label_set_evaluation_report(found))
    if store:
        show([f"Stored in {model}, which from now on assigns each label from its threshold on."])


def _check(
    model: Path, target_precision: float | None, target_recall: float | None, threshold: float | None, store: bool
) -> None:
    """Refuse what cannot be done before the work, and not after it."""
    metrics.require()
    targets = {"--target-precision": target_precision, "--target-recall": target_recall}
    given = [name for name, target in targets.items() if target is not None]
    if given and threshold is not None:
        raise ConfigError(f"{given[0]} chooses a threshold, and --threshold names one; give one of them.")
    if len(given) == 2:
        raise ConfigError("--target-precision and --target-recall each choose the thresholds; give one of them.")
    if store and not given and threshold is None:
        raise ConfigError("--store needs --target-precision or --threshold, or of several labels --target-recall.")
    if store:
        check_output_path(model)


def _store(model: Path, found: Evaluation) -> bool:
    """Write the threshold into the model if it does what it should, and return whether it does."""
    if found.operating_point is None or not found.reached:
        return False
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
