"""What stands in a column as a category, a number or a date, however it is written; `columns.mjs` reads it alike."""

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

# What a longer category is cut to.
CATEGORY_CHARACTERS: Final = 200
# A longer string is not a number.
LONGEST_NUMBER: Final = 100
# A number nearer to 0 is 0.
LEAST_NUMBER: Final = 1e-30
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
# As programs write numbers, where points are decimal ones: most are so.
_PLAIN_NUMBER: Final = re.compile(r"[+-]?\d+(?:\.\d+)?", re.ASCII)
# Digits in groups of three, which commas and points part as well as decimals.
_IN_GROUPS: Final = re.compile(r"\d{1,3}(?:[' \u00a0\u2009\u202f]\d{3})+(?:[.,]\d+)?")
_EITHER: Final = re.compile(r"[1-9]\d{0,2}[.,]\d{3}")
_BY_COMMAS: Final = re.compile(r"[1-9]\d{0,2}(?:,\d{3})+(?:\.\d+)?")
_DECIMAL_COMMA: Final = re.compile(r"\d+,\d+|[1-9]\d{0,2}(?:\.\d{3})+,\d+|[1-9]\d{0,2}(?:\.\d{3}){2,}")
_DECIMAL_POINT: Final = re.compile(r"\d+\.?\d*|\.\d+")
_WHOLE: Final = re.compile(r"\A([+-]?[0-9]+)\.0+\Z")
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
# ISO 8601, as far as people and programs write it: no weeks, and a space for the T. Digits alone are numbers.
_ISO: Final = re.compile(
    r"(\d{4})(-?)(\d\d)\2(\d\d)(?:[Tt _](\d\d)(?::?(\d\d)(?::?(\d\d)(?:[.,]\d+)?)?)?"
    r" ?(?:[Zz]|[+-](?:[01]\d|2[0-3])(?::?[0-5]\d){0,2})?)?"
)


def category(value: object) -> str:
    """Return a category as a cell: upper and lower case are one, and so are spaces of any kind and number, signs of one
    part or more, and whole numbers with a decimal point and without, as tables with gaps have them.

    Raises:
        ValueError: it is a list or an object.
    """
    value = _plain(value)
    if value is None:
        return ""
    if isinstance(value, Real) and not isinstance(value, int) and float(value).is_integer():
        value = int(float(value))
    written = str(value)
    # A column has few different ones, each of which is written anew in many rows.
    return _category_of(written) if len(written) <= CATEGORY_CHARACTERS else _category_of.__wrapped__(written)


@lru_cache(maxsize=4096)
def _category_of(written: str) -> str:
    # Separators of cells are spaces for `split`.
    found = " ".join(normalize("NFC", written).casefold().split())[:CATEGORY_CHARACTERS]
    found = _WHOLE.sub(r"\1", found)
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
    """Return whether of numbers that are written, more have a decimal comma than a point; `1,234` says neither."""
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
    # Names of months are English, so that nothing else is a date.
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
    """Return how dates may be written in a column where most are written in one way."""
    alike = next((forms for forms in (_DAY_FIRST, _MONTH_FIRST) if date_format in forms), ())
    return tuple(dict.fromkeys([*([] if date_format is None else [date_format]), *_CLEAR_DATES, *alike]))
