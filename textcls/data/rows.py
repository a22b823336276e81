"""What the readers of all formats share: rows, unusable rows, and options of reading."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice, takewhile
from typing import Any, Final, Literal, NamedTuple, TypeVar

from textcls.data.columns import well_known
from textcls.errors import InputError

Format = Literal["csv", "tsv", "jsonl", "json", "parquet", "arrow", "xlsx", "fasttext", "lines"]
# Most characters of a row, or bytes of a Parquet value: they are in memory as a whole.
LONGEST: Final = 16_000_000
TOO_LONG: Final = f"more than {LONGEST:,} characters, the most that a row may have"
# Tables unpack to a few times their size, and hardly ever a hundred times, except small ones.
_SUSPICIOUS_RATIO, _SUSPICIOUS_BYTES = 100, 100_000_000
# Number of objects of a file that determine which keys there are, or fewer with so many characters.
OBJECTS: Final = 1000
OBJECTS_CHARACTERS: Final = 1_000_000
# How many bad rows are reported in full; all are counted.
SHOWN: Final = 5
# Characters of a value that are shown.
MOST_SHOWN: Final = 40
# From this many values on it is reported that a model knows few values of a column.
_LEAST_UNKNOWN: Final = 5
# Most rows above the names of the columns.
_MOST_TITLES: Final = 10

Numbered_T = TypeVar("Numbered_T", bound=tuple[int, object])


def unpacks_to_too_much(unpacked: int, packed: int) -> bool:
    """Return whether the sizes suggest a file made to exhaust memory when unpacked."""
    return unpacked > max(_SUSPICIOUS_BYTES, _SUSPICIOUS_RATIO * packed)


class Row(NamedTuple):
    """A row: its fields by column, and the line of the file on which it starts (in Parquet its number).

    `blank` is the number of empty rows before it, which readers do not return.
    """

    line: int
    fields: dict[str, Any]
    file: str = ""
    unit: str = "line"
    blank: int = 0

    @property
    def where(self) -> str:
        """The place of the row, for a person."""
        return f"{self.file}, {self.unit} {self.line}"


def require_known(row: Row, columns: Collection[str]) -> None:
    """Raise InputError if `row` has a field not in `columns`, as a line of JSON may: it would be lost."""
    extra = next((name for name in row.fields if name not in columns), None)
    if extra is not None:
        raise InputError(f"{row.where}: the first rows lack the field {extra!r}; write JSONL, which needs no columns.")


def not_read(column: str, rows: int, value: str) -> str:
    """Return a sentence saying that a column contains values that are not numbers or dates, such as `value`."""
    where = "1 row" if rows == 1 else f"{rows:,} rows"
    return f"In {where} the column {column!r} holds what is not understood and counts as missing, such as {value!r}."


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A cell that cannot be read, which counts as empty if its column is not needed.

    Attributes:
        what: what it is.
        advice: what to do, as a clause.
    """

    what: str
    advice: str

    def problem(self, column: str) -> str:
        """Return what is wrong, and what to do, if the column is needed."""
        return f"column {column!r} holds {self.what}; {self.advice}"

    def __str__(self) -> str:
        return ""


class Bad(NamedTuple):
    """A row that cannot be used, and why: a clause to follow its place, without a full stop."""

    where: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOptions:
    """How files are read; None leaves it to the file.

    Attributes:
        format: the format of the file, whatever its name says.
        encoding: Python's name of the encoding.
        delimiter: the character between the fields of CSV.
        quotes: whether quotes around a field of CSV are removed.
        header: whether the first record of CSV or Excel names the columns; else they are called 1, 2, 3.
        sheet: the sheet of an Excel file to read.
        stream: whether each row is wanted as soon as it arrives.
    """

    format: Format | None = None
    encoding: str | None = None
    delimiter: str | None = None
    quotes: bool = True
    header: bool = True
    sheet: str | None = None
    stream: bool = False


@dataclass(frozen=True, slots=True)
class Content:
    """What a reader found in a file.

    Attributes:
        format: the format of the file.
        columns: the names of the columns, in order; for objects the keys of the first ones.
        rows: the rows, read one at a time.
        notes: what was detected and is not the default, in sentences.
        schema: the pyarrow types of the columns, if the format has types.
    """

    format: Format
    columns: tuple[str, ...]
    rows: Iterator[Row | Bad]
    notes: tuple[str, ...] = ()
    schema: Any = None


def without_titles(rows: Iterator[Numbered_T], file: str) -> tuple[Iterator[Numbered_T], tuple[str, ...]]:
    """Return numbered rows of cells, starting with the names of the columns, and a note on titles above them: rows with
    one cell each, before the first two rows with several.
    """
    first = list(islice(rows, 1))
    # A single column of texts, with such a name, may contain the delimiter.
    if not (titles := _alone(first)) or well_known(titles, "text"):
        return chain(first, rows), ()
    first += islice(rows, _MOST_TITLES + 1)
    above = list(takewhile(lambda row: _width(row) <= 1, first))
    if any(width < 2 for width in [*map(_width, first), 0][len(above) : len(above) + 2]):
        return chain(first, rows), ()
    # After an empty name, that of an index, there is another name.
    if _place(first[0]) > _place(first[len(above)]):
        return chain(first, rows), ()
    shown = ", ".join(repr(title[:MOST_SHOWN]) for title in _alone(above))
    note = f"{file}: the lines above the column names are skipped: {shown}."
    return chain(first[len(above) :], rows), (note,)


def _width(row: tuple[int, object]) -> int:
    """Return the number of non-empty cells of a row; for an unreadable one a number too large for a title."""
    return sum(map(bool, row[1])) if isinstance(row[1], list) else 2


def _place(row: tuple[int, object]) -> int:
    """Return the number of the first non-empty cell of a row."""
    return list(map(bool, row[1])).index(True) if isinstance(row[1], list) else 0


def _alone(rows: Iterable[tuple[int, object]]) -> list[str]:
    """Return the only cell of each row."""
    return [str(next(filter(None, row[1]))) for row in rows if _width(row) == 1 and isinstance(row[1], list)]


def with_names(columns: Sequence[str], place: Callable[[int], object]) -> tuple[str, ...]:
    """Return the names of columns; one without a name is named by `place`, from its number."""
    found: list[str] = []
    for number, name in enumerate(columns, 1):
        made = f"column {place(number)}"
        while not name and made in columns:
            made += "_"
        found.append(name or made)
    return tuple(found)


def told_apart(columns: Sequence[str], file: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the names of columns, with repeated ones (as in exports of trackers) numbered, and notes on these."""
    times, notes, found = Counter(columns), [], list(columns)
    for name in (name for name, count in times.items() if name and count > 1):
        made = [f"{name} {number}" for number in range(1, times[name] + 1)]
        while not times.keys().isdisjoint(made):
            made = [f"{one}_" for one in made]
        notes.append(f"{file}: {times[name]} columns are called {name!r}; here they are {made[0]!r} and so on.")
        for new in made:
            found[found.index(name)] = new
    return tuple(found), tuple(notes)


def with_keys(rows: Iterator[Row | Bad], *, waits: bool) -> tuple[tuple[str, ...], Iterator[Row | Bad]]:
    """Return the keys of the first objects, and all rows: an object may lack keys that the next one has.

    Args:
        rows: the objects.
        waits: whether the second one may take long to arrive: then only the first is used.
    """
    keys: dict[str, None] = {}
    first: list[Row | Bad] = []
    left = OBJECTS_CHARACTERS
    for row in rows:
        first.append(row)
        if isinstance(row, Row):
            keys |= dict.fromkeys(row.fields)
            left -= sum(len(value) for value in row.fields.values() if isinstance(value, str))
            if waits or len(first) >= OBJECTS or left < 0:
                break
    return tuple(keys), chain(first, rows)


@dataclass(slots=True)
class BadRows:
    """The policy for unusable rows: the first one stops the work, or all are counted and left out.

    Attributes:
        skip: whether they are left out.
        say: called for each at once, if the end may never come.
        count: how many there were.
        shown: the first of them.
        strange: for columns with values that are not understood, how many, and the first one; their rows are usable.
        empty: how many rows have an empty text; these are usable, too.
        blank: how many empty rows there are between others, which are ignored.
        respelt: labels that were read as a different one, known to the model.
        cut: how many texts have more tokens than a model reads, by that number.
        categories: for columns of categories, how many rows have a value, how many of these a model does not know, and
            the first such value.
    """

    skip: bool = False
    say: Callable[[Bad], None] | None = None
    count: int = 0
    shown: list[Bad] = field(default_factory=list)
    strange: dict[str, tuple[int, str]] = field(default_factory=dict)
    empty: int = 0
    blank: int = 0
    respelt: dict[str, str] = field(default_factory=dict)
    cut: dict[int, int] = field(default_factory=dict)
    categories: dict[str, tuple[int, int, str]] = field(default_factory=dict)

    def add_strange(self, column: str, value: object) -> None:
        """Record a value that is not a number or date in a column of such."""
        count, first = self.strange.get(column, (0, str(value)[:MOST_SHOWN]))
        self.strange[column] = (count + 1, first)

    def add_category(self, column: str, value: str, *, known: bool) -> None:
        """Record a category, and whether a model knows it."""
        rows, unknown, first = self.categories.get(column, (0, 0, ""))
        self.categories[column] = (rows + 1, unknown + (not known), first or ("" if known else value[:MOST_SHOWN]))

    def add_cut(self, tokens: int) -> None:
        """Record a text of which only `tokens` tokens are read."""
        self.cut[tokens] = self.cut.get(tokens, 0) + 1

    def add(self, bad: Bad) -> None:
        """Record `bad`.

        Raises:
            InputError: rows are not to be skipped.
        """
        if not self.skip:
            raise InputError(f"{bad.where}: {bad.why}.")
        self.count += 1
        if self.say is not None:
            self.say(bad)
        if len(self.shown) < SHOWN:
            self.shown.append(bad)

    def summary(self) -> str | None:
        """Return what was skipped, in one line; None if nothing was."""
        if not self.count:
            return None
        return f"Skipped {self.count:,} row{'s' * (self.count > 1)} that cannot be used: {self.reasons()}."

    def odd_rows(self) -> list[str]:
        """Return sentences on texts that are empty or too long, on labels with other spellings, and on each column
        whose values are not all understood, or mostly unknown to a model.
        """
        empty = [f"{self.empty:,} {'text is' if self.empty == 1 else 'texts are'} empty."] if self.empty else []
        if self.blank:
            empty.append(f"{self.blank:,} empty row{' is' if self.blank == 1 else 's are'} passed over.")
        for tokens, count in self.cut.items():
            texts = "1 text is" if count == 1 else f"{count:,} texts are"
            empty.append(f"{texts} longer than the {tokens:,} tokens that the model reads; the rest is not read.")
        if self.respelt:
            pairs = [f"{old!r} as {new!r}" for old, new in self.respelt.items()]
            more = f" and {len(pairs) - SHOWN:,} more" if len(pairs) > SHOWN else ""
            empty.append(f"Labels are read as the model has them: {', '.join(pairs[:SHOWN])}{more}.")
        for name, (rows, unknown, first) in self.categories.items():
            if unknown >= _LEAST_UNKNOWN and 2 * unknown > rows:
                some = f"The {rows:,}" if unknown == rows else f"{unknown:,} of {rows:,}"
                empty.append(
                    f"{some} values of {name!r} are new to the model, such as {first!r}, and say nothing: were they "
                    "written otherwise in the training?"
                )
        return [*empty, *(not_read(name, rows, value) for name, (rows, value) in self.strange.items())]

    def reasons(self) -> str:
        """Return where the first bad rows are and why they are bad, and how many more there are."""
        first = "; ".join(f"{bad.where}: {bad.why.partition(';')[0]}" for bad in self.shown)
        return first if self.count == len(self.shown) else f"{first}; and {self.count - len(self.shown):,} more"
