"""The option `--column` of commands that read labelled rows: which columns beside the text are meant."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeVar

import click

from textcls.cli.reading import Reading
from textcls.data import BadRows, open_labelled, open_tables
from textcls.data.column_kinds import parse
from textcls.data.memory import Readable
from textcls.data.source import STANDARD
from textcls.errors import InputError
from textcls.model.columns import Kind

F = TypeVar("F", bound=Callable[..., Any])
# Asks for all columns that are not taken yet.
EVERY_COLUMN: Final = "*"


def column_option(does: str) -> Callable[[F], F]:
    """Return the option; `does` is a sentence on what becomes of the columns."""
    return click.option(
        "--column",
        "columns",
        multiple=True,
        metavar="NAME[:KIND]",
        help=f"Column beside the text, as category, number or date; without a kind it is found out. {does} May be "
        "repeated; '*' is all that are neither text nor label.",
    )


def named_columns(
    given: Sequence[str],
    data: Sequence[Readable],
    text_columns: Sequence[str],
    label_column: str | None,
    reading: Reading,
    others: Sequence[str | None] = (),
) -> Mapping[str, Kind | None]:
    """Return the columns beside the text that are asked for, with the kinds of those of which they are said.

    `*` is all columns that are neither text nor label, nor one of the `others`.

    Raises:
        InputError: the file cannot be read, or * is asked of standard input, which cannot be read twice.
        ConfigError: a column has no name.
    """
    named = dict(parse(one) for one in given if one != EVERY_COLUMN)
    if EVERY_COLUMN not in given:
        return named
    if STANDARD in data:
        raise InputError("--column '*' reads the names of the columns before, which a pipe forgets; name the columns.")
    with open_labelled(data, text_columns, label_column, options=reading.options, bad=BadRows(skip=True)) as labelled:
        taken = {*labelled.text_columns, labelled.label_column, *others}
    with open_tables(data, reading.options, BadRows(skip=True)) as table:
        return dict.fromkeys(name for name in table.columns if name not in taken) | named
