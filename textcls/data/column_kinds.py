"""How columns beside the text are read: as categories, numbers or dates; a kind that is not given is detected."""

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any, Final, NamedTuple

from textcls.data.rows import MOST_SHOWN, not_read
from textcls.errors import ConfigError, InputError
from textcls.model.cell_values import DATE_FORMATS, category, has_decimal_comma, moment, number
from textcls.model.columns import KINDS, Column, Kind, cells_of, require_columns, silent

# A column is read as numbers, or as dates, if at least this share of its values are.
MOSTLY: Final = 0.8
# Fewer distinct numbers than this are categories, unless the column is declared as numbers.
LEAST_NUMBERS: Final = 10
# Values that a model file lists per category column, the most frequent first.
TOLD_VALUES: Final = 1000

# Asks for all columns that are not taken yet.
EVERY_COLUMN: Final = "*"


def parse(given: str) -> tuple[str, Kind | None]:
    """Return the name of a column, and its kind if one is given: `price:number`.

    Raises:
        ConfigError: there is no name.
    """
    name, _, kind = given.rpartition(":")
    for known in KINDS:
        if name and kind == known:
            return name, known
    if not given:
        raise ConfigError("A column beside the text needs a name, such as price or price:number.")
    return given, None


def wanted_kinds(given: Sequence[str]) -> dict[str, Kind | None]:
    """Return the columns that are asked for, each with its kind, or None if that is not given.

    Raises:
        ConfigError: this is not a list of names; or a column has no name, or two kinds.
    """
    if isinstance(given, str) or not all(isinstance(one, str) for one in given):
        raise ConfigError("columns must be a list of names, such as ['product', 'price:number'].")
    found: dict[str, Kind | None] = {}
    for name, kind in map(parse, given):
        if name == EVERY_COLUMN:
            raise ConfigError("'*' stands for all other columns of a file on the command line; here, name the columns.")
        if found.get(name, kind) != kind:
            raise ConfigError(f"The column {name!r} is asked for as two kinds; name one.")
        found[name] = kind
    return found


def columns_of(
    wanted: Mapping[str, Kind | None], values: Mapping[str, Sequence[Any]], others: Sequence[str]
) -> tuple[Column, ...]:
    """Return how columns are read.

    Args:
        wanted: their names, each with its kind, or None to detect it.
        values: the values of each column, one per row.
        others: the text and label columns, which must not be among them.

    Raises:
        InputError: a column declared as dates or numbers contains none; or as `require_columns` says.
    """
    columns = tuple(_column(name, kind, values[name]) for name, kind in wanted.items())
    require_columns(columns, others)
    return columns


def cells_of_rows(columns: Sequence[Column], values: Mapping[str, Sequence[Any]]) -> list[list[str]]:
    """Return the cells of all rows; rows share the strings of categories.

    Raises:
        InputError: a cell contains a list or an object.
    """
    names = [column.name for column in columns]
    found = []
    for i, row in enumerate(zip(*(values[name] for name in names), strict=True)):
        try:
            found.append(cells_of(dict(zip(names, row, strict=True)), columns))
        except ValueError as error:
            raise InputError(f"Row {i + 1}: {error}.") from error
    return found


class Silences(NamedTuple):
    """How many values of a column cannot be used.

    Attributes:
        missing: number of rows without a value.
        strange: number of values that are not numbers or dates in a column read as such.
        first: the first of these.
    """

    missing: int
    strange: int
    first: str

    def sentence(self, column: str) -> str | None:
        """Return a sentence that says that values are not understood; None if all are."""
        return not_read(column, self.strange, self.first) if self.strange else None


def silences(column: Column, values: Sequence[Any]) -> Silences:
    """Count the values of a column that cannot be used."""
    said = [(reason, value) for value in values for _, reason in silent({column.name: value}, [column])]
    strange = [str(value)[:MOST_SHOWN] for reason, value in said if reason == "not understood"]
    return Silences(sum(reason == "missing" for reason, _ in said), len(strange), strange[0] if strange else "")


def nearly_numbers(column: Column, values: Sequence[Any]) -> str | None:
    """Return a sentence if at least half of a category's values are numbers, with many distinct ones; else None."""
    known = [value for value in values if category(value)]
    numbers = [found for value in known if (found := number(value)) is not None]
    if column.kind != "category" or 2 * len(numbers) < len(known) or len(set(numbers)) < LEAST_NUMBERS:
        return None
    share = f"{len(numbers) / len(known):.0%}"
    return f"{share} of its values are numbers: {column.name}:number reads them as such, and the others as missing."


def described(column: Column) -> str:
    """Describe in words what a column is read as."""
    if column.kind == "category":
        more = "+" if len(column.values) >= TOLD_VALUES else ""
        values = (
            f"{len(column.values):,}{more} value{'s' * (len(column.values) != 1)}"
            if column.values
            else "no value twice"
        )
        return f"{column.name} (category, {values})"
    form = "" if column.date_format is None else f" written as {datetime(2024, 12, 31).strftime(column.date_format)}"
    return f"{column.name} ({column.kind}{form}{' with decimal commas' if column.decimal_comma else ''})"


def _column(name: str, kind: Kind | None, values: Sequence[Any]) -> Column:
    known = []
    for i, value in enumerate(values, 1):
        try:
            known += [value] if category(value) else []
        except ValueError as error:
            raise InputError(f"Row {i}: the column {name!r} {error}.") from error
    return _read_as(name, kind or _kind(known), known)


def _read_as(name: str, kind: Kind, known: Sequence[Any]) -> Column:
    """Return how a column of these values, none of which is missing, is read as `kind`.

    Raises:
        InputError: no value is of that kind.
    """
    match kind:
        case "category":
            counts = Counter(map(category, known))
            told = (value for value, rows in counts.most_common(TOLD_VALUES) if rows > 1)
            return Column(name, kind, tuple(told))
        case "number":
            if known and not any(number(value) is not None for value in known):
                raise InputError(f"The column {name!r} holds no number; the first value is {str(known[0])[:40]!r}.")
            return Column(name, kind, decimal_comma=has_decimal_comma(known))
        case "date":
            date_format = _date_format(known)
            if known and not any(moment(value, date_format) for value in known):
                raise InputError(
                    f"The column {name!r} holds no date that is understood; the first value is "
                    f"{str(known[0])[:40]!r}. Write dates as 2024-05-31."
                )
            return Column(name, kind, date_format=date_format)


def _kind(values: Sequence[Any]) -> Kind:
    enough = MOSTLY * len(values)
    if not values:
        return "category"
    numbers = [found for value in values if (found := number(value)) is not None]
    if len(numbers) >= enough:
        return "number" if len(set(numbers)) >= LEAST_NUMBERS else "category"
    return "date" if _dates(values, _date_format(values)) >= enough else "category"


def _date_format(values: Sequence[Any]) -> str | None:
    """Return the format in which most of the dates are written; None for ISO 8601."""
    return max((None, *DATE_FORMATS), key=partial(_dates, values))


def _dates(values: Sequence[Any], date_format: str | None) -> int:
    # Many rows share few distinct values: parse each once.
    written = Counter(value for value in values if isinstance(value, str))
    others = sum(moment(value) is not None for value in values if not isinstance(value, str))
    return others + sum(rows for value, rows in written.items() if moment(value, date_format) is not None)
