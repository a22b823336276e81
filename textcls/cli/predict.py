"""`textcls predict`: tables in, the same rows with answers out."""

from collections.abc import Sequence
from pathlib import Path

import click

from textcls import bulk
from textcls.classifier import Classifier
from textcls.cli.options import (
    Reading,
    data_argument,
    model_argument,
    once,
    reading_options,
    text_column_option,
    threshold_option,
)
from textcls.data import Table, open_tables, texts_of, writing
from textcls.data.rows import Format
from textcls.data.source import STANDARD
from textcls.errors import ConfigError, InputError
from textcls.output import check_not_an_input


@click.command(epilog="Example: textcls predict tickets.onnx new.csv --output answers.csv")
@model_argument
@data_argument
@click.option(
    "--output",
    "-o",
    type=click.Path(path_type=Path, allow_dash=True),
    required=True,
    help="The file to write: .csv, .tsv, .jsonl or .parquet, all but the last also with .gz behind; - writes to "
    "standard output.",
)
@click.option(
    "--output-format",
    type=click.Choice(writing.WRITTEN),
    help="Format of the output.  [default: by its name; on standard output that of DATA]",
)
@text_column_option
@threshold_option
@click.option("--top-k", type=click.IntRange(1), help="Add a column with the best labels and their scores.")
@click.option("--explain", is_flag=True, help="Add a column with what each token added to the winning label.")
@click.option(
    "--stream/--no-stream",
    default=None,
    help="Answer each row as soon as it is read.  [default: from standard input to standard output]",
)
@click.option("--workers", type=click.IntRange(1), default=1, show_default=True, help="Processes that answer.")
@reading_options
def predict(
    model: Path,
    data: tuple[Path, ...],
    output: Path,
    output_format: Format | None,
    text_columns: tuple[str, ...],
    threshold: float | None,
    top_k: int | None,
    explain: bool,
    stream: bool | None,
    workers: int,
    reading: Reading,
) -> None:
    """Classify each row of the files DATA with MODEL; - reads standard input.

    CSV, TSV, JSON lines, Parquet and fastText's lines are read. All columns and the order of the rows are kept;
    predicted_label, score and decision are added.
    """
    classifier = Classifier.load(model)
    check_not_an_input(output, [*data, model])
    once(data)
    if stream is None:
        stream = workers == 1 and output == STANDARD and STANDARD in data
    if stream and workers > 1:
        raise ConfigError("With --stream one process answers; give either --stream or --workers.")
    if stream:
        reading.say_each_skipped()
    asked = bulk.Asked(explain=explain, top_k=top_k, threshold=threshold)
    written = 0
    with open_tables(data, reading.options, reading.bad) as table:
        columns = table.choose(text_columns or classifier.info.text_columns, "text", guess=not text_columns)
        reading.say(table.notes)
        kind = writing.format_of(output, output_format, table.format)
        _check_columns(table, asked.columns, free=kind == "jsonl")
        chunks = bulk.chunked(texts_of(table, columns), 1 if stream else bulk.ROWS)
        with writing.open_writer(output, kind, table.columns, asked.columns, table.schema) as writer:
            for chunk, answers in bulk.answered(classifier, chunks, asked, workers):
                writer.write([item.row for item in chunk], answers)
                written += len(answers)
    reading.say_skipped()
    if output != STANDARD:
        click.echo(f"{written} rows -> {output}")


def _check_columns(table: Table, added: Sequence[str], *, free: bool) -> None:
    for part in table.parts:
        clash = next((name for name in added if name in part.columns), None)
        if clash is not None:
            raise InputError(f"{part.file} already has a column {clash!r}; rename it, since the answers go there.")
    if not free:
        table.require_same_columns()
