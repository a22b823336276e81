"""`textcls curve`: the likely benefit of more rows."""

from pathlib import Path

import click

from textcls._util import optional_dependencies
from textcls._util.atomic_write import write_computed
from textcls.cli.options import (
    data_argument,
    engine_options,
    new_label_column_option,
    new_text_column_option,
    once,
    reading_options,
    target_options,
)
from textcls.cli.outputs import OUTPUT
from textcls.cli.reading import Reading
from textcls.data import TargetOptions, read_labelled
from textcls.display.plain_data import json_line
from textcls.display.plots import figures
from textcls.display.terminal.console import show, stderr_console, stdout_console
from textcls.display.terminal.progress import progress_on
from textcls.jobs import Engine
from textcls.jobs.engines import EngineName
from textcls_training.config.settings import TrainConfig
from textcls_training.data.labelled_texts import labelled_texts_of

optional_dependencies.look_for("onnx", "numba", "scipy", "sklearn")


@click.command(epilog="Example: textcls curve tickets.csv --plot curve.svg")
@data_argument
@click.option("--plot", "plot_path", type=OUTPUT, help="Draw the curve into a file: .svg, .png or .pdf.")
@engine_options()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@new_text_column_option
@new_label_column_option
@target_options
@reading_options
def curve(
    data: tuple[Path, ...],
    plot_path: Path | None,
    workers: int | None,
    engine_name: EngineName,
    as_json: bool,
    text_columns: tuple[str, ...],
    label_column: str | None,
    targets: TargetOptions,
    reading: Reading,
) -> None:
    """Say what more rows would bring: train on an eighth, a quarter, a half and all of the rows of DATA.

    Some rows are held out from all of these models to judge them; with fewer than 10,000 rows, each third in turn.
    """
    from textcls_training.learning_curve import showing
    from textcls_training.learning_curve.run import learning_curve

    once(data)
    if plot_path is not None:
        figures.format_of(plot_path)
        figures.require("--plot")
    rows = read_labelled(data, text_columns, label_column, options=reading.options, bad=reading.bad, targets=targets)
    reading.say(rows.notes)
    reading.say_skipped()
    who = Engine(engine_name, workers, lambda note: reading.say([note]))
    with progress_on(stderr_console(quiet=reading.quiet), "trainings", transient=True) as progress:
        found = learning_curve(labelled_texts_of(rows, targets), TrainConfig(), progress, who)
    if plot_path is not None:
        write_computed(plot_path, figures.content(showing.plot(found), figures.format_of(plot_path)))
    if as_json:
        click.echo(json_line(found.as_json()))
    else:
        show(showing.report(found), stdout_console())
        if plot_path is not None:
            click.echo(f"Plot -> {plot_path}")
