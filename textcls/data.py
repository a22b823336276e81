"""Read tables of texts: the one reader under train, evaluate and predict."""

import csv
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from textcls.errors import InputError

DEFAULT_TEXT_COLUMNS: Final = ("text",)
DEFAULT_LABEL_COLUMN: Final = "label"
# Several text columns become one text, one a line.
JOINT: Final = "\n"

if TYPE_CHECKING:
    from _csv import Reader as _Reader

# The csv module refuses fields over 128 KiB unless told otherwise; a text may well be a megabyte.
csv.field_size_limit(2**30)


class Row(NamedTuple):
    """A row of a table: the line of the file on which it ends, and its fields by column."""

    line: int
    fields: dict[str, str]


@dataclass(frozen=True, slots=True)
class Table:
    """An open table: its columns and its rows, read one at a time."""

    path: Path
    columns: tuple[str, ...]
    rows: Iterator[Row]

    def require(self, columns: Sequence[str], option: str) -> None:
        """Raise InputError unless all `columns` are there; `option` is what the user would set."""
        missing = [c for c in columns if c not in self.columns]
        if missing:
            raise InputError(
                f"{self.path} has no column {missing[0]!r}; it has {', '.join(map(repr, self.columns))}. "
                + (self._wrong_separator() or f"Choose with {option}.")
            )

    def _wrong_separator(self) -> str:
        found = [name for sign, name in ((";", "semicolons"), ("\t", "tabs"), ("|", "bars")) if sign in self.columns[0]]
        one = len(self.columns) == 1 and found
        return f"Its fields seem to be separated by {found[0]}; commas are needed." if one else ""


class Labelled(NamedTuple):
    """Texts and their labels, in the order of the file."""

    texts: list[str]
    labels: list[str]


@contextmanager
def open_table(path: Path) -> Iterator[Table]:
    """Open the CSV file at `path`: UTF-8, a header, fields quoted where they hold commas or line breaks.

    Raises:
        InputError: no such file, no header, a row that does not fit it, or bytes that are not UTF-8.
    """
    try:
        file = path.open(encoding="utf-8-sig", newline="")
    except FileNotFoundError as error:
        raise InputError(f"There is no file {path}.") from error
    except IsADirectoryError as error:
        raise InputError(f"{path} is a folder; name a CSV file in it.") from error
    except OSError as error:
        raise InputError(f"{path} cannot be read: {os.strerror(error.errno or 0)}.") from error
    with file:
        reader = csv.reader(file, strict=True)
        with _reading(path, reader):
            header = next(reader, None)
        if not header:
            raise InputError(f"{path} is empty; a header with column names and at least one row are needed.")
        columns = tuple(name.strip() for name in header)
        twice = next((name for name in columns if columns.count(name) > 1), None)
        if twice is not None:
            raise InputError(f"{path} has two columns called {twice!r}; rename one.")
        yield Table(path, columns, _rows(path, columns, reader))


def _rows(path: Path, columns: tuple[str, ...], reader: "_Reader") -> Iterator[Row]:
    while True:
        with _reading(path, reader):
            fields = next(reader, None)
        if fields is None:
            return
        if not fields or (len(fields) == 1 < len(columns) and not fields[0].strip()):
            continue
        if len(fields) != len(columns):
            raise InputError(
                f"{path}, line {reader.line_num}: {len(fields)} fields where the header has {len(columns)}; "
                'put fields that hold commas or line breaks in double quotes, and write a quote inside them as "".'
            )
        yield Row(reader.line_num, dict(zip(columns, fields, strict=True)))


@contextmanager
def _reading(path: Path, reader: "_Reader") -> Iterator[None]:
    try:
        yield
    except UnicodeDecodeError as error:
        raise InputError(
            f"{path}, line {_undecodable_line(path)}: byte 0x{error.object[error.start]:02x} is not UTF-8; "
            "save the file as UTF-8."
        ) from error
    except csv.Error as error:
        raise InputError(f"{path}, line {reader.line_num}: {error}; check the quotes there.") from error


def _undecodable_line(path: Path) -> int:
    """The reader decodes ahead of the line it is on, so the line is looked for anew."""
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            try:
                line.decode()
            except UnicodeDecodeError:
                return number
    return 1


def join_columns(row: Row, columns: Sequence[str]) -> str:
    """Return the text of a row: its text columns, one a line."""
    return JOINT.join(row.fields[c] for c in columns)


def read_labelled(path: Path, text_columns: Sequence[str], label_column: str) -> Labelled:
    """Read all texts and labels of the file at `path`.

    Raises:
        InputError: the file cannot be read, a column is missing, or a label is empty.
    """
    found = Labelled([], [])
    with open_table(path) as table:
        table.require(text_columns, "--text-column")
        table.require([label_column], "--label-column")
        if label_column in text_columns:
            raise InputError(f"The column {label_column!r} cannot be both text and label of {path}.")
        for row in table.rows:
            label = row.fields[label_column].strip()
            if not label:
                raise InputError(
                    f"{path}, line {row.line}: the label in column {label_column!r} is empty; "
                    "fill it or remove the row."
                )
            found.texts.append(join_columns(row, text_columns))
            found.labels.append(label)
    if not found.texts:
        raise InputError(f"{path} has a header but no rows.")
    return found
