"""Columns beside the text: categories, numbers and dates, as a model reads them.

A value of any type becomes one to four cells, which are strings: the value of a category, the shortest decimal of a
number, or the days since 1970, month, weekday and hour of a date. An empty cell is a missing value. The graph of a
model with columns gets them as a second input, `columns` [B, cells]: numbers first, then categories.

In files, batches, processes and requests a row is one string (`pack`): its cells, then its text, separated by the
separator characters of ASCII.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any, Final, Literal, get_args

from textcls.errors import InputError
from textcls.model.cell_values import category, decimal, moment, number
from textcls.model.labels import unpaired_surrogate

Kind = Literal["category", "number", "date"]
# Why a value gives no information: there is none; it is not a number or date; or no training row had it.
Silence = Literal["missing", "not understood", "unseen"]
KINDS: Final = get_args(Kind)
# The ends of the cells of a row, and what separates them: ASCII's record and unit separators.
END_OF_CELLS: Final = "\x1e"
BETWEEN_CELLS: Final = "\x1f"
# The parts of a date besides its day.
DATE_PARTS: Final = ("month", "weekday", "hour")
MOST_COLUMNS: Final = 200
# How tables write a missing number or date.
_NOTHING: Final = ("", "nan", "null", "none", "na", "n/a", "unknown", "-", "?", r"\n")
_EPOCH: Final = datetime(1970, 1, 1)
_WEEKDAYS: Final = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


@dataclass(frozen=True, slots=True)
class Column:
    """One column beside the text.

    Attributes:
        name: its name.
        kind: how it is read.
        values: the values of a category that occurred in training, most frequent first; empty for other kinds.
        knots: the rising values between which the curve of a number or date is linear; empty before it is fitted.
        date_format: the format of most of its dates (as in `datetime.strptime`), if not ISO 8601.
        decimal_comma: for numbers, whether 1,234 is less than two, and 1.234 more than a thousand.
    """

    name: str
    kind: Kind
    values: tuple[str, ...] = ()
    knots: tuple[float, ...] = ()
    date_format: str | None = None
    decimal_comma: bool = False

    @property
    def numbers(self) -> int:
        """How many of its cells are numbers."""
        return 0 if self.kind == "category" else 1

    @property
    def categories(self) -> int:
        """How many of its cells are categories."""
        return {"category": 1, "number": 0, "date": len(DATE_PARTS)}[self.kind]

    def cells(self, value: object) -> tuple[str, ...]:
        """Return the cells of a value: the number, if there is one, then the categories.

        A value of a number or date column that is not one is missing.

        Raises:
            ValueError: it is a list or an object.
        """
        match self.kind:
            case "category":
                return (category(value),)
            case "number":
                found = number(value, decimal_comma=self.decimal_comma)
                return ("" if found is None else decimal(found),)
            case "date":
                when = moment(value, self.date_format)
                if when is None:
                    return ("",) * (1 + len(DATE_PARTS))
                days = (when - _EPOCH).total_seconds() / 86_400
                return decimal(days), f"{when.month}", _WEEKDAYS[when.weekday()], f"{when.hour}"

    def to_json(self) -> dict[str, Any]:
        """Return it as plain data."""
        found = asdict(self)
        return found if self.decimal_comma else {name: found[name] for name in found if name != "decimal_comma"}

    @classmethod
    def from_json(cls, found: object) -> "Column":
        """Read plain data, and check it.

        Raises:
            ValueError: it is not a column.
        """
        if not isinstance(found, dict) or {"decimal_comma", *found} != set(cls.__slots__):
            raise ValueError("columns holds something that is not a column")
        whole = {"decimal_comma": False} | found
        name, kind, values, knots, form, comma = (whole[key] for key in cls.__slots__)
        if not isinstance(name, str) or not name or kind not in KINDS or not isinstance(form, str | None):
            raise ValueError("columns holds a column without a name, or of a kind that there is not")
        if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
            raise ValueError("columns holds values that are not strings")
        if not isinstance(knots, list) or not all(type(knot) in (int, float) and math.isfinite(knot) for knot in knots):
            raise ValueError("columns holds knots that are not finite numbers")
        if type(comma) is not bool:
            raise ValueError("columns holds a column whose decimal_comma is neither true nor false")
        return cls(name, kind, tuple(values), tuple(knots), form, comma)


def cells_of(fields: Mapping[str, Any], columns: Sequence[Column]) -> list[str]:
    """Return the cells of a row: the numbers of all columns, then their categories.

    Args:
        fields: the row, by the names of its columns; absent ones are missing values.
        columns: the columns of the model.

    Raises:
        ValueError: one contains a list or an object; the message says which.
    """
    numbers: list[str] = []
    categories: list[str] = []
    for column in columns:
        try:
            found = column.cells(fields.get(column.name))
        except ValueError as error:
            raise ValueError(f"the column {column.name!r} {error}") from error
        numbers += found[: column.numbers]
        categories += found[column.numbers :]
    return numbers + categories


def not_understood(fields: Mapping[str, Any], columns: Sequence[Column], cells: Sequence[str]) -> list[str]:
    """Return the number and date columns whose values are not numbers or dates.

    Args:
        fields: as for `cells_of`.
        columns: as for `cells_of`.
        cells: the result of `cells_of`.
    """
    with_numbers = (column.name for column in columns if column.numbers)
    empty = [name for name, cell in zip(with_numbers, cells, strict=False) if not cell and fields.get(name) is not None]
    return [name for name in empty if category(fields[name]) not in _NOTHING]


def categories_of(cells: Sequence[str], columns: Sequence[Column]) -> Iterator[tuple[str, str, bool]]:
    """Yield the column and value of each category in a row, and whether a model with these columns knows it."""
    cells = cells[sum(column.numbers for column in columns) :]
    at = 0
    for column in columns:
        if column.kind == "category" and cells[at]:
            yield column.name, cells[at], cells[at] in _known(column.values)
        at += column.categories


def silent(fields: Mapping[str, Any], columns: Sequence[Column]) -> Iterator[tuple[str, Silence]]:
    """Yield the columns that give no information on a row, and why; arguments and errors are those of `cells_of`."""
    for column in columns:
        value = fields.get(column.name)
        cells = column.cells(value)
        if not any(cells):
            yield column.name, "missing" if category(value) in _NOTHING else "not understood"
        elif column.kind == "category" and cells[0] not in _known(column.values):
            yield column.name, "unseen"


@lru_cache(maxsize=2 * MOST_COLUMNS)
def _known(values: tuple[str, ...]) -> frozenset[str]:
    return frozenset(values)


def some_cells(cells: Sequence[str], columns: Sequence[Column], kept: Sequence[Column]) -> list[str]:
    """Return those cells of a row with `columns` that belong to the columns in `kept`."""
    names = {column.name for column in kept}
    return [cell for cell, name in zip(cells, columns_of_cells(columns), strict=True) if name in names]


def pack(cells: Sequence[str], text: str) -> str:
    """Return a row as one string."""
    return BETWEEN_CELLS.join(cells) + END_OF_CELLS + text


def unpack(row: str, columns: Sequence[Column]) -> tuple[list[str], str]:
    """Return the cells and the text of a row made by `pack`; if it is only a text, all cells are missing.

    Raises:
        InputError: it does not have the number of cells that a model with these columns reads.
    """
    number = count(columns)
    head, end, text = row.partition(END_OF_CELLS)
    if not end:
        return [""] * number, row
    cells = head.split(BETWEEN_CELLS)
    if len(cells) != number:
        raise InputError(
            f"A row has {len(cells)} cells before its text, and the model reads {number}; hand rows over as mappings."
        )
    return cells, text


def count(columns: Sequence[Column]) -> int:
    """Return how many cells a row has."""
    return sum(column.numbers + column.categories for column in columns)


def columns_of_cells(columns: Sequence[Column]) -> list[str]:
    """Return the column name of each cell of a row, in order."""
    numbers = [column.name for column in columns for _ in range(column.numbers)]
    return numbers + [column.name for column in columns for _ in range(column.categories)]


def names_of_cells(columns: Sequence[Column]) -> list[str]:
    """Return the names of the cells of a row, in order: `opened`, and `opened (weekday)`."""
    numbers = [column.name for column in columns if column.numbers]
    parts = [
        [f"{column.name} ({part})" for part in DATE_PARTS] if column.kind == "date" else [column.name]
        for column in columns
        if column.categories
    ]
    return numbers + [name for names in parts for name in names]


def named_cell(name: str, value: str) -> str:
    """Return the description of a cell to list among words: `product = lamp`, or `product is missing`."""
    return f"{name} = {value}" if value else f"{name} is missing"


def told(columns: Sequence[Column], cells: Sequence[str]) -> list[str]:
    """Return the cells of a row in readable form, with days since 1970 as dates."""
    dates = [column.kind == "date" for column in columns if column.numbers]
    dates += [False] * (len(cells) - len(dates))
    return [_date_of(cell) if is_date and cell else cell for is_date, cell in zip(dates, cells, strict=True)]


def _date_of(days: str) -> str:
    try:
        when = _EPOCH + timedelta(minutes=round(float(days) * 1440))
    except (ValueError, OverflowError):
        return days
    return when.isoformat(" ", "minutes") if when.hour or when.minute else when.date().isoformat()


def require_columns(columns: Sequence[Column], others: Sequence[str]) -> None:
    """Refuse columns that cannot be combined with each other, or with those of text and label.

    Raises:
        InputError: one occurs twice or is not valid UTF-8, or there are too many.
    """
    if len(columns) > MOST_COLUMNS:
        raise InputError(f"There are {len(columns):,} columns beside the text; a model reads {MOST_COLUMNS} at most.")
    seen = set(others)
    for column in columns:
        if column.name in seen:
            raise InputError(
                f"The column {column.name!r} is that of text, label or weight, or named twice; it can be read in one "
                "way alone."
            )
        if unpaired_surrogate(column.name):
            raise InputError(f"The column {column.name!r} has no UTF-8 form; rename it.")
        seen.add(column.name)
