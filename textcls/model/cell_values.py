"""Read the values of a column as categories, numbers or dates, however written; `columns.mjs` does the same."""

import math
import re
from collections.abc import Iterable
from datetime import date, datetime
from decimal import Decimal
from functools import lru_cache
from numbers import Real
from typing import Final
from unicodedata import normalize

from textcls.model.labels import unpaired_surrogate

# Longer categories are cut to this length.
CATEGORY_CHARACTERS: Final = 200
# Longer strings are not numbers.
LONGEST_NUMBER: Final = 100
# Numbers closer to 0 are 0.
LEAST_NUMBER: Final = 1e-30
# Currencies around numbers, and other such signs.
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
# Numbers as programs write them, with decimal points: most are like this.
_PLAIN_NUMBER: Final = re.compile(r"[+-]?\d+(?:\.\d+)?", re.ASCII)
# Digits in groups of three, separated by other signs than commas and points, which may also mark decimals.
_IN_GROUPS: Final = re.compile(r"\d{1,3}(?:[' \u00a0\u2009\u202f]\d{3})+(?:[.,]\d+)?")
_EITHER: Final = re.compile(r"[1-9]\d{0,2}[.,]\d{3}")
_BY_COMMAS: Final = re.compile(r"[1-9]\d{0,2}(?:,\d{3})+(?:\.\d+)?")
_DECIMAL_COMMA: Final = re.compile(r"\d+,\d+|[1-9]\d{0,2}(?:\.\d{3})+,\d+|[1-9]\d{0,2}(?:\.\d{3}){2,}")
_DECIMAL_POINT: Final = re.compile(r"\d+\.?\d*|\.\d+")
_WHOLE: Final = re.compile(r"\A([+-]?[0-9]+)\.0+\Z")
_TRUTHS: Final = {"true": 1.0, "false": 0.0}
# Formats of dates other than ISO 8601, tried in this order: those in which the month is clear, since with points the
# day comes first; then with the day before the month; then with the month before the day.
_CLEAR_DATES: Final = (
    "%d.%m.%Y", "%Y/%m/%d", "%d %b %Y", "%b %d, %Y", "%d %B %Y", "%B %d, %Y", "%d.%m.%y",
)  # fmt: skip
_DAY_FIRST: Final = ("%d/%m/%Y", "%d-%m-%Y", "%d/%m/%y")
_MONTH_FIRST: Final = ("%m/%d/%Y", "%m-%d-%Y", "%m/%d/%y")
DATE_FORMATS: Final = (*_CLEAR_DATES, *_DAY_FIRST, *_MONTH_FIRST)
_DATE_AND_TIME: Final = re.compile(r"(\S.{5,17}?)(?: \d\d?:\d\d(:\d\d)?)?")
# ISO 8601 as people and programs write it: without weeks, and with a space for the T. Digits alone are numbers.
_ISO: Final = re.compile(
    r"(\d{4})(-?)(\d\d)\2(\d\d)(?:[Tt _](\d\d)(?::?(\d\d)(?::?(\d\d)(?:[.,]\d+)?)?)?"
    r" ?(?:[Zz]|[+-](?:[01]\d|2[0-3])(?::?[0-5]\d){0,2})?)?"
)


def category(value: object) -> str:
    """Return a category as a cell: normalized in case, white space and Unicode composition, and whole numbers without a
    decimal point, which tables with missing values add.

    Raises:
        ValueError: it is a list or an object.
    """
    value = _plain(value)
    if value is None:
        return ""
    if isinstance(value, Real) and not isinstance(value, int) and float(value).is_integer():
        value = int(float(value))
    written = str(value)
    # A column has few different categories, each repeated in many rows, so cache them.
    return _category_of(written) if len(written) <= CATEGORY_CHARACTERS else _category_of.__wrapped__(written)


@lru_cache(maxsize=4096)
def _category_of(written: str) -> str:
    # `split` treats the separators of cells as white space.
    found = " ".join(normalize("NFC", written).casefold().split())[:CATEGORY_CHARACTERS]
    found = _WHOLE.sub(r"\1", found)
    return "" if unpaired_surrogate(found) else found


def number(value: object, *, decimal_comma: bool = False) -> float | None:
    """Return a number, also from a string such as `1,234.50`, `1.234,50`, `12,5`, `31 581,94 €` or `CHF 12.-`.

    Returns None for anything else.

    Args:
        value: a number, a truth value, or a string.
        decimal_comma: whether `1,234` is less than two, and `1.234` more than a thousand; else the reverse.

    Raises:
        ValueError: it is a list or an object.
    """
    written = _plain(value)
    # Values with a type of their own were not written by a person: their point is a decimal point.
    decimal_comma = decimal_comma and type(value) is str
    if isinstance(written, str):
        if (found := written.strip().casefold()) in _TRUTHS:
            return _TRUTHS[found]
        written = _decimal_of(written, decimal_comma)
    elif not isinstance(written, Real | Decimal):
        return None
    try:
        read = math.nan if written is None else float(written)
    except OverflowError:  # too large for a float
        return None
    return read if abs(read) < 1e30 else None


def _decimal_of(written: str, decimal_comma: bool) -> str | None:
    """Return a number as Python writes it; None if it is not a number."""
    if len(written) > LONGEST_NUMBER:
        return None
    if not decimal_comma and _PLAIN_NUMBER.fullmatch(written):
        return written
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
    """Return whether more written numbers have a decimal comma than a decimal point; `1,234` counts for neither."""
    commas = points = 0
    for value in values:
        if not isinstance(value, str) or ("," not in value and "." not in value):
            continue
        digits = re.sub("[^0-9.,]", "", value)
        if not _EITHER.fullmatch(digits):
            commas += bool(_DECIMAL_COMMA.fullmatch(digits))
            points += bool(("." in digits and _DECIMAL_POINT.fullmatch(digits)) or _BY_COMMAS.fullmatch(digits))
    return commas > points


def _plain(value: object) -> object:
    """Return a value as a string, a number or a date; None for missing values such as NaN and NaT.

    Dates and decimals of NumPy and Arrow become strings; a cell of a sheet becomes the value behind its text.

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
    except TypeError:  # from the missing value of pandas
        missing = True
    if missing:
        return None
    return value if isinstance(value, Real | Decimal | date) else str(value)


def decimal(value: float) -> str:
    """Return a number as a cell: with the seven digits of 32-bit floats, and 0 for numbers very close to it."""
    return f"{value:.9g}" if abs(value) > LEAST_NUMBER else "0"


def moment(value: object, date_format: str | None = None) -> datetime | None:
    """Return a date with its local time, as written and without a time zone; None for anything else.

    Args:
        value: a date, or a string.
        date_format: the format of most strings that are not ISO 8601; others are understood if they are unambiguous.

    Raises:
        ValueError: it is a list or an object.
    """
    value = _plain(value)
    if isinstance(value, datetime):
        return value.replace(tzinfo=None)
    if isinstance(value, date):
        return datetime(value.year, value.month, value.day)
    # Only English names of months are read, so strings with other characters are not dates.
    if not isinstance(value, str) or not value.isascii():
        return None
    written = " ".join(value.split())
    if iso := _ISO.fullmatch(written):
        year, month, day, hour, minute, second = (int(part or 0) for part in iso.group(1, 3, 4, 5, 6, 7))
        try:
            return None if written.isdigit() else datetime(year, month, day, hour, minute, second)
        except ValueError:
            return None
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
    """Return the formats that dates may also have in a column where most have this format."""
    alike = next((forms for forms in (_DAY_FIRST, _MONTH_FIRST) if date_format in forms), ())
    return tuple(dict.fromkeys([*([] if date_format is None else [date_format]), *_CLEAR_DATES, *alike]))
