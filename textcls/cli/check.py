"""`textcls check`: what labelled rows are like, and what may be wrong with them, before they are trained on."""

from contextlib import nullcontext
from pathlib import Path

import click

from textcls.cli.options import (
    Reading,
    data_argument,
    new_label_column_option,
    new_text_column_option,
    once,
    reading_options,
    target_options,
)
from textcls.data import TargetOptions
from textcls.data_quality.report import check as check_rows
from textcls.display.plain_data import json_line
from textcls.display.terminal.console import show
from textcls.display.terminal.data_quality import data_quality_report


@click.command(epilog="Example: textcls check tickets.csv --valid heldout.csv")
@data_argument
@click.option("--valid", type=click.Path(path_type=Path), help="Also report rows that DATA shares with this file.")
@new_text_column_option
@new_label_column_option
@target_options
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@reading_options
def check(
    data: tuple[Path, ...],
    valid: Path | None,
    text_columns: tuple[str, ...],
    label_column: str | None,
    targets: TargetOptions,
    as_json: bool,
    reading: Reading,
) -> None:
    """Check the labelled files DATA: labels, lengths, scripts, duplicates, contradictions; - reads standard input.

    Nothing is changed, and findings are not errors: the exit code is 0. Near-duplicates differ only in case, spaces and
    punctuation. Scripts are recognised by their letters; languages are not. Lists of labels are detected; cells that
    look like several labels are reported, with the option that reads them that way.
    """
    once([*data, *([valid] if valid else [])])
    validation = reading.table_of_targets([valid], text_columns, label_column, targets) if valid else nullcontext()
    with reading.table_of_targets(data, text_columns, label_column, targets) as table, validation as valid_table:
        valid_rows = None if valid_table is None else valid_table.rows
        report = check_rows(table.rows, valid_rows, expected=table.label_columns)
    reading.say_skipped()
    if as_json:
        click.echo(json_line(report.as_json()))
    else:
        show(data_quality_report(report))
