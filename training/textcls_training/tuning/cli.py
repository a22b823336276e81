"""`textcls tune`: options that suit the given rows, and their effect on rows that the choice has not seen."""

from pathlib import Path
from typing import Any, Final

import click
from click.core import ParameterSource

from textcls._util import optional_dependencies
from textcls._util.atomic_write import check_not_an_input, check_output_path
from textcls.api.tuning import TRIALS, Measure
from textcls.cli import INTERRUPTED
from textcls.cli.options import (
    data_argument,
    engine_options,
    new_label_column_option,
    new_text_column_option,
    once,
    reading_options,
    target_options,
)
from textcls.cli.outputs import Output
from textcls.cli.reading import Reading
from textcls.data import TargetOptions, read_labelled
from textcls.display.plain_data import json_line
from textcls.display.terminal.console import show, stderr_console
from textcls.display.terminal.progress import progress_on
from textcls.display.text import in_a_shell
from textcls.errors import ConfigError
from textcls.jobs import Engine
from textcls.jobs.engines import EngineName
from textcls_training.config.settings import OPTIONS
from textcls_training.config.shared_options import train_options
from textcls_training.data.labelled_texts import labelled_texts_of
from textcls_training.tuning.limits import FOLDS, LEFT_OUT, ROUNDS

optional_dependencies.look_for("onnx", "numba", "scipy", "sklearn", "optuna")

_MEASURES: Final[dict[str, Measure]] = {"accuracy": "accuracy", "macro-f1": "macro_f1", "micro-f1": "micro_f1"}
_OUTPUT: Final = Path("textcls.toml")
# How to make `textcls train` read the same rows.
_OF_READING: Final = (
    "text_columns", "label_column", "label_separator", "label_columns", "task", "merge_rows", "weight_column",
    "format", "encoding", "delimiter", "no_quotes", "no_header", "sheet", "on_error",
)  # fmt: skip


@click.command(epilog="Example: textcls tune tickets.csv --seconds 300 && textcls train tickets.csv")
@data_argument
@click.option(
    "--output",
    "-o",
    type=Output(instead_of="config"),
    default=_OUTPUT,
    show_default=True,
    help="Settings to write, for train --config.",
)
@click.option(
    "--trials",
    type=click.IntRange(1),
    help=f"Settings to try in each search.  [default: {TRIALS}; with --seconds as many as there is time]",
)
@click.option(
    "--seconds",
    type=click.FloatRange(min=0, min_open=True),
    help="Begin no trials that would end after this time; the first four are always judged.",
)
@click.option(
    "--measure",
    type=click.Choice(list(_MEASURES)),
    help="What to improve.  [default: accuracy; micro-f1 with several labels per text]",
)
@click.option(
    "--folds",
    type=click.IntRange(FOLDS.least, FOLDS.most),
    default=3,
    show_default=True,
    help="Folds that judge a trial.",
)
@click.option(
    "--rounds",
    type=click.IntRange(ROUNDS.least, ROUNDS.most),
    help="In how many parts the rows are held out, in turn, to judge a choice made without them; 1 holds out a fifth.  "
    "[default: 3; 1 from 10,000 rows on]",
)
@click.option(
    "--storage",
    type=Output(is_table=True),
    metavar="FILE",
    help="Journal of the trials, from which the same command continues.  [default: OUTPUT with the suffix .journal]",
)
@engine_options()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@new_text_column_option
@new_label_column_option
@train_options(*LEFT_OUT)
@target_options
@reading_options
def tune(
    data: tuple[Path, ...],
    output: Path,
    trials: int | None,
    seconds: float | None,
    measure: str | None,
    folds: int,
    rounds: int | None,
    storage: Path | None,
    workers: int | None,
    engine_name: EngineName,
    as_json: bool,
    text_columns: tuple[str, ...],
    label_column: str | None,
    targets: TargetOptions,
    reading: Reading,
    **settings: Any,
) -> None:
    """Find options of textcls train that suit the rows of DATA, and write those to train with.

    Rates, epochs, sizes and features are searched; options that are given stay as they are. Each search is judged by
    rows that it has not seen, beside the defaults; unless it is better beyond chance, the defaults are what is written.
    The result is the same for any number of workers, and an interrupted search continues where it stopped.
    """
    from textcls_training.tuning import run, settings_file, showing
    from textcls_training.tuning.run import Settings

    storage = storage or output.with_suffix(".journal")
    once(data)
    if storage.resolve() == output.resolve():
        raise ConfigError("Settings and journal are files of their own: name another --output or --storage.")
    check_not_an_input(storage, data)
    check_output_path(storage)
    settings_file.check(output)
    rows = read_labelled(data, text_columns, label_column, options=reading.options, bad=reading.bad, targets=targets)
    reading.say(rows.notes)
    reading.say_skipped()
    how = Settings(
        trials=trials or (None if seconds is not None else TRIALS),
        seconds=seconds,
        folds=folds,
        rounds=rounds,
        measure=None if measure is None else _MEASURES[measure],
        fixed=_fixed(settings),
    )
    who = Engine(engine_name, workers, lambda note: reading.say([note]))
    try:
        with progress_on(stderr_console(quiet=reading.quiet), "trials", transient=True) as progress:
            found = run.tune(labelled_texts_of(rows, targets), how, storage, progress, who)
    except KeyboardInterrupt:
        click.echo(f"Interrupted; {storage} keeps what was found, and the same command continues from there.", err=True)
        raise click.exceptions.Exit(INTERRUPTED) from None
    reading_of_rows = _reading_of_these_rows()
    settings_file.write(output, found, reading_of_rows)
    if as_json:
        click.echo(json_line(found.as_json()))
    else:
        show(showing.tuning_report(found))
        then = f" Next: textcls train {' '.join(map(in_a_shell, data))} --config {in_a_shell(output)}"
        # A file without settings is of no use for training.
        click.echo(f"Settings -> {output}.{then if found.is_better or found.fixed or reading_of_rows else ''}")


def _is_given(name: str) -> bool:
    source = click.get_current_context().get_parameter_source(name)
    return source not in (None, ParameterSource.DEFAULT)


def _fixed(settings: dict[str, Any]) -> dict[str, Any]:
    """Return the training options that were given, as on a command line."""
    fixed = {
        name: value for name, value in settings.items() if name in OPTIONS and _is_given(name) and value is not None
    }
    if "ngrams" in fixed:
        fixed["ngrams"] = ",".join(map(str, fixed["ngrams"])) or "none"
    return {name: str(value) if isinstance(value, Path) else value for name, value in fixed.items()}


def _reading_of_these_rows() -> dict[str, Any]:
    """Return the given options that say how rows are read, by their names in a settings file."""
    from textcls.cli.settings import key_of

    context = click.get_current_context()
    keys = {option.name: key_of(option) for option in context.command.params}
    given = {name: context.params[name] for name in _OF_READING if name in context.params and _is_given(name)}
    return {keys[name]: list(value) if isinstance(value, tuple) else value for name, value in given.items()}
