"""`textcls predict`: tables in, the same rows with answers out."""

import os
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import click

from textcls._util.atomic_write import check_not_an_input
from textcls.cli import option_files
from textcls.cli.grouped_help import READING, Group, GroupedCommand
from textcls.cli.options import (
    delimiter,
    engine_options,
    escape_formulas_option,
    label_path_option,
    model_argument,
    once,
    readable,
    reading_options,
    separator,
    text_column_option,
    threshold_option,
)
from textcls.cli.outputs import NamedPath
from textcls.cli.reading import Reading
from textcls.data import formats, storage, writing
from textcls.data.rows import Format
from textcls.data.source import STANDARD
from textcls.data.writing import WriteOptions
from textcls.display.terminal.answering import standing_on
from textcls.display.text import plural
from textcls.errors import ConfigError
from textcls.jobs import Engine
from textcls.jobs.batch.answer_columns import AnswerColumns
from textcls.jobs.batch.files import predict_files
from textcls.jobs.batch.folder import Answering, answer_folder
from textcls.jobs.engines import EngineName
from textcls.model import artifact
from textcls.model.classifier import Classifier

_GROUPS: Final = (
    Group("Data", ("text-column", "on-error"), READING),
    Group(
        "Output",
        ("output", "escape-formulas", "stream"),
        ("prefix", "output-format", "output-delimiter", "output-encoding", "quiet"),
    ),
    Group("Answers", ("top-k", "explain", "threshold", "label-path", "label-separator")),
    Group("Many rows", ("workers", "engine")),
)


@click.command(
    cls=GroupedCommand, groups=_GROUPS, epilog="Example: textcls predict tickets.onnx new.csv --output answers.csv"
)
@model_argument
@click.argument("data", type=NamedPath(allow_dash=True), nargs=-1, required=True)
@click.option(
    "--output",
    "-o",
    type=NamedPath(allow_dash=True),
    required=True,
    help="File to write: .csv, .tsv, .jsonl, .parquet or .xlsx, optionally followed by .gz, .bz2, .xz or .zst; - "
    "writes to standard output. Or a folder, which ends in /: each file of DATA is answered into its own there, and "
    "only those that are missing.",
)
@click.option(
    "--output-format",
    type=click.Choice(writing.WRITTEN),
    help="Format of the output.  [default: from its name; on standard output, that of DATA]",
)
@click.option("--prefix", default="", metavar="TEXT", help="Begin the names of all columns that are added with TEXT.")
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
@label_path_option
@click.option("--top-k", type=click.IntRange(1), help="Add a column with the best labels and their scores.")
@click.option("--explain", is_flag=True, help="Add a column with what each token added to the winning label.")
@click.option(
    "--label-separator",
    metavar="SIGN",
    callback=separator,
    help="Separates several labels in CSV, TSV and Excel; json writes JSON lists.  [default: ;]",
)
@click.option(
    "--stream/--no-stream",
    default=None,
    help="Answer each row as soon as it is read.  [default: on when reading and writing standard streams]",
)
@escape_formulas_option
@engine_options(also=", and wants a folder as output")
@reading_options
def predict(
    model: Path,
    data: tuple[str, ...],
    output: str,
    output_format: Format | None,
    prefix: str,
    output_delimiter: str | None,
    output_encoding: str | None,
    text_columns: tuple[str, ...],
    threshold: float | None,
    label_path: str | None,
    top_k: int | None,
    explain: bool,
    label_separator: str | None,
    stream: bool | None,
    escape_formulas: bool,
    workers: int | None,
    engine_name: EngineName,
    reading: Reading,
) -> None:
    """Classify each row of the files DATA with MODEL; - reads standard input.

    Reads tables in all common formats. All columns and the order of the rows are kept; predicted_label, score and
    decision are added, or predicted_labels and scores where a text may have several labels. With --label-path, the
    deepest node of the tree whose labels together reach the threshold, or one half, and its score are added, too.
    """
    answer = AnswerColumns(
        explain=explain,
        top_k=top_k,
        threshold=threshold,
        separator=label_separator,
        label_path=label_path,
        prefix=prefix,
    )
    write = WriteOptions(
        format=output_format,
        delimiter=output_delimiter,
        encoding=output_encoding,
        escape_formulas=escape_formulas,
    )
    check_not_an_input(Path(output), option_files.of(click.get_current_context()))
    if _is_folder(output, engine_name):
        if stream:
            raise ConfigError("With --stream the answers go to one file or to standard output, not into a folder.")
        how = {"answer": answer, "text_columns": text_columns, "write": write}
        _into_folder(model, data, output, reading, engine_name, workers, how)
        return
    paths, workers = [readable(name) for name in data], workers or 1
    classifier = Classifier.load(model)
    once(paths)
    if stream is None:
        stream = workers == 1 and output == str(STANDARD) and STANDARD in paths
    if stream and workers > 1:
        raise ConfigError("--stream answers with one process; use either --stream or --workers.")
    if stream:
        reading.say_each_skipped()
    with storage.delivered(output) if storage.is_url(output) else nullcontext(Path(output)) as target:
        written = predict_files(
            classifier,
            paths,
            target,
            answer,
            text_columns=text_columns,
            write=write,
            stream=stream,
            workers=workers,
            options=replace(reading.options, stream=stream),
            bad=reading.bad,
            say=reading.say,
        )
    reading.say_skipped()
    if target != STANDARD:
        click.echo(f"{plural(written, 'row')} -> {storage.without_secrets(output)}")


def _into_folder(
    model: Path,
    data: Sequence[str],
    output: str,
    reading: Reading,
    engine_name: EngineName,
    workers: int | None,
    how: dict[str, Any],
) -> None:
    """Answer each file into one of its own, and report how many there were."""
    content = artifact.read_file(model)
    # Errors that can be known before any worker starts are reported by this process.
    Classifier.from_bytes(content, model)
    work = Answering(model=content, path=model, options=reading.options, skip=reading.bad.skip, **how)
    run = Engine(engine_name, workers, lambda note: reading.say([note]))
    with standing_on(quiet=reading.quiet) as tell:
        standing = answer_folder(work, data, output, run, reading.say, tell)
    kept = f"; {plural(standing.kept, 'file')} had answers before" if standing.kept else ""
    click.echo(
        f"{plural(standing.rows, 'row')} in {plural(standing.done, 'file')} -> {storage.without_secrets(output)}{kept}"
    )


def _is_folder(output: str, engine_name: EngineName) -> bool:
    """Return whether each file is answered into one of its own.

    Raises:
        ConfigError: a cluster would have to write a single file.
    """
    if output.endswith(("/", os.sep)) or (not storage.is_url(output) and Path(output).is_dir()):
        return True
    if storage.is_url(output) and formats.by_name(Path(output)) is None:
        return True
    if engine_name == "ray" and (output == str(STANDARD) or formats.by_name(Path(output)) is not None):
        raise ConfigError(f"With --engine ray the answers go into a folder, and {output} is none; end it in /.")
    return engine_name == "ray"
