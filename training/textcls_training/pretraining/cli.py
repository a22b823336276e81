"""`textcls pretrain`: files of texts without labels in, one file of what was learned from them out."""

from pathlib import Path
from typing import Any

import click

from textcls._util import optional_dependencies
from textcls.cli import INTERRUPTED
from textcls.cli.checked_options import config_options
from textcls.cli.options import data_argument, new_text_column_option, once, reading_options
from textcls.cli.outputs import OUTPUT
from textcls.cli.reading import Reading
from textcls.data.memory import Readable
from textcls.display.plain_data import json_line
from textcls.display.terminal.console import stderr_console, stdout_console
from textcls_training.config.pretraining import PRETRAIN_OPTIONS, PretrainConfig
from textcls_training.pretraining.label_names.descriptions import read_descriptions
from textcls_training.pretraining.texts import read_texts

optional_dependencies.look_for("onnx", "numba", "scipy", "sklearn")


@click.command(epilog="Example: textcls pretrain tickets.csv --output domain.vectors")
@data_argument
@click.option("--output", "-o", type=OUTPUT, required=True, help="File to write.")
@new_text_column_option
@config_options(PRETRAIN_OPTIONS)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of tables.")
@reading_options
def pretrain(
    data: tuple[Readable, ...],
    output: Path,
    text_columns: tuple[str, ...],
    as_json: bool,
    reading: Reading,
    **settings: Any,
) -> None:
    """Learn from the unlabelled texts in the files DATA; - reads standard input.

    Writes what was learned to --output: word vectors, for textcls train --vectors; or a model whose labels are
    clusters, for textcls clusters, or the names in --names. Except for co-occurrence, a twentieth of the texts is
    held out to measure how much was learned.
    """
    once(data)
    config = PretrainConfig(**settings)
    if config.names is not None:
        # A wrong file is reported before the texts are read, which may take minutes.
        read_descriptions(config.names)
    texts, notes = read_texts(data, text_columns, limit=config.most_texts, options=reading.options, bad=reading.bad)
    reading.say(notes)
    reading.say_skipped()

    from textcls_training.fit.interrupt import stopped_by_ctrl_c
    from textcls_training.fit.progress import progress_on
    from textcls_training.pretraining import run

    # Progress goes to standard error, so that `| head` or a closed pipe never ends a training.
    console = stderr_console(quiet=reading.quiet)
    with stopped_by_ctrl_c(quiet=console.quiet) as stop, progress_on(console, run.UNITS[config.objective]) as callback:
        report = run.pretrain(texts, output, config, callback=callback, stop=stop)
    if as_json:
        click.echo(json_line({"output": str(output), **report.to_json()}))
    else:
        report.show(stdout_console(), output)
    if report.interrupted:
        click.echo(f"Interrupted: {output} holds what was learned so far.", err=True)
        raise click.exceptions.Exit(INTERRUPTED)
