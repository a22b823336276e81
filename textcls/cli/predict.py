"""`textcls predict`: tables in, the same rows with answers out."""

from pathlib import Path

import click

from textcls.batch.answer_columns import AnswerColumns
from textcls.batch.files import predict_files
from textcls.classifier import Classifier
from textcls.cli.options import (
    Reading,
    data_argument,
    delimiter,
    model_argument,
    once,
    reading_options,
    separator,
    text_column_option,
    threshold_option,
)
from textcls.data import writing
from textcls.data.rows import Format
from textcls.data.source import STANDARD
from textcls.data.writing import WriteOptions
from textcls.errors import ConfigError


@click.command(epilog="Example: textcls predict tickets.onnx new.csv --output answers.csv")
@model_argument
@data_argument
@click.option(
    "--output",
    "-o",
    type=click.Path(path_type=Path, allow_dash=True),
    required=True,
    help=(
        "File to write: .csv, .tsv, .jsonl, .parquet or .xlsx, optionally followed by .gz, .bz2, .xz or .zst; - "
        "writes to standard output."
    ),
)
@click.option(
    "--output-format",
    type=click.Choice(writing.WRITTEN),
    help="Format of the output.  [default: from its name; on standard output, that of DATA]",
)
@click.option(
    "--output-delimiter", metavar="SIGN", callback=delimiter, help="Delimiter of CSV output.  [default: comma]"
)
@click.option(
    "--output-encoding",
    metavar="NAME",
    help="Encoding of CSV and TSV output; use utf-8-sig for Excel.  [default: UTF-8]",
)
@text_column_option
@threshold_option
@click.option("--top-k", type=click.IntRange(1), help="Add a column with the best labels and their scores.")
@click.option("--explain", is_flag=True, help="Add a column with what each token added to the winning label.")
@click.option(
    "--label-separator",
    metavar="SIGN",
    callback=separator,
    help="Separates several labels in CSV and TSV; json writes JSON lists.  [default: ;]",
)
@click.option(
    "--stream/--no-stream",
    default=None,
    help="Answer each row as soon as it is read.  [default: on when reading and writing standard streams]",
)
@click.option(
    "--escape-formulas",
    is_flag=True,
    help="Put an apostrophe before CSV and TSV fields that a spreadsheet would run as formulas.",
)
@click.option("--workers", type=click.IntRange(1), default=1, show_default=True, help="Processes that answer.")
@reading_options
def predict(
    model: Path,
    data: tuple[Path, ...],
    output: Path,
    output_format: Format | None,
    output_delimiter: str | None,
    output_encoding: str | None,
    text_columns: tuple[str, ...],
    threshold: float | None,
    top_k: int | None,
    explain: bool,
    label_separator: str | None,
    stream: bool | None,
    escape_formulas: bool,
    workers: int,
    reading: Reading,
) -> None:
    """Classify each row of the files DATA with MODEL; - reads standard input.

    Reads tables in all common formats. All columns and the order of the rows are kept; predicted_label, score and
    decision are added, or predicted_labels and scores where a text may have several labels.
    """
    classifier = Classifier.load(model)
    once(data)
    if stream is None:
        stream = workers == 1 and output == STANDARD and STANDARD in data
    if stream and workers > 1:
        raise ConfigError("--stream answers with one process; use either --stream or --workers.")
    if stream:
        reading.say_each_skipped()
    write = WriteOptions(
        format=output_format,
        delimiter=output_delimiter,
        encoding=output_encoding,
        escape_formulas=escape_formulas,
    )
    written = predict_files(
        classifier,
        data,
        output,
        AnswerColumns(explain=explain, top_k=top_k, threshold=threshold, separator=label_separator),
        text_columns=text_columns,
        write=write,
        stream=stream,
        workers=workers,
        options=reading.options,
        bad=reading.bad,
        say=reading.say,
    )
    reading.say_skipped()
    if output != STANDARD:
        click.echo(f"{written} rows -> {output}")
