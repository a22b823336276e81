"""`textcls evaluate`: how good a model is on labelled rows."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import click

from textcls._util.atomic_write import atomic_write, check_output_path, make_folder
from textcls.cli.options import (
    PATH,
    data_argument,
    label_column_option,
    label_options,
    label_path_option,
    model_argument,
    once,
    reading_options,
    text_column_option,
)
from textcls.cli.reading import Reading
from textcls.data import LabelSet, TargetOptions
from textcls.data.labelled import LabelledRow
from textcls.data.memory import Readable
from textcls.display.plain_data import json_line
from textcls.display.plots import figures
from textcls.display.plots.evaluation import plot_evaluation
from textcls.display.terminal.console import show, stdout_console
from textcls.display.terminal.evaluation import evaluation_report
from textcls.display.terminal.label_set_evaluation import label_set_evaluation_report
from textcls.display.text import percent
from textcls.errors import ConfigError, InputError, SurroundingsError
from textcls.evaluation import label_set_evaluation, metrics
from textcls.evaluation.evaluation import Evaluation, evaluate_labels
from textcls.evaluation.label_set_evaluation import LabelSetEvaluation
from textcls.evaluation.label_thresholds import Goal
from textcls.evaluation.learned_rows import unsuited_for_thresholds
from textcls.model.classifier import Classifier
from textcls.model.model_file.rewriting import check_not_published
from textcls.model.model_file.thresholds import store_threshold, store_thresholds


@click.command(epilog="Example: textcls evaluate tickets.onnx heldout.csv")
@model_argument
@data_argument
@text_column_option
@label_column_option
@click.option(
    "--target-precision",
    type=click.FloatRange(0, 1),
    metavar="SHARE",
    help=(
        "Choose the lowest threshold at which this share of the answered rows is right, for example 0.95; with "
        "several labels per text, one threshold for each label."
    ),
)
@click.option(
    "--target-recall",
    type=click.FloatRange(0, 1),
    metavar="SHARE",
    help=(
        "With several labels per text: choose for each label the highest threshold that still finds this share of "
        "its rows."
    ),
)
@click.option(
    "--threshold",
    type=click.FloatRange(0, 1),
    help=(
        "Report results at this threshold instead of the model's own; with several labels per text, the same one "
        "for every label."
    ),
)
@click.option(
    "--store",
    is_flag=True,
    help="Save the threshold in MODEL, which then abstains below it, or assigns each label from its own threshold up.",
)
@label_path_option
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of tables.")
@click.option(
    "--plots",
    "plots_folder",
    type=PATH,
    metavar="FOLDER",
    help="Also draw confusions, calibration and labels, each as .svg and .png in this folder.",
)
@label_options
@reading_options
def evaluate(
    model: Path,
    data: tuple[Readable, ...],
    text_columns: tuple[str, ...],
    label_column: str | None,
    target_precision: float | None,
    target_recall: float | None,
    threshold: float | None,
    store: bool,
    label_path: str | None,
    as_json: bool,
    plots_folder: Path | None,
    targets: TargetOptions,
    reading: Reading,
) -> None:
    """Score MODEL on the labelled files DATA; - reads standard input.

    With a threshold, also report how many rows the model answers and how many of those are right. With several labels
    per text, report each label at its threshold, and which labels are confused. With --label-path, also report each
    level of the tree, and how deep answers are sure.
    """
    _check(model, target_precision, target_recall, threshold, store)
    once(data)
    classifier = Classifier.load(model)
    several = classifier.info.several
    if several and label_path is not None:
        raise ConfigError(f"--label-path is for models of one label per text, and {model} may give several.")
    if target_recall is not None and not several:
        raise ConfigError(f"--target-recall is for models with several labels per text, and {model} gives one.")
    if targets.label_sets and not several:
        raise ConfigError(f"{model} gives each text one label; evaluate it on rows with one label each.")
    asked = _Asked(model, classifier, threshold, store, as_json, _Plots(plots_folder), reading)
    if several:
        metrics.require()
        with reading.label_sets(data, text_columns, label_column, targets, classifier.info) as sets:
            _evaluate_sets(asked, sets, Goal.of(target_precision, target_recall))
        return
    with reading.labelled_rows(data, text_columns, label_column, classifier.info) as rows:
        _evaluate_labels(asked, rows, target_precision, label_path)


class _Asked(NamedTuple):
    """What is to be evaluated, and what is done with the result."""

    model: Path
    classifier: Classifier
    threshold: float | None
    store: bool
    as_json: bool
    plots: "_Plots"
    reading: Reading


def _evaluate_sets(asked: _Asked, rows: Iterator[LabelledRow[LabelSet]], goal: Goal | None) -> None:
    """Evaluate a model that may give several labels, and print the result."""
    model, store = asked.model, asked.store
    pairs = ((row.text, row.label) for row in rows)
    found = label_set_evaluation.evaluate(asked.classifier, pairs, goal=goal, threshold=asked.threshold)
    asked.plots.draw(found)
    if store:
        _require_new_rows(found, chosen=goal is not None)
        store_thresholds(model, found.thresholds, asked.classifier.graph.sha256)
    asked.reading.say_skipped()
    if asked.as_json:
        chosen = {"stored": store} if goal or asked.threshold is not None else {}
        click.echo(json_line(found.as_json() | chosen))
    else:
        saved = [f"Saved in {model}, which now assigns each label from its threshold up."] if store else []
        show([*label_set_evaluation_report(found), *saved])
    asked.plots.write(asked.reading)


def _evaluate_labels(
    asked: _Asked, rows: Iterator[LabelledRow[str]], target_precision: float | None, label_path: str | None
) -> None:
    """Evaluate a model that gives one label, and print the result.

    Raises:
        InputError: no threshold reaches the target; the best one is printed.
    """
    pairs = ((row.text, row.label) for row in rows)
    found = evaluate_labels(asked.classifier, pairs, target_precision, asked.threshold, label_path)
    asked.plots.draw(found)
    if asked.store:
        _require_new_rows(found, chosen=bool(target_precision))  # 0 promises nothing, and takes a threshold away.
    stored = asked.store and _store(asked, found)
    asked.reading.say_skipped()
    if asked.as_json:
        click.echo(json_line(_with_stored(found, stored)))
    else:
        console = stdout_console()
        show(evaluation_report(found, console.width), console)
        if stored:
            some = found.operating_point is not None and found.operating_point.threshold > 0
            show([f"Saved in {asked.model}, which now {'abstains below it' if some else 'never abstains'}."])
    asked.plots.write(asked.reading)
    _require_reached(found, asked.store)


class _Plots:
    """The plots of an evaluation as files: drawn before the model changes, written at the very end."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._files: dict[str, bytes | None] = {}
        self._notes: list[str] = []
        if folder is not None:
            figures.require("--plots")
            make_folder(folder, "the plots")

    def draw(self, found: Evaluation | LabelSetEvaluation) -> None:
        """Draw the plots if a folder is given; a plot for which this machine lacks characters is left out."""
        if self._folder is None:
            return
        for name, figure in plot_evaluation(found).items():
            self._files[f"{name}.svg"] = figures.content(figure, "svg")
            try:
                self._files[f"{name}.png"] = figures.content(figure, "png")
            except SurroundingsError as error:
                self._files[f"{name}.png"] = None
                self._notes.append(f"{name}.png is left out. {error}")

    def write(self, reading: Reading) -> None:
        """Write what was drawn, and report where."""
        if self._folder is None:
            return
        for name, content in self._files.items():
            if content is None:
                # One from an earlier run would show another evaluation.
                (self._folder / name).unlink(missing_ok=True)
                continue
            with atomic_write(self._folder / name) as file:
                file.write(content)
        reading.say([f"Plots -> {self._folder}", *self._notes])


def _check(
    model: Path, target_precision: float | None, target_recall: float | None, threshold: float | None, store: bool
) -> None:
    """Refuse before the work, rather than after it, what cannot be done."""
    targets = {"--target-precision": target_precision, "--target-recall": target_recall}
    given = [name for name, target in targets.items() if target is not None]
    if given and threshold is not None:
        raise ConfigError(f"{given[0]} chooses a threshold and --threshold sets one; use only one of them.")
    if len(given) == 2:
        raise ConfigError("--target-precision and --target-recall both choose the thresholds; use only one of them.")
    if store and not given and threshold is None:
        raise ConfigError(
            "--store needs a threshold to save: add --target-precision, --threshold or, with several labels per "
            "text, --target-recall."
        )
    if store:
        check_output_path(model)
        check_not_published(model)


def _require_new_rows(found: Evaluation | LabelSetEvaluation, *, chosen: bool) -> None:
    """Refuse to store thresholds that were chosen on rows of the training, for which they promise too much."""
    if chosen and (why := unsuited_for_thresholds(found.learned)) is not None:
        raise ConfigError(f"{why} Nothing was saved.")


def _store(asked: _Asked, found: Evaluation) -> bool:
    """Write the threshold into the model if it reaches its target, and return whether it does."""
    if found.operating_point is None or not found.reached:
        return False
    # From 0 on everything is answered, as without a threshold.
    store_threshold(asked.model, found.operating_point.threshold or None, asked.classifier.graph.sha256)
    return True


def _with_stored(found: Evaluation, stored: bool) -> dict[str, object]:
    answer = found.as_json()
    if "abstaining" in answer:
        answer["abstaining"]["stored"] = stored
    return answer


def _require_reached(found: Evaluation, store: bool) -> None:
    """Raise InputError if no threshold reaches the target, with the best value that is reached."""
    point = found.operating_point
    if point is None or found.target_precision is None or found.reached:
        return
    raise InputError(
        f"No threshold reaches a precision of {percent(found.target_precision, 2)} on these rows; the best is "
        f"{percent(point.precision or 0, 2)}, at threshold {point.threshold:.9g}, which answers {point.accepted:,} "
        f"of {point.rows:,} rows{'; nothing was saved' * store}."
    )
