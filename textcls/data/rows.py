"""What the readers of all formats share: rows, rows that cannot be used, and how to read."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice, takewhile
from typing import Any, Final, Literal, NamedTuple, TypeVar

from textcls.data.columns import well_known
from textcls.errors import InputError

Format = Literal["csv", "tsv", "jsonl", "json", "parquet", "arrow", "xlsx", "fasttext", "lines"]
# Characters of a row, or bytes of a value of Parquet: what is read is in memory as a whole.
LONGEST: Final = 16_000_000
TOO_LONG: Final = f"more than {LONGEST:,} characters, the most that a row may have"
# What tables unpack to is a few times, and hardly ever a hundred times, what they take; small ones may.
_SUSPICIOUS_RATIO, _SUSPICIOUS_BYTES = 100, 100_000_000
# So many objects of a file say which keys there are, or fewer with so many characters.
OBJECTS: Final = 1000
OBJECTS_CHARACTERS: Final = 1_000_000
# How many bad rows are told in full; all are counted.
SHOWN: Final = 5
# Characters of a value that are shown.
MOST_SHOWN: Final = 40
# From so many values on it is told that a model knows few of a column.
_LEAST_UNKNOWN: Final = 5
# So many rows may stand above the names of the columns.
_MOST_TITLES: Final = 10

Numbered_T = TypeVar("Numbered_T", bound=tuple[int, object])


def unpacks_to_too_much(unpacked: int, packed: int) -> bool:
    """Whether so many bytes can only have been made to fill the memory of whoever unpacks them."""
    return unpacked > max(_SUSPICIOUS_BYTES, _SUSPICIOUS_RATIO * packed)


class Row(NamedTuple):
    """A row: its fields by column, and the line of the file on which it begins (of Parquet its number).

    `blank` says how many rows without anything stand before it, which no reader gives.
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
    """Raise InputError if `row` has a field that is none of `columns`, as a line of JSON may: it would be lost."""
    extra = next((name for name in row.fields if name not in columns), None)
    if extra is not None:
        raise InputError(f"{row.where}: the first rows lack the field {extra!r}; write JSONL, which needs no columns.")


def not_read(column: str, rows: int, value: str) -> str:
    """Say that a column holds values that are not numbers or dates, such as `value`."""
    where = "1 row" if rows == 1 else f"{rows:,} rows"
    return f"In {where} the column {column!r} holds what is not understood and counts as missing, such as {value!r}."


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A cell that cannot be read, empty to whom it does not matter.

    Attributes:
        what: it is.
        advice: what to do, as a clause.
    """

    what: str
    advice: str

    def problem(self, column: str) -> str:
        """Return what is wrong, and what to do, where the column is needed."""
        return f"column {column!r} holds {self.what}; {self.advice}"

    def __str__(self) -> str:
        return ""


class Bad(NamedTuple):
    """A row that cannot be used, and why: a clause that follows its place, without a full stop."""

    where: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOptions:
    """How files are read; None leaves it to the file.

    Attributes:
        format: the format of the file, whatever its name says.
        encoding: as Python names it.
        delimiter: the character between the fields of CSV.
        quotes: whether quotes around a field of CSV are taken off.
        header: whether the first record of CSV or Excel names the columns; else they are called 1, 2, 3.
        sheet: of Excel the one that is read.
        stream: whether each row is wanted as soon as it is there.
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
        format: what it is.
        columns: their names, in order; of objects the keys of the first ones.
        rows: the rows, read one at a time.
        notes: what was found out and is not the default, in sentences.
        schema: the types of the columns, where the format has such (pyarrow's).
    """

    format: Format
    columns: tuple[str, ...]
    rows: Iterator[Row | Bad]
    notes: tuple[str, ...] = ()
    schema: Any = None


def without_titles(rows: Iterator[Numbered_T], file: str) -> tuple[Iterator[Numbered_T], tuple[str, ...]]:
    """Return numbered rows of cells from the names of the columns on, and a note on what stands above these: rows with
    one cell each, above the first two rows with several.
    """
    first = list(islice(rows, 1))
    # Texts alone, in a column of that name, may hold the delimiter.
    if not (titles := _alone(first)) or well_known(titles, "text"):
        return chain(first, rows), ()
    first += islice(rows, _MOST_TITLES + 1)
    above = list(takewhile(lambda row: _width(row) <= 1, first))
    if any(width < 2 for width in [*map(_width, first), 0][len(above) : len(above) + 2]):
        return chain(first, rows), ()
    # Behind an empty name, which is that of an index, stands a name.
    if _place(first[0]) > _place(first[len(above)]):
        return chain(first, rows), ()
    shown = ", ".join(repr(title[:MOST_SHOWN]) for title in _alone(above))
    note = f"{file}: what stands above the names of the columns is passed over: {shown}."
    return chain(first[len(above) :], rows), (note,)


def _width(row: tuple[int, object]) -> int:
    """Return how many cells of a row hold something; of one that cannot be read, as many as make no title."""
    return sum(map(bool, row[1])) if isinstance(row[1], list) else 2


def _place(row: tuple[int, object]) -> int:
    """Return the number of the first cell of a row that holds something."""
    return list(map(bool, row[1])).index(True) if isinstance(row[1], list) else 0


def _alone(rows: Iterable[tuple[int, object]]) -> list[str]:
    """Return what stands alone in a row each."""
    return [str(next(filter(None, row[1]))) for row in rows if _width(row) == 1 and isinstance(row[1], list)]


def with_names(columns: Sequence[str], place: Callable[[int], object]) -> tuple[str, ...]:
    """Return the names of columns, where one without is called after its place, which `place` tells of its number."""
    found: list[str] = []
    for number, name in enumerate(columns, 1):
        made = f"column {place(number)}"
        while not name and made in columns:
            made += "_"
        found.append(name or made)
    return tuple(found)


def told_apart(columns: Sequence[str], file: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the names of columns, those that share one numbered, and notes on these: exports of trackers have some."""
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
    """Return the keys that the first objects have, and all rows: one may lack what the next one has.

    Args:
        rows: the objects.
        waits: whether the second may be long in coming: then the first alone tells.
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
    """The one policy for rows that cannot be used: the first ends the work, or all are counted and left out.

    Attributes:
        skip: whether they are left out.
        say: told of each at once, where the end may never come.
        count: how many there were.
        shown: the first of them.
        strange: of columns that hold what is not understood, how often, and the first such value; their rows can be
            used.
        empty: how many rows have a text without a sign; these can be used, too.
        blank: how many rows between others hold nothing, and are passed over.
        respelt: labels that were read as another one, which a model knows.
        cut: how many texts have more tokens than a model reads, by how many these are.
        categories: of columns of categories how many rows have one, how many of these a model does not know, and the
            first such value.
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
        """Take note of a value that is not a number or date where there should be one."""
        count, first = self.strange.get(column, (0, str(value)[:MOST_SHOWN]))
        self.strange[column] = (count + 1, first)

    def add_category(self, column: str, value: str, *, known: bool) -> None:
        """Take note of a category, and of whether a model knows it."""
        rows, unknown, first = self.categories.get(column, (0, 0, ""))
        self.categories[column] = (rows + 1, unknown + (not known), first or ("" if known else value[:MOST_SHOWN]))

    def add_cut(self, tokens: int) -> None:
        """Take note of a text of which only so many tokens are read."""
        self.cut[tokens] = self.cut.get(tokens, 0) + 1

    def add(self, bad: Bad) -> None:
        """Take note of `bad`.

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
        """Return a sentence on texts that are empty or too long, on labels that are spelt otherwise, and on each column
        whose values are not all understood, or most of which a model does not know.
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
        """Return where the first bad rows are and why they are none, and how many there are besides."""
        first = "; ".join(f"{bad.where}: {bad.why.partition(';')[0]}" for bad in self.shown)
        return first if self.count == len(self.shown) else f"{first}; and {self.count - len(self.shown):,} more"
