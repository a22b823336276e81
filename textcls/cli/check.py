"""`textcls check`: what labelled rows are like, and what may be wrong with them, before they are trained on."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import click
from rich.table import Table
from rich.text import Text

from textcls.check import Report, Survey, report
from textcls.cli import render
from textcls.cli.options import (
    Reading,
    data_argument,
    new_label_column_option,
    new_text_column_option,
    once,
    reading_options,
)
from textcls.data import no_rows, open_labelled

# Scripts with less of the letters than this are left to --json.
LEAST_SHARE: Final = 0.001


@click.command(epilog="Example: textcls check tickets.csv --valid heldout.csv")
@data_argument
@click.option("--valid", type=click.Path(path_type=Path), help="Also look for rows that DATA shares with this file.")
@new_text_column_option
@new_label_column_option
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@reading_options
def check(
    data: tuple[Path, ...],
    valid: Path | None,
    text_columns: tuple[str, ...],
    label_column: str | None,
    as_json: bool,
    reading: Reading,
) -> None:
    """Look at the labelled files DATA: labels, lengths, scripts, copies, contradictions; - reads standard input.

    Nothing is changed, and findings are no errors: the exit code is 0. Near copies are equal but for case, spaces and
    punctuation. Scripts are told by the names of the letters; languages are not told apart.
    """
    once([*data, *([valid] if valid else [])])
    survey = _survey(data, text_columns, label_column, reading)
    judges = _survey([valid], text_columns, label_column, reading) if valid else None
    found = report(survey, judges)
    reading.say_skipped()
    if as_json:
        click.echo(json.dumps(found.to_json(), ensure_ascii=False))
    else:
        _show(found)


def _survey(paths: Sequence[Path], text_columns: tuple[str, ...], label_column: str | None, reading: Reading) -> Survey:
    with open_labelled(paths, text_columns, label_column, options=reading.options, bad=reading.bad) as table:
        reading.say(table.notes)
        survey = Survey().extend(table.rows)
    if not survey.rows:
        raise no_rows(paths, reading.bad)
    return survey


def _show(found: Report) -> None:
    console = render.console()
    console.print(f"{render.plural(found.rows, 'row')}, {render.plural(len(found.labels), 'label')}")
    lengths = ", ".join(f"{_quantile(share)} {number:,}" for share, number in found.tokens.items())
    console.print(f"tokens of a text: {lengths}")
    shown = ", ".join(f"{name} {share:.1%}" for name, share in found.scripts.items() if share >= LEAST_SHARE)
    console.print(f"scripts: {shown or 'no letters'}")
    console.print()
    table = Table("label", box=None, pad_edge=False)
    for name in ("rows", "share"):
        table.add_column(name, justify="right")
    for label, rows in found.labels.items():
        table.add_row(Text(label), f"{rows:,}", f"{rows / found.rows:.1%}")
    console.print(table)
    console.print()
    if not found.findings:
        console.print("Nothing to complain about.")
    for finding in found.findings:
        console.print(Text.assemble(("! ", "yellow"), str(finding)))


def _quantile(share: float) -> str:
    return {0.0: "shortest", 0.5: "median", 1.0: "longest"}.get(share, f"{share:.0%}")
