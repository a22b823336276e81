"""Columns beside the text: categories, numbers and dates, as a model reads them.

What stands in a row, whatever its type, becomes one to four cells, which are strings: of a category the value, of a
number the shortest decimal, of a date the days since 1970 and its month, weekday and hour. An empty cell is a missing
one. The graph of a model with columns has them as a second input, `columns` [B, cells]: numbers first, then categories.

On its way through files, batches, processes and requests a row is one string (`pack`): its cells, then its text, told
apart by the separators that ASCII has for that.
"""

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from functools import lru_cache
from numbers import Real
from typing import Any, Final, Literal, get_args
from unicodedata import normalize

from textcls.errors import InputError
from textcls.model.labels import unpaired_surrogate

Kind = Literal["category", "number", "date"]
# Why a value says nothing: there is none; there should be a number or a date; no row of the training had it.
Silence = Literal["missing", "not understood", "unseen"]
KINDS: Final = get_args(Kind)
# What follows the cells of a row, and what stands between them: the separators of records and of units.
END_OF_CELLS: Final = "\x1e"
BETWEEN_CELLS: Final = "\x1f"
# Of a date, what else there is beside its day.
DATE_PARTS: Final = ("month", "weekday", "hour")
MOST_COLUMNS: Final = 200
# What a longer category is cut to.
CATEGORY_CHARACTERS: Final = 200
# A longer string is no number.
LONGEST_NUMBER: Final = 100
# A number nearer to 0 is 0.
LEAST_NUMBER: Final = 1e-30
# How tables say that there is no number, or no date.
_NOTHING: Final = ("", "nan", "null", "none", "na", "n/a", "unknown", "-", "?")
_EPOCH: Final = datetime(1970, 1, 1)
_WEEKDAYS: Final = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
# Currencies that stand around numbers, and what else does.
_CODES: Final = (
    "AED|AUD|BRL|CAD|CHF|CNY|CZK|DKK|EUR|GBP|HKD|HUF|ILS|INR|JPY|KRW|MXN|MYR|NOK|NZD|PHP|PLN|RON|RUB|SAR|SEK|SGD|THB|TRY|"
    "TWD|UAH|USD|VND|ZAR"
)
_UNIT: Final = rf"(?:[A-Z]{{0,2}}[$\u00a2-\u00a5\u0e3f\u20a0-\u20cf]|{_CODES}|Rs\.?|kr\.?|z\u0142|K\u010d|Ft|%)"
_SPACE: Final = "[ \t\n\r\u00a0\u2009\u202f]*"
_NUMBER: Final = re.compile(
    rf"{_SPACE}'?([+-]?){_SPACE}(?:{_UNIT}{_SPACE})?([+-]?)"
    r"(\.?\d(?:[\d.,' \u00a0\u2009\u202f]*\d)?\.?)((?:[eE][+-]?\d+)?)"
    rf"(?:[.,][-\u2013\u2014]+)?{_SPACE}(?:{_UNIT}{_SPACE})?",
    re.ASCII,
)
# Digits in groups of three, which commas and points part as well as decimals.
_IN_GROUPS: Final = re.compile(r"\d{1,3}(?:[' \u00a0\u2009\u202f]\d{3})+(?:[.,]\d+)?")
_EITHER: Final = re.compile(r"[1-9]\d{0,2}[.,]\d{3}")
_BY_COMMAS: Final = re.compile(r"[1-9]\d{0,2}(?:,\d{3})+(?:\.\d+)?")
_DECIMAL_COMMA: Final = re.compile(r"\d+,\d+|[1-9]\d{0,2}(?:\.\d{3})+,\d+|[1-9]\d{0,2}(?:\.\d{3}){2,}")
_DECIMAL_POINT: Final = re.compile(r"\d+\.?\d*|\.\d+")
_TRUTHS: Final = {"true": 1.0, "false": 0.0}
# How dates are written where not as ISO 8601 says, tried in this order: where it is clear which number is the month, as
# before points the day comes first; then with the day before the month; then with the month before the day.
_CLEAR_DATES: Final = (
    "%d.%m.%Y", "%Y/%m/%d", "%d %b %Y", "%b %d, %Y", "%d %B %Y", "%B %d, %Y", "%d.%m.%y",
)  # fmt: skip
_DAY_FIRST: Final = ("%d/%m/%Y", "%d-%m-%Y", "%d/%m/%y")
_MONTH_FIRST: Final = ("%m/%d/%Y", "%m-%d-%Y", "%m/%d/%y")
DATE_FORMATS: Final = (*_CLEAR_DATES, *_DAY_FIRST, *_MONTH_FIRST)
_DATE_AND_TIME: Final = re.compile(r"(\S.{5,17}?)(?: \d\d?:\d\d(:\d\d)?)?")


@dataclass(frozen=True, slots=True)
class Column:
    """One column beside the text.

    Attributes:
        name: its name.
        kind: how it is read.
        values: of a category those that the training has seen, the most frequent first; of others none.
        knots: of a number or a date, between which values its curve is a line each, rising; none before it is fitted.
        date_format: how most of its dates are written (as `datetime.strptime` reads them), where not as ISO 8601 says.
        decimal_comma: of numbers, whether 1,234 is less than two, and 1.234 more than a thousand.
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

        What is no number where there should be one, or no date, is missing.

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
            ValueError: that is no column.
        """
        if not isinstance(found, dict) or {"decimal_comma", *found} != set(cls.__slots__):
            raise ValueError("columns holds something that is no column")
        whole = {"decimal_comma": False} | found
        name, kind, values, knots, form, comma = (whole[key] for key in cls.__slots__)
        if not isinstance(name, str) or not name or kind not in KINDS or not isinstance(form, str | None):
            raise ValueError("columns holds a column without a name, or of a kind that there is not")
        if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
            raise ValueError("columns holds values that are no strings")
        if not isinstance(knots, list) or not all(type(knot) in (int, float) and math.isfinite(knot) for knot in knots):
            raise ValueError("columns holds knots that are no finite numbers")
        if type(comma) is not bool:
            raise ValueError("columns holds a column whose decimal_comma is neither true nor false")
        return cls(name, kind, tuple(values), tuple(knots), form, comma)


def category(value: object) -> str:
    """Return a category as a cell: upper and lower case are one, and so are spaces of any kind and number, and signs of
    one part or more.

    Raises:
        ValueError: it is a list or an object.
    """
    value = _plain(value)
    if value is None:
        return ""
    if isinstance(value, Real) and not isinstance(value, int) and float(value).is_integer():
        value = int(float(value))
    # Separators of cells are spaces for `split`.
    found = " ".join(normalize("NFC", str(value)).casefold().split())[:CATEGORY_CHARACTERS]
    return "" if unpaired_surrogate(found) else found


def number(value: object, *, decimal_comma: bool = False) -> float | None:
    """Return a number, also of a string such as `1,234.50`, `1.234,50`, `12,5`, `31 581,94 €` or `CHF 12.-`.

    Returns None for anything else.

    Args:
        value: a number, a truth value, or a string.
        decimal_comma: whether `1,234` is less than two, and `1.234` more than a thousand; else the reverse.

    Raises:
        ValueError: it is a list or an object.
    """
    written = _plain(value)
    # What has a type was written by no person: its point is a decimal one.
    decimal_comma = decimal_comma and type(value) is str
    if isinstance(written, str):
        if (found := written.strip().casefold()) in _TRUTHS:
            return _TRUTHS[found]
        written = _decimal_of(written, decimal_comma)
    elif not isinstance(written, Real | Decimal):
        return None
    try:
        read = math.nan if written is None else float(written)
    except OverflowError:  # It is beyond all that there are.
        return None
    return read if abs(read) < 1e30 else None


def _decimal_of(written: str, decimal_comma: bool) -> str | None:
    """Return a number as Python writes it; None if it is none."""
    if len(written) > LONGEST_NUMBER:
        return None
    found = _NUMBER.fullmatch(written.replace("\u2212", "-").replace("\u2019", "'"))
    if found is None:
        return None
    sign, inner, digits, power = found.groups()
    if _IN_GROUPS.fullmatch(digits):
        digits = re.sub("[^0-9.,]", "", digits).replace(",", ".")
    elif _EITHER.fullmatch(digits):
        digits = digits.replace("." if decimal_comma else ",", "").replace(",", ".")
    elif _BY_COMMAS.fullmatch(digits):
        digits = digits.replace(",", "")
    elif _DECIMAL_COMMA.fullmatch(digits):
        digits = digits.replace(".", "").replace(",", ".")
    elif not _DECIMAL_POINT.fullmatch(digits):
        return None
    return None if sign and inner else sign + inner + digits + power


def has_decimal_comma(values: Iterable[object]) -> bool:
    """Return whether of numbers that are written, more have a decimal comma than a point; `1,234` says neither."""
    commas = points = 0
    for value in values:
        digits = re.sub("[^0-9.,]", "", value) if isinstance(value, str) else ""
        if not _EITHER.fullmatch(digits):
            commas += bool(_DECIMAL_COMMA.fullmatch(digits))
            points += bool(("." in digits and _DECIMAL_POINT.fullmatch(digits)) or _BY_COMMAS.fullmatch(digits))
    return commas > points


def _plain(value: object) -> object:
    """Return a value as a string, a number or a date; None for what is missing, as NaN and NaT are.

    Dates and decimals of NumPy and Arrow are strings then; a cell of a sheet is what stands behind its text.

    Raises:
        ValueError: it is a list or an object.
    """
    if isinstance(value, str):
        return getattr(value, "value", value)
    if value is None:
        return None
    if hasattr(value, "__len__") and not isinstance(value, bytes):
        what = "an object" if isinstance(value, dict) else "a list"
        raise ValueError(f"holds {what}; write a string, a number or a date")
    try:
        missing = bool(value != value)
    except TypeError:  # The missing value of pandas is neither.
        missing = True
    if missing:
        return None
    return value if isinstance(value, Real | Decimal | date) else str(value)


def decimal(value: float) -> str:
    """Return a number as a cell: with the seven digits that 32 bits have, which know nothing next to 0."""
    return f"{value:.9g}" if abs(value) > LEAST_NUMBER else "0"


def moment(value: object, date_format: str | None = None) -> datetime | None:
    """Return a date with its time, without a time zone: as it is told where it was written; None for anything else.

    Args:
        value: a date, or a string.
        date_format: how most strings are written that are not as ISO 8601 says; others are understood where they cannot
            mean another day.

    Raises:
        ValueError: it is a list or an object.
    """
    value = _plain(value)
    if isinstance(value, datetime):
        return value.replace(tzinfo=None)
    if isinstance(value, date):
        return datetime(value.year, value.month, value.day)
    if not isinstance(value, str) or not (written := value.strip()):
        return None
    try:
        # Digits alone are numbers, though ISO 8601 has dates of such.
        return None if written.isdigit() else datetime.fromisoformat(written).replace(tzinfo=None)
    except ValueError:
        return _parsed(written, date_format)


def _parsed(written: str, date_format: str | None) -> datetime | None:
    found = _DATE_AND_TIME.fullmatch(written)
    if found is None:
        return None
    time = "" if found[1] == written else " %H:%M:%S" if found[2] else " %H:%M"
    for form in _forms_beside(date_format):
        try:
            return datetime.strptime(written, form + time)
        except ValueError:
            continue
    return None


@lru_cache
def _forms_beside(date_format: str | None) -> tuple[str, ...]:
    """Return how dates may be written in a column where most are written in one way."""
    alike = next((forms for forms in (_DAY_FIRST, _MONTH_FIRST) if date_format in forms), ())
    return tuple(dict.fromkeys([*([] if date_format is None else [date_format]), *_CLEAR_DATES, *alike]))


def cells_of(fields: Mapping[str, Any], columns: Sequence[Column]) -> list[str]:
    """Return the cells of a row: the numbers of all columns, then their categories.

    Args:
        fields: the row, by the names of its columns; one that it has not is missing.
        columns: those of the model.

    Raises:
        ValueError: one holds a list or an object; the text says which.
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
    """Return the columns whose values are no numbers or dates where there should be some.

    Args:
        fields: as of `cells_of`.
        columns: likewise.
        cells: what that returned.
    """
    with_numbers = (column.name for column in columns if column.numbers)
    empty = [name for name, cell in zip(with_numbers, cells, strict=False) if not cell and fields.get(name) is not None]
    return [name for name in empty if category(fields[name]) not in _NOTHING]


def silent(fields: Mapping[str, Any], columns: Sequence[Column]) -> Iterator[tuple[str, Silence]]:
    """Yield the columns that say nothing of a row, and why; arguments and errors are those of `cells_of`."""
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
    """Return of the cells of a row, which has `columns`, those of the columns in `kept`."""
    names = {column.name for column in kept}
    return [cell for cell, name in zip(cells, columns_of_cells(columns), strict=True) if name in names]


def pack(cells: Sequence[str], text: str) -> str:
    """Return a row as one string."""
    return BETWEEN_CELLS.join(cells) + END_OF_CELLS + text


def unpack(row: str, columns: Sequence[Column]) -> tuple[list[str], str]:
    """Return the cells and the text of a row that `pack` made; of a text alone all cells are missing.

    Raises:
        InputError: it has other cells than a model of these columns reads.
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
    """Return the name of the column of each cell of a row, in their order."""
    numbers = [column.name for column in columns for _ in range(column.numbers)]
    return numbers + [column.name for column in columns for _ in range(column.categories)]


def names_of_cells(columns: Sequence[Column]) -> list[str]:
    """Return what the cells of a row are called, in their order: `opened`, and `opened (weekday)`."""
    numbers = [column.name for column in columns if column.numbers]
    parts = [
        [f"{column.name} ({part})" for part in DATE_PARTS] if column.kind == "date" else [column.name]
        for column in columns
        if column.categories
    ]
    return numbers + [name for names in parts for name in names]


def named_cell(name: str, value: str) -> str:
    """Return what a cell is called among words: `product = lamp`, or `product is missing`."""
    return f"{name} = {value}" if value else f"{name} is missing"


def told(columns: Sequence[Column], cells: Sequence[str]) -> list[str]:
    """Return the cells of a row as a person reads them: days since 1970 as dates."""
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
    """Refuse columns that cannot stand beside each other, or beside those of text and label.

    Raises:
        InputError: one comes twice, has no UTF-8 form, or there are too many.
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
