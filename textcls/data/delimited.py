"""CSV and TSV: usually with a header, and with quotes around fields that contain the delimiter or line breaks."""

import codecs
import csv
import io
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, dropwhile, islice
from typing import IO, Any, Final

from textcls._util.formulas import without_formula
from textcls.data import decoding, plain
from textcls.data.rows import (
    LONGEST,
    TOO_LONG,
    Bad,
    Content,
    Format,
    ReadOptions,
    Row,
    require_known,
    told_apart,
    with_names,
    without_titles,
)
from textcls.data.source import PEEK, Source
from textcls.errors import ConfigError, InputError

DELIMITERS: Final = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
_SAID: Final = re.compile('sep=([^"\r\n])\r?\n', re.IGNORECASE)
# A quote after a space that opens a field, as people write lists: "a text", "a label".
_SPACED_QUOTE: Final = '{0} +"(?!")'
_SPACED_FIELD: Final = '{0} +"(?:[^"]|"")*"(?={0}|\r?\n|$)'
# How many records must have the same number of fields.
LOOKED_AT: Final = 20
# A record and the line on which it starts.
_Record = tuple[int, list[str] | Bad]

# By default the csv module refuses fields over 128 KiB, but a text may be a megabyte. Rows have their own limit.
csv.field_size_limit(2 * LONGEST)


def read(source: Source, options: ReadOptions, default: str = ",") -> Content:
    """Read CSV, with `default` as the delimiter unless the first rows or `options` determine another one.

    Raises:
        InputError: there is no first record, or a quote is never closed.
    """
    encoding, notes = decoding.encoding_of(source, options)
    beginning = decoding.first_text(source, encoding)
    # The line that Excel writes before the table, and reads.
    said = _SAID.match(beginning)
    delimiter = options.delimiter
    if delimiter is None:
        delimiter = said[1] if said is not None else detect(source, encoding, default, quotes=options.quotes)
        if delimiter != default:
            notes += (f"{source.name} is read with {DELIMITERS.get(delimiter, repr(delimiter))} as delimiters.",)
    lines = decoding.Lines(decoding.open_text(source, encoding, ""), universal=True)
    dialect = _dialect(_checked(delimiter), options.quotes)
    if options.quotes and not delimiter.isspace():
        quotes, fields = (
            len(re.findall(pattern.format(re.escape(delimiter)), beginning))
            for pattern in (_SPACED_QUOTE, _SPACED_FIELD)
        )
        dialect["skipinitialspace"] = 0 < quotes == fields
    reader = _Reader(source.name, encoding, lines, dialect)
    records: Iterator[_Record] = dropwhile(
        lambda record: record[1] == [], islice(_records(reader), said is not None, None)
    )
    head = list(islice(records, 1))
    records = chain(head, records)
    # A line with a single field is a name or a text; and when streaming, there may be only one row yet.
    if options.header and not options.stream and any(len(fields) > 1 for _, fields in head):
        records, passed_over = without_titles(records, source.name)
        notes += passed_over
    line, header = next(records, (0, []))
    if isinstance(header, Bad):
        raise InputError(f"{header.where}: {header.why}.")
    if not header:
        raise InputError(f"{source.name} is empty; it needs a header with column names and at least one row.")
    kind: Format = "tsv" if default == "\t" else "csv"
    if not options.header:
        columns = tuple(str(number) for number in range(1, len(header) + 1))
        if len(columns) > 1 and tuple(header) == columns:  # these are names after all
            notes = (*notes, f"{source.name}: its first row, {', '.join(columns)}, is read as the names of columns.")
            return Content(kind, columns, _rows(records, source.name, columns, header), notes)
        first = Row(line, dict(zip(columns, header, strict=True)), source.name)
        return Content(kind, columns, chain([first], _rows(records, source.name, columns)), notes)
    columns = tuple(name.strip() for name in header)
    # A single empty name is that of a data frame's index.
    if columns.count("") > 1:
        columns = with_names(columns, str)
    columns, more = told_apart(columns, source.name)
    return Content(kind, columns, _rows(records, source.name, columns, header), (*notes, *more))


def _checked(delimiter: str) -> str:
    if len(delimiter) != 1 or delimiter in '"\r\n':
        raise ConfigError(f"A delimiter is one character, not {delimiter!r}.")
    return delimiter


def _dialect(delimiter: str, quotes: bool) -> dict[str, Any]:
    return {"delimiter": delimiter, "quoting": csv.QUOTE_MINIMAL if quotes else csv.QUOTE_NONE}


class _TooLongError(Exception):
    """A row has more characters than are read."""


class _Reader:
    """The csv module's reader, whose errors become `Bad` rows; a quote that is never closed is the end."""

    def __init__(self, name: str, encoding: str, lines: decoding.Lines, dialect: dict[str, Any]) -> None:
        self.name, self.encoding, self.lines = name, encoding, lines
        self.characters = 0
        # This object supplies the lines: unlike a generator, it can continue after an error.
        self.reader = csv.reader(self, strict=True, **dialect)

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        line = next(self.lines)
        self.characters += LONGEST + 1 if line is None else len(line)
        if line is None or self.characters > LONGEST:
            raise _TooLongError
        return line

    @property
    def line(self) -> int:
        return self.lines.number

    def bad(self, why: str) -> Bad:
        return Bad(f"{self.name}, line {self.line}", why)

    def next(self) -> list[str] | Bad | None:
        start = self.line + 1
        self.characters = 0
        try:
            fields: list[str] = next(self.reader)
        except StopIteration:
            return None
        except _TooLongError as error:
            if self.line == start:
                return self.bad(f"{TOO_LONG}; shorten it or leave it out")
            # As below: the end of the row cannot be determined.
            raise InputError(
                f"{self.name}, line {start}: {TOO_LONG}; perhaps a quote in this row is never closed; if quotes "
                "are ordinary characters, add --no-quotes."
            ) from error
        except csv.Error as error:
            # Everything after the open quote is lost: that is not just a row to skip.
            if "unexpected end" in str(error):
                raise InputError(
                    f"{self.name}, line {start}: a quote in this row is never closed; check the quotes there, or "
                    "add --no-quotes if they are ordinary characters."
                ) from error
            return self.bad(f"{error}; check the quotes there, or add --no-quotes if they are ordinary characters")
        why = next(filter(None, (decoding.undecodable(field, self.encoding) for field in fields)), None)
        return fields if why is None else self.bad(why)


def _is_blank(fields: list[str]) -> bool:
    """Return whether a row of a table with several columns is empty: only spaces or delimiters."""
    return not (fields[0].strip() if len(fields) == 1 else any(fields))


def _records(reader: _Reader) -> Iterator[_Record]:
    line = reader.line + 1
    while (fields := reader.next()) is not None:
        yield line, fields
        line = reader.line + 1


def _rows(
    records: Iterable[_Record], name: str, columns: tuple[str, ...], header: list[str] | None = None
) -> Iterator[Row | Bad]:
    first, blank = "first row" if header is None else "header", 0
    for line, fields in records:
        if isinstance(fields, Bad):
            yield fields
        elif not fields or (len(columns) > 1 and _is_blank(fields)):
            blank += 1
        elif len(columns) > 1 and [fields[0].removeprefix("\ufeff"), *fields[1:]] == header:
            yield Bad(f"{name}, line {line}", "the header again, as in files that were joined; leave the line out")
        elif len(fields) != len(columns):
            yield Bad(
                f"{name}, line {line}",
                f"{len(fields)} field{'s' * (len(fields) != 1)} where the {first} has {len(columns)}; "
                'put fields that hold delimiters or line breaks in double quotes, and write a quote inside them as ""',
            )
        else:
            yield Row(line, dict(zip(columns, fields, strict=True)), name, blank=blank)
            blank = 0


def detect(source: Source, encoding: str, default: str, *, quotes: bool = True) -> str:
    """Return the delimiter with which the first records have the same number of fields, and more than one.

    If there is none, it is a delimiter that occurs in the header; `default` is tried first each time.
    """
    cut = len(source.peek()) >= PEEK
    widths = _widths(decoding.first_text(source, encoding), default, quotes, cut)
    several = [d for d, found in widths.items() if found and found[0] > 1]
    return next((d for d in several if len(set(widths[d])) == 1), several[0] if several else default)


def apparent_columns(source: Source, encoding: str) -> tuple[str, ...]:
    """Return the first record if the first records have the same number of fields, and more than one; else nothing."""
    text = decoding.first_text(source, encoding)
    for delimiter, found in _widths(text, ",", True, len(source.peek()) >= PEEK).items():
        if len(set(found)) == 1 and found[0] > 1:
            return tuple(next(csv.reader(io.StringIO(text, newline=""), **_dialect(delimiter, True))))
    return ()


def _widths(text: str, default: str, quotes: bool, cut: bool) -> dict[str, list[int]]:
    """Return the number of fields of each of the first records, by delimiter, `default` first."""
    found = {}
    for delimiter in sorted(DELIMITERS, key=lambda d: d != default):
        records = csv.reader(io.StringIO(text, newline=""), **_dialect(delimiter, quotes))
        sizes = [len(fields) for fields in islice(records, LOOKED_AT) if fields]
        # The last record of a part of a file may continue after it.
        found[delimiter] = sizes[:-1] if cut and 1 < len(sizes) < LOOKED_AT else sizes
    return found


class Writer:
    """Writes rows and answers as CSV or TSV; values that are not strings are written as in JSON.

    Args:
        file: takes the bytes.
        columns: the columns of the rows.
        added: the columns of the answers.
        delimiter: between the fields.
        encoding: the encoding to write.
        escape_formulas: whether to prevent spreadsheets from reading fields as formulas (`without_formula`).
    """

    def __init__(
        self,
        file: IO[bytes],
        columns: Sequence[str],
        added: Sequence[str],
        delimiter: str = ",",
        *,
        encoding: str = "utf-8",
        escape_formulas: bool = False,
    ) -> None:
        self.file, self.columns, self.added, self.delimiter = file, frozenset(columns), added, delimiter
        self.order = columns
        self.escaped = without_formula if escape_formulas else str
        # One encoder for the whole file: some encodings start with a mark.
        self.encoder = codecs.getincrementalencoder(encoding)()
        self.encoding = encoding
        self._write("", [[self.escaped(name) for name in (*columns, *added)]])

    def write(self, rows: Sequence[Row], answers: Sequence[Mapping[str, Any]]) -> None:
        """Write `rows`, each with its answer.

        Raises:
            InputError: a row has a field that is not a column, or bytes or text that are not valid UTF-8.
        """
        for row in rows:
            require_known(row, self.columns)
        records = [self._record(row, answer) for row, answer in zip(rows, answers, strict=True)]
        self._write(rows[0].where if rows else "", records)

    def _record(self, row: Row, answer: Mapping[str, Any]) -> list[str]:
        try:
            fields = [*(row.fields.get(name) for name in self.order), *(answer[name] for name in self.added)]
            return [self.escaped(value) if isinstance(value, str) else cell(value) for value in fields]
        except UnicodeDecodeError as error:
            raise plain.no_text(row) from error

    def _write(self, where: str, records: Sequence[Sequence[str]]) -> None:
        lines = _Lines()
        csv.writer(lines, delimiter=self.delimiter, lineterminator=_Lines.END).writerows(records)
        try:
            self.file.write(self.encoder.encode("".join(lines.found)))
        except UnicodeEncodeError as error:
            raise InputError(f"{where} or soon after: {self._no_form(error.object[error.start])}.") from error

    def _no_form(self, character: str) -> str:
        if "\ud800" <= character <= "\udfff":
            return plain.NO_FORM
        return f"{character!r} cannot be written in {self.encoding}; write UTF-8, or utf-8-sig for Excel"

    def close(self) -> None:
        """Do nothing: everything has been written."""

    def abandon(self) -> None:
        """Do nothing: there are no resources to release."""


class _Lines:
    """Collects records that end in LF.

    The csv module quotes only those line-end characters that are in its own terminator, so that is CR LF.
    """

    END: Final = "\r\n"

    def __init__(self) -> None:
        self.found: list[str] = []

    def write(self, record: str) -> None:
        self.found.append(record.removesuffix(self.END) + "\n")


def cell(value: object) -> str:
    """Return `value` as a field of CSV.

    Raises:
        UnicodeDecodeError: it is or contains bytes that are not UTF-8.
    """
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    if type(value) in (int, float):
        return repr(value)
    if isinstance(value, bool | list | dict):
        return json.dumps(value, ensure_ascii=False, default=plain.text_of)
    return plain.text_of(value)
