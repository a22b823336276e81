"""The option `--column` of commands that read labelled rows: columns beside the text, and their content."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final, NamedTuple, TypeVar, get_args

import click

from textcls.cli.reading import Reading
from textcls.data import BadRows, TargetOptions, open_tables, open_targets
from textcls.data.column_kinds import (
    EVERY_COLUMN,
    cells_of_rows,
    columns_of,
    described,
    nearly_numbers,
    silences,
    wanted_kinds,
)
from textcls.data.labelled import LabelledRow
from textcls.data.memory import Readable
from textcls.data.source import STANDARD
from textcls.data.targets import Target, columns_of_labels
from textcls.display.text import plural
from textcls.errors import ConfigError, InputError
from textcls.explain import telling_columns
from textcls.labelling.answers import Chosen
from textcls.model.columns import Column, Kind
from textcls.model.label_paths import label_columns
from textcls.model.text_columns import and_

F = TypeVar("F", bound=Callable[..., Any])
# The number of rows that are searched for columns that contain something other than values.
_LOOKED_AT: Final = 1000


def column_option(does: str) -> Callable[[F], F]:
    """Return the option; `does` is a sentence on what is done with the columns."""
    return click.option(
        "--column",
        "columns",
        multiple=True,
        metavar="NAME[:KIND]",
        help=f"Column beside the text, as category, number or date; without a kind it is detected. {does} May be "
        "repeated; '*' is all that are neither text nor label.",
    )


def named_columns(
    given: Sequence[str],
    data: Sequence[Readable],
    text_columns: Sequence[str],
    label_column: str | None,
    targets: TargetOptions,
    reading: Reading,
    others: Sequence[str | None] = (),
) -> Mapping[str, Kind | None]:
    """Return the requested columns beside the text, with the kinds of those for which a kind is given.

    `*` is all columns that are neither text nor label nor weight, nor one of the `others`.

    Raises:
        InputError: the file cannot be read, or * is used with standard input, which cannot be read twice.
        ConfigError: a column has no name, or two kinds, or rows are merged.
    """
    if given and targets.merge_rows:
        raise ConfigError(
            "--merge-rows makes one row of all with the same text, whose other columns may differ; leave --column out."
        )
    named = wanted_kinds([one for one in given if one != EVERY_COLUMN])
    if EVERY_COLUMN not in given:
        return named
    if STANDARD in data:
        raise InputError("--column '*' reads the names of the columns before, which a pipe forgets; name the columns.")
    options, bad = reading.options, BadRows(skip=True)
    with open_targets(data, text_columns, label_column, targets=targets, options=options, bad=bad) as labelled:
        taken = {*labelled.text_columns, targets.weight_column, *others}
    with open_tables(data, options, bad) as opened:
        table = opened.with_lists(labelled.label_column)
        taken |= {*label_columns(labelled.label_column, table.columns)}
        rows = list(islice(table.rows, _LOOKED_AT))
        if rows and rows[0].fields.get("chosen") in get_args(Chosen):
            taken |= {"row", "chosen", "by"}  # `textcls label` wrote it: how its answers came about
        nested = {name for row in rows for name, value in row.fields.items() if isinstance(value, dict | list)}
        nested -= {*taken, *named}
        if nested:
            reading.say([f"Lists and objects are left out of --column '*': {and_(sorted(nested))}."])
        taken |= nested
        if targets.label_columns:
            taken |= set(columns_of_labels(table.parts[0], targets, labelled.text_columns))
        return dict.fromkeys(name for name in table.columns if name not in taken) | named


class ReadColumns(NamedTuple):
    """Columns beside the texts of labelled rows.

    Attributes:
        columns: how they are read.
        cells: the cells of each row.
        found: the findings about each, as plain data.
    """

    columns: tuple[Column, ...]
    cells: Sequence[Sequence[str]]
    found: Sequence[Mapping[str, Any]]

    def lines(self) -> Iterator[str]:
        """Yield the findings, one line per column."""
        for column in self.found:
            warnings = "".join(f" {said}" for said in column["warnings"])
            missing = column["missing"]
            there = f"{plural(missing, 'row')} without a value" if missing else "all rows have a value"
            yield f"Column {column['read_as']}: {there}.{warnings}"


def read_columns(
    wanted: Mapping[str, Kind | None], rows: Sequence[LabelledRow[Target]], others: Sequence[str]
) -> ReadColumns:
    """Read the columns beside the text of rows, and determine the findings about each.

    Raises:
        InputError: no row has one of them, or a column cannot be read.
    """
    if not wanted:
        return ReadColumns((), (), ())
    if absent := next((name for name in wanted if not any(name in row.row.fields for row in rows)), None):
        raise InputError(f"No row has the column {absent!r}; name another one, or leave it out.")
    values = {name: [row.row.fields.get(name) for row in rows] for name in wanted}
    columns = columns_of(wanted, values, others)
    labels = [row.label for row in rows if isinstance(row.label, str)]
    cells = cells_of_rows(columns, values)
    telling = telling_columns.telling(columns, cells, labels) if len(labels) == len(rows) else {}
    found = []
    for column in columns:
        silent = silences(column, values[column.name])
        not_understood = silent.sentence(column.name)
        odd = nearly_numbers(column, values[column.name]) if wanted[column.name] is None else None
        found.append(
            {
                "name": column.name,
                "kind": column.kind,
                "read_as": described(column),
                "missing": silent.missing,
                "not_understood": silent.strange,
                "warnings": [*filter(None, [not_understood, odd]), *telling.get(column.name, [])],
            }
        )
    return ReadColumns(columns, cells, found)
