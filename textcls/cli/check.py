"""`textcls check`: what labelled rows are like, and what may be wrong with them, before training."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any, Final

import click
from click.core import ParameterSource

from textcls._util import optional_dependencies
from textcls.cli.columns_beside import column_option, named_columns, read_columns
from textcls.cli.options import (
    DATA,
    data_argument,
    escape_formulas_option,
    new_label_column_option,
    new_text_column_option,
    once,
    reading_options,
    target_options,
)
from textcls.cli.outputs import TABLE
from textcls.cli.reading import Reading
from textcls.data import TargetOptions
from textcls.data.columns import ANSWER
from textcls.data.labelled import LabelledRow
from textcls.data.memory import Readable
from textcls.data.rows import Row
from textcls.data.source import STANDARD
from textcls.data.targets import JSON, Target
from textcls.data.writing import NewTable
from textcls.display.plain_data import json_line
from textcls.display.terminal.console import show
from textcls.display.terminal.data_quality import data_quality_report, label_audit_report
from textcls.display.text import plural
from textcls.errors import ConfigError
from textcls.evaluation.data_quality import mending
from textcls.evaluation.data_quality.label_audit import COLUMNS, LabelAudit
from textcls.evaluation.data_quality.mending import Mended
from textcls.evaluation.data_quality.report import check as check_rows
from textcls.model.label_paths import label_columns

AUDIT: Final = "textcls_training.audit.rows:audit_rows"


@click.command(epilog="Example: textcls check tickets.csv --valid heldout.csv")
@data_argument
@click.option("--valid", type=DATA, help="Also report rows that DATA shares with this file.")
@new_text_column_option
@new_label_column_option
@column_option("Reports how each is read, and which give away the label by themselves.")
@target_options
@click.option(
    "--labels",
    "audits",
    is_flag=True,
    help="Also look for rows whose label is probably wrong, by models that have not seen them; takes two trainings, "
    "or one with several labels per row.",
)
@click.option(
    "--suspects", type=TABLE, metavar="FILE", help="With --labels: write these rows, with the label that each may have."
)
@click.option(
    "--write",
    "mended_path",
    type=TABLE,
    metavar="FILE",
    help="Write the rows, fixed, to this file.",
)
@click.option(
    "--mend",
    "kinds",
    type=click.Choice(mending.KINDS),
    multiple=True,
    help="With --write: what to fix; may be repeated. labels that differ only by case and spaces are written the same "
    "way; html is removed from texts; rows with an empty text and duplicate rows are left out.  [default: all]",
)
@escape_formulas_option
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@reading_options
def check(
    data: tuple[Readable, ...],
    valid: Readable | None,
    text_columns: tuple[str, ...],
    label_column: str | None,
    columns: tuple[str, ...],
    targets: TargetOptions,
    audits: bool,
    suspects: Path | None,
    mended_path: Path | None,
    kinds: tuple[str, ...],
    escape_formulas: bool,
    as_json: bool,
    reading: Reading,
) -> None:
    """Check the labelled files DATA: labels, lengths, scripts, duplicates, contradictions; - reads standard input.

    DATA is not changed, and findings are not errors: the exit code is 0. Near-duplicates differ only in case, spaces
    and punctuation. Scripts are recognised by their letters; languages are not. Lists of labels are detected; cells
    that look like several labels are reported, with the option that reads them that way.

    With --labels, models that have not seen a row judge its label as well: rows whose label they doubt are listed with
    the label they would give, and the words behind it; where rows may have several labels, those to add and to take
    away. These are suggestions: look at each.

    Rows that cannot be used are reported as a finding; --on-error fail stops at the first.

    With --write, the rows are written to a new file, and what everybody would fix is fixed there. A row that cannot be
    used then stops the command, unless --on-error skip leaves it out.
    """
    _check_outputs(mended_path, suspects, targets, mends=bool(kinds), audits=audits, escape_formulas=escape_formulas)
    mended_table = None
    if mended_path is not None:
        _check_place(mended_path, targets)
        mended_table = NewTable.at(mended_path, escape_formulas=escape_formulas)
    kinds = kinds or mending.KINDS
    table_of_suspects = None if suspects is None else NewTable.at(suspects, escape_formulas=escape_formulas)
    audit_rows = optional_dependencies.load(AUDIT, "textcls check --labels") if audits else None
    once([*data, *([valid] if valid else [])])
    if mended_path is None and click.get_current_context().get_parameter_source("on_error") is ParameterSource.DEFAULT:
        # Checking a table should report all that is wrong with it. Rows are left out of a table only on request.
        reading.bad.skip = True
    wanted = named_columns(columns, data, text_columns, label_column, targets, reading)
    kept: list[LabelledRow[Target]] = []
    validation = reading.table_of_targets([valid], text_columns, label_column, targets) if valid else nullcontext()
    with reading.table_of_targets(data, text_columns, label_column, targets) as table, validation as valid_table:
        valid_rows = None if valid_table is None else valid_table.rows
        rows = _keeping(table.rows, kept) if audits or wanted or mended_table is not None else table.rows
        how: dict[str, Any] = {"columns": [*wanted], "answers": table.label_column == ANSWER}
        report = check_rows(rows, valid_rows, expected=table.label_columns, bad=reading.bad, **how)
    beside = read_columns(wanted, kept, [*table.text_columns, *label_columns(table.label_column, ())])
    mended = None
    if mended_table is not None:
        label_column = None if table.label_columns else table.label_column
        mended = mending.mend(kept, table.text_columns, label_column, kinds, targets.label_separator, wanted)
    audit = None
    if audit_rows is not None:
        audit = audit_rows(kept, beside.columns, beside.cells, quiet=reading.quiet)
    if as_json:
        more: dict[str, Any] = {"label_audit": audit.as_json()} if audit else {}
        more |= {"columns": beside.found} if wanted else {}
        click.echo(json_line(report.as_json() | more | ({"mended": mended.as_json()} if mended else {})))
    else:
        wrong = [] if audit is None else label_audit_report(audit, [kept[one.row].row.where for one in audit.suspects])
        show([*data_quality_report(report), *beside.lines(), *wrong])
    # Last of all: the findings have been printed if the file cannot be written.
    if mended is not None and mended_table is not None:
        _write_mended(mended_table, mended)
        if not as_json:
            show([f"{plural(len(mended.rows), 'row')} -> {mended_path}", *mended.lines()])
    if audit is not None and table_of_suspects is not None:
        _write(table_of_suspects, [kept[one.row].row for one in audit.suspects], audit, targets.label_separator)
        if not as_json:
            show([f"{plural(len(audit.suspects), 'row')} -> {suspects}"])


def _keeping(rows: Iterable[LabelledRow[Target]], kept: list[LabelledRow[Target]]) -> Iterator[LabelledRow[Target]]:
    """Yield rows, and keep them."""
    for row in rows:
        kept.append(row)
        yield row


def _check_outputs(
    mended_path: Path | None,
    suspects: Path | None,
    targets: TargetOptions,
    *,
    mends: bool,
    audits: bool,
    escape_formulas: bool,
) -> None:
    """Refuse options of a table that is not requested."""
    if mends and mended_path is None:
        raise ConfigError("--mend needs --write, which says where the mended rows go.")
    if suspects is not None and not audits:
        raise ConfigError("--suspects needs --labels, which finds them.")
    if escape_formulas and mended_path is None and suspects is None:
        raise ConfigError("--escape-formulas needs --write or --suspects, which write a table.")
    if targets.merge_rows and (mended_path is not None or suspects is not None):
        raise ConfigError("--merge-rows makes one row of several, and --write and --suspects copy rows; leave one out.")


def _check_place(path: Path, targets: TargetOptions) -> None:
    """Refuse to write mended rows that have weights, or to write them to standard output."""
    if targets.weight_column is not None:
        raise ConfigError("--write mends rows that all count alike; leave --weight-column out.")
    if path == STANDARD:
        raise ConfigError("--write needs a file of its own.")


def _write_mended(table: NewTable, mended: Mended) -> None:
    """Write mended rows with all their columns."""
    with table.open(list(dict.fromkeys(name for row in mended.rows for name in row.fields)), ()) as writer:
        writer.write(mended.rows, [{}] * len(mended.rows))


def _write(table: NewTable, rows: Sequence[Row], audit: LabelAudit, separator: str | None) -> None:
    """Write suspects with all their columns, and the findings about them, with labels as they were read."""
    columns = list(dict.fromkeys(name for row in rows for name in row.fields if name not in COLUMNS))
    with table.open(columns, COLUMNS) as writer:
        writer.write(rows, [one.columns(None if separator == JSON else separator) for one in audit.suspects])
