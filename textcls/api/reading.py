"""Read texts and labels of any table from Python, by the rules of the command line."""

import re
import warnings
from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

from textcls.errors import ConfigError, InputError
from textcls.model.label_sets import LabelSet

# Advice in messages for the command line: options that are arguments here, and one that is not.
_TASK: Final = ", or add --task several if a row may have none"
_ARGUMENT: Final = re.compile(r"(?<=\s)--(text-column|label-column|sheet|encoding|on-error)( skip)?")


class TextsAndLabels(NamedTuple):
    """Texts and the label of each: two lists of the same length, which `textcls.train` takes.

    Attributes:
        texts: the texts.
        labels: the label of each; if texts may have several labels, the labels of each with their probabilities.
    """

    texts: list[str]
    labels: list[str] | list[LabelSet]


def read(
    table: Any,
    *,
    text_column: str | Sequence[str] | None = None,
    label_column: str | None = None,
    sheet: str | None = None,
    encoding: str | None = None,
    on_error: Literal["fail", "skip"] = "fail",
) -> TextsAndLabels:
    """Return the texts of a table with their labels.

    Args:
        table: a file of any format that `textcls train` reads, or its URL, a folder, several of these in a list, or a
            table in memory: from pandas, polars, pyarrow, or Hugging Face's `datasets`, whose class numbers become
            class names.
        text_column: the text column; several are joined, one per line. By default `text`, or one with a well-known
            name.
        label_column: the label column. By default `label`, or one with a well-known name.
        sheet: the sheet of an Excel file to read; the first by default.
        encoding: the encoding of text files, such as `cp1252`; by default UTF-8.
        on_error: what to do with a row that cannot be used, such as one without a label: `fail`, or `skip`, with a
            warning that says how many.

    Raises:
        ConfigError: there is no such encoding, or `on_error` is something else.
        InputError: this is not a table, it lacks the columns, or a row cannot be used.
        MissingExtraError: the format needs a package that is not installed.

    Examples:
        >>> texts, labels = textcls.read("tickets.csv")
        >>> len(texts) == len(labels)
        True
    """
    if on_error not in ("fail", "skip"):
        raise ConfigError(f"on_error is 'fail' or 'skip', not {on_error!r}.")
    # Imported late: callers that only ask a model do not need the table readers.
    from textcls.data import BadRows, ReadOptions, TargetOptions, read_labelled
    from textcls.data.memory import MemoryTable, Readable
    from textcls.data.storage import RemoteFile, is_url

    def readable(one: Any) -> Readable:
        if isinstance(one, str) and is_url(one):
            return RemoteFile(one)
        return Path(one) if isinstance(one, str | PathLike) else MemoryTable(one)

    columns: list[Any] = (
        [*text_column] if isinstance(text_column, list | tuple) else [] if text_column is None else [text_column]
    )
    for name in (*columns, label_column):
        if name is not None and not isinstance(name, str):
            raise ConfigError(f"Columns are named by strings, and {name!r} is none; rename the column.")
    tables = table if isinstance(table, list | tuple) else [table]
    bad = BadRows(skip=on_error == "skip")
    try:
        found = read_labelled(
            [*map(readable, tables)],
            columns,
            label_column,
            options=ReadOptions(sheet=sheet, encoding=encoding),
            targets=TargetOptions(),
            bad=bad,
        )
    except (ConfigError, InputError) as error:
        raise type(error)(_in_python(str(error))) from error
    if skipped := bad.summary():
        warnings.warn(skipped, stacklevel=2)
    return TextsAndLabels(list(found.texts), found.labels)


def _in_python(message: str) -> str:
    """Return a message of the readers with the arguments of `read` in place of command-line options."""
    named = _ARGUMENT.sub(lambda found: found[1].replace("-", "_") + ("='skip'" if found[2] else ""), message)
    return named.replace(_TASK, "")
