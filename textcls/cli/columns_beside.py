"""The option `--column` of commands that read labelled rows: which columns beside the text are meant."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import click

from textcls.cli.reading import Reading
from textcls.data import BadRows, TargetOptions, open_tables, open_targets
from textcls.data.column_kinds import EVERY_COLUMN, wanted_kinds
from textcls.data.memory import Readable
from textcls.data.source import STANDARD
from textcls.data.targets import columns_of_labels
from textcls.errors import InputError
from textcls.model.columns import Kind

F = TypeVar("F", bound=Callable[..., Any])


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
    targets: TargetOptions,
    reading: Reading,
    others: Sequence[str | None] = (),
) -> Mapping[str, Kind | None]:
    """Return the columns beside the text that are asked for, with the kinds of those of which they are said.

    `*` is all columns that are neither text nor label nor weight, nor one of the `others`.

    Raises:
        InputError: the file cannot be read, or * is asked of standard input, which cannot be read twice.
        ConfigError: a column has no name, or two kinds.
    """
    named = wanted_kinds([one for one in given if one != EVERY_COLUMN])
    if EVERY_COLUMN not in given:
        return named
    if STANDARD in data:
        raise InputError("--column '*' reads the names of the columns before, which a pipe forgets; name the columns.")
    options, bad = reading.options, BadRows(skip=True)
    with open_targets(data, text_columns, label_column, targets=targets, options=options, bad=bad) as labelled:
        taken = {*labelled.text_columns, labelled.label_column, targets.weight_column, *others}
    with open_tables(data, options, bad) as table:
        if targets.label_columns:
            taken |= set(columns_of_labels(table.parts[0], targets, labelled.text_columns))
        return dict.fromkeys(name for name in table.columns if name not in taken) | named
