"""`textcls train-many`: a model for each group of rows, or for each file."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import click
from rich.table import Table

from textcls._util import optional_dependencies
from textcls._util.atomic_write import make_folder
from textcls.cli.options import (
    PATH,
    data_argument,
    engine_options,
    new_label_column_option,
    new_text_column_option,
    once,
    reading_options,
    target_options,
)
from textcls.cli.reading import Reading
from textcls.data import TargetOptions, folders, patterns, read_labelled
from textcls.data.memory import Readable
from textcls.data.source import STANDARD
from textcls.display.terminal.console import stderr_console, stdout_console
from textcls.display.terminal.progress import progress_on
from textcls.display.text import listed, named, percent, plural
from textcls.errors import ConfigError, InputError, SurroundingsError
from textcls.jobs import Done, Engine, Failed
from textcls.jobs.engines import EngineName
from textcls_training.config.settings import from_options
from textcls_training.config.shared_options import train_options
from textcls_training.pipeline.many import ModelJob, ModelTrained, Training, jobs_of_files, jobs_of_groups

# The most names that are listed of models left from before.
_NAMED: Final = 3
Outcomes = Sequence[Done[ModelJob, ModelTrained] | Failed[ModelJob]]

optional_dependencies.look_for("onnx", "numba", "scipy", "sklearn")


@click.command(epilog="Example: textcls train-many tickets.csv --by customer --output models")
@data_argument
@click.option("--by", metavar="NAME", help="Column whose values are the groups.  [default: a model per file]")
@click.option("--output", "-o", type=PATH, required=True, help="The folder for the models; created if necessary.")
@engine_options()
@new_text_column_option
@new_label_column_option
@train_options("teacher", "tune_teacher", "unlabelled_weight", "unlabelled_rows", "rationale_weight", "rehearsal_rows")
@target_options
@reading_options
def train_many(
    data: tuple[Readable, ...],
    by: str | None,
    output: Path,
    workers: int | None,
    engine_name: EngineName,
    text_columns: tuple[str, ...],
    label_column: str | None,
    targets: TargetOptions,
    reading: Reading,
    **settings: Any,
) -> None:
    """Train a model for each group of the rows of DATA, or for each file.

    Each has the bytes that `textcls train` gives of its rows alone. A group that cannot be learned is told, and stops
    no other; models that are there are replaced.
    """
    once(data)
    from_options(dict(settings))
    if by is None:
        jobs = jobs_of_files(_files(data), output)
    else:
        rows = read_labelled(
            data, text_columns, label_column, more=[by], options=reading.options, bad=reading.bad, targets=targets
        )
        reading.say(rows.notes)
        jobs = jobs_of_groups(rows, by, output, reading.bad)
        reading.say_skipped()
    make_folder(output, "the models")
    work = Training(
        settings=settings,
        text_columns=text_columns,
        label_column=label_column,
        targets=targets,
        options=reading.options,
        skip=reading.bad.skip,
    )
    found = _run(work, jobs, engine_name, workers, reading)
    stdout_console().print(table(found))
    if left := _left_from_before(output, found):
        names = left if len(left) <= _NAMED else [*left[:_NAMED], f"{len(left) - _NAMED:,} more"]
        reading.say([f"{output} also holds {plural(len(left), 'model')} that this run has not made: {listed(names)}."])
    failed = sum(isinstance(one, Failed) for one in found)
    if failed:
        others = f"; the others are in {output}" if failed < len(found) else ""
        raise InputError(f"{failed:,} of {plural(len(found), 'model')} could not be trained{others}.")
    click.echo(f"{plural(len(found), 'model')} -> {output}")


def _run(
    work: Training, jobs: Sequence[ModelJob], engine_name: EngineName, workers: int | None, reading: Reading
) -> Outcomes:
    """Train all, and return each result, in the order of `jobs`."""
    places = {job.output: i for i, job in enumerate(jobs)}
    found: list[Done[ModelJob, ModelTrained] | Failed[ModelJob]] = []
    run = Engine(engine_name, workers, lambda note: reading.say([note]))
    with progress_on(stderr_console(quiet=reading.quiet), "models", transient=True) as progress:
        progress.phase("Training", len(jobs))
        for outcome in run(work, jobs):
            # A full disk would make all that follow fail.
            if isinstance(outcome, Failed) and isinstance(outcome.error, SurroundingsError):
                raise outcome.error
            found.append(outcome)
            progress.step()
            progress.note(f"{len(found):,} of {len(jobs):,}, last {named(outcome.job.name)}")
    return sorted(found, key=lambda one: places[one.job.output])


def _left_from_before(output: Path, found: Outcomes) -> list[str]:
    """Return the model files that were in the folder before: of groups that failed now, or no longer exist."""
    written = {one.job.output.name for one in found if isinstance(one, Done)}
    return sorted(file.name for file in output.glob("*.onnx") if file.name not in written)


def _files(data: Sequence[Readable]) -> list[Path]:
    """Return the files meant by `data`: themselves, those matching a pattern, or those in a folder.

    Raises:
        ConfigError: standard input or a URL is among them.
    """
    paths = [path for path in data if isinstance(path, Path)]
    if len(paths) < len(data):
        raise ConfigError("Files behind a URL are not trained one by one; add --by, or copy them to this machine.")
    if STANDARD in data:
        raise ConfigError("Standard input is not a file that a model could be called after; add --by, or name files.")
    found = [one for path in paths for one in patterns.matching(path)]
    return [file for path in found for file in (folders.files_of(path) if path.is_dir() else [path])]


def table(found: Outcomes) -> Table:
    """Return the result of each model, one row per model."""
    shown = Table("group", "rows", "labels", "held out", "MB", "seconds", "", box=None, pad_edge=False)
    for column in shown.columns[1:6]:
        column.justify = "right"
    for one in found:
        if isinstance(one, Failed):
            shown.add_row(named(one.job.name), *[""] * 5, str(one.error), style="yellow")
            continue
        of = one.result
        accuracy = "" if of.accuracy is None else percent(of.accuracy, 1)
        size = f"{of.file_bytes / 1e6:.2f}"
        shown.add_row(
            named(one.job.name), f"{of.rows:,}", str(of.labels), accuracy, size, f"{of.seconds:.1f}", of.skipped or ""
        )
    return shown
