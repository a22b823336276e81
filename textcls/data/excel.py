"""Excel spreadsheets (.xlsx), read and written row by row with openpyxl, which the extra `textcls[tables]` installs."""

import re
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from itertools import chain, zip_longest
from typing import IO, Any, Final, cast

from textcls._util import optional_dependencies
from textcls.data import plain
from textcls.data.delimited import cell
from textcls.data.rows import (
    Bad,
    Content,
    ReadOptions,
    Row,
    Unreadable,
    require_known,
    told_apart,
    unpacks_to_too_much,
    with_names,
    without_titles,
)
from textcls.data.source import Source, seekable
from textcls.errors import InputError
from textcls.model.labels import plain_day

# Limits of a sheet: https://support.microsoft.com, "Excel specifications and limits".
MOST_ROWS: Final = 1_048_576
LONGEST_CELL: Final = 32_767
# A sheet rounds larger whole numbers, so they are written as text.
MOST_WHOLE: Final = 2**53
# The texts of all cells are in memory at once, and a file of a few kilobytes may unpack to gigabytes.
MOST_BYTES: Final = 1_000_000_000
# Rows that determine the width of a column, and its largest width, in characters.
_MEASURED: Final = 100
_MOST_WIDTH: Final = 60
_GENERAL: Final = "General"
_NO_RESULT: Final = Unreadable(
    "a formula without its result", "open the file in a spreadsheet program and save it there"
)
# The number of a row of a sheet, and the texts of its cells.
_Numbered = tuple[int, list[Any]]
# How sheets write characters not allowed in XML, after the first "_"; surrogates stay as they are.
_ESCAPED: Final = "x[0-9A-Fa-f]{4}_"
_SURROGATES: Final = re.compile("[\ud800-\udfff]")
_READ: Final = re.compile("_x((?![dD][89a-fA-F])[0-9A-Fa-f]{4})_")
# The errors of openpyxl for damaged files.
_DAMAGE: Final = (
    KeyError, ValueError, TypeError, AttributeError, IndexError, SyntaxError, zipfile.BadZipFile,
    RuntimeError,  # of zipfile: a member that is said to be encrypted, or packed by a method that is not implemented
)  # fmt: skip


def _openpyxl() -> Any:
    with optional_dependencies.needed_by("Excel"):
        import openpyxl
    return openpyxl


def require() -> None:
    """Check before the work that Excel files can be written.

    Raises:
        MissingExtraError: openpyxl is not installed.
    """
    _openpyxl()


class Cell(str):
    """The text of a cell, with the value in the sheet, which is used when written to a sheet again.

    Attributes:
        value: a number, a truth value or a time.
        number_format: how the sheet shows it, such as `DD.MM.YYYY`.
    """

    value: object
    number_format: str

    @classmethod
    def of(cls, of: Any) -> str:
        """Return the text of a cell: whole numbers without a point, and an empty string for an empty cell."""
        value: object = of.value
        if value is None or isinstance(value, str):
            return _READ.sub(lambda sign: chr(int(sign[1], 16)), value) if value and "_x" in value else value or ""
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        found = cls(plain_day(value))
        found.value, found.number_format = value, _number_format(of)
        return found


def _number_format(of: Any) -> str:
    """Return the number format of a cell, as far as its styles are intact."""
    try:
        return str(of.number_format)
    except (IndexError, KeyError):
        return _GENERAL


def read(source: Source, options: ReadOptions) -> Content:
    """Read a sheet, whose first non-empty row names the columns; titles of one cell each may precede it.

    Raises:
        InputError: it is not a workbook or is damaged, it has no such sheet, or the sheet is empty.
        MissingExtraError: openpyxl is not installed.
    """
    openpyxl = _openpyxl()
    file = source.stack.enter_context(seekable(source))
    if not source.workbook:
        raise _damaged(source.name)
    _check_size(source.name, file)
    try:
        book = openpyxl.load_workbook(file, read_only=True, data_only=True)
    except _DAMAGE as error:
        raise _damaged(source.name) from error
    source.stack.callback(book.close)
    sheet, notes = _sheet(source.name, book, options.sheet)
    rows = _values(source.name, sheet, _formulas(source, file, sheet.title))
    if options.header:
        rows, passed_over = without_titles(rows, source.name)
        notes += passed_over
    number, header = next(rows, (0, []))
    if _NO_RESULT in header:
        raise InputError(f"{source.name}, row {number}: a name is {_NO_RESULT.what}; {_NO_RESULT.advice}.")
    if not header:
        others = [repr(one.title) for one in book.worksheets if one.title != sheet.title]
        advice = f"choose another with --sheet: {', '.join(others)}" if others else "it needs column names and a row"
        raise InputError(f"{source.name}, sheet {sheet.title!r} is empty; {advice}.")
    if not options.header:
        columns = tuple(str(i) for i in range(1, len(header) + 1))
        return Content("xlsx", columns, _rows(source.name, columns, chain([(number, header)], rows), number - 1), notes)
    names = with_names([name.strip() for name in header], openpyxl.utils.get_column_letter)
    names, more = told_apart(names, source.name)
    return Content("xlsx", tuple(names), _rows(source.name, names, rows, number), (*notes, *more))


def _damaged(name: str) -> InputError:
    return InputError(f"{name} is not an Excel file (.xlsx), or it is damaged; save its table again, or as CSV.")


def _check_size(name: str, file: IO[bytes]) -> None:
    with zipfile.ZipFile(file) as archive:
        size = sum(found.file_size for found in archive.infolist())
        packed = sum(found.compress_size for found in archive.infolist())
    file.seek(0)
    if size > MOST_BYTES or unpacks_to_too_much(size, packed):
        raise InputError(f"{name} unpacks to {size:,} bytes, which is too much; save its table as CSV.")


def _sheet(name: str, book: Any, wanted: str | None) -> tuple[Any, tuple[str, ...]]:
    """Return the requested sheet, or the first, and a note if there are several."""
    titles = [sheet.title for sheet in book.worksheets]
    if wanted is not None:
        if wanted not in titles:
            have = ", ".join(map(repr, titles))
            raise InputError(f"{name} has no sheet {wanted!r}; it has {have}.")
        return book[wanted], ()
    if not titles:
        raise InputError(f"{name} has no sheet with a table.")
    first = book.worksheets[0]
    several = f"{name} has {len(titles)} sheets; reading the first, {first.title!r}. Choose another with --sheet."
    return first, (several,) if len(titles) > 1 else ()


def _formulas(source: Source, file: IO[bytes], title: str) -> Any:
    """Return the sheet with formulas in place of their results; None if there are none in the file."""
    try:
        with zipfile.ZipFile(file) as archive:
            sheets = [found for found in archive.namelist() if found.startswith("xl/worksheets/")]
            if not any(_holds(archive, sheet, (b"<f>", b"<f ")) for sheet in sheets):
                return None
        book = _openpyxl().load_workbook(file, read_only=True)
        source.stack.callback(book.close)
        return book[title]
    except _DAMAGE as error:
        raise _damaged(source.name) from error


def _holds(archive: zipfile.ZipFile, member: str, marks: Sequence[bytes]) -> bool:
    """Return whether a member contains one of these marks."""
    before = b""
    with archive.open(member) as file:
        while part := file.read(1 << 20):
            if any(mark in before + part for mark in marks):
                return True
            before = part[-2:]
    return False


def _values(name: str, sheet: Any, formulas: Any) -> Iterator[_Numbered]:
    """Yield the number and texts of each non-empty row, up to its last non-empty cell.

    A formula without a result, as written by programs other than spreadsheets, is an unreadable cell: it would
    otherwise be taken for an empty one.
    """
    # The extent stated in a file is often wrong: then openpyxl would leave cells out.
    sheet.reset_dimensions()
    shown = sheet.iter_rows()
    if formulas is not None:
        formulas.reset_dimensions()
    written = iter(()) if formulas is None else formulas.iter_rows()
    try:
        for number, (row, formulas_of_row) in enumerate(zip_longest(shown, written, fillvalue=()), 1):
            found: list[Any] = [Cell.of(cell) for cell in row]
            for i, (formula, cell) in enumerate(zip(formulas_of_row, row, strict=False)):
                if cell.value is None and formula.data_type == "f":
                    found[i] = _NO_RESULT
            while found and found[-1] == "":
                found.pop()
            if found:
                yield number, found
    except _DAMAGE as error:
        raise _damaged(name) from error


def _rows(name: str, columns: Sequence[str], rows: Iterable[_Numbered], before: int) -> Iterator[Row | Bad]:
    """Yield the rows; `before` is the number of the row before them."""
    for number, cells in rows:
        blank, before = number - before - 1, number
        if len(cells) > len(columns):
            yield Bad(
                f"{name}, row {number}", f"{len(cells)} cells where there are {len(columns)} columns; name them all"
            )
            continue
        cells += [""] * (len(columns) - len(cells))
        yield Row(number, dict(zip(columns, cells, strict=True)), name, "row", blank)


class Writer:
    """Writes rows and answers as the only sheet of a workbook; numbers and times from a sheet keep type and format.

    Strings are written as strings, so nothing becomes a formula. Columns have the width of the content of the first
    rows, up to a limit; their names stay visible.
    """

    def __init__(self, file: IO[bytes], columns: Sequence[str], added: Sequence[str]) -> None:
        self.file, self.columns, self.added = file, columns, added
        openpyxl = _openpyxl()
        self.book = openpyxl.Workbook(write_only=True)
        self.sheet = self.book.create_sheet("answers")
        self.cell, self.into_archive = openpyxl.cell.WriteOnlyCell, openpyxl.writer.excel.ExcelWriter
        illegal = openpyxl.cell.cell.ILLEGAL_CHARACTERS_RE.pattern
        # Including the carriage return, which would be read as a line feed.
        self.written = re.compile(f"{illegal}|[\r\ufffe\uffff]|_(?={_ESCAPED})")
        self.rows = 0

    def write(self, rows: Sequence[Row], answers: Sequence[Mapping[str, Any]]) -> None:
        """Write `rows`, each with its answer.

        Raises:
            InputError: a value does not fit into a cell, or there are more rows than a sheet has.
        """
        if not self.rows:
            self._begin([{**row.fields, **answer} for row, answer in zip(rows[:_MEASURED], answers, strict=False)])
        for row, answer in zip(rows, answers, strict=True):
            require_known(row, self.columns)
            try:
                values = [*(_value(row.fields.get(name)) for name in self.columns)]
            except UnicodeDecodeError as error:
                raise plain.no_text(row) from error
            self._append(row.where, [*values, *(_value(answer[name]) for name in self.added)])

    def _begin(self, first: Sequence[Mapping[str, Any]]) -> None:
        """Write the widths and names of the columns: if written row by row, a sheet has the widths before all rows."""
        columns = [*self.columns, *self.added]
        for number, name in enumerate(columns, 1):
            widest = max([len(name), *(len(str(row.get(name) or "")) for row in first)])
            letter = _openpyxl().utils.get_column_letter(number)
            self.sheet.column_dimensions[letter].width = min(widest + 2, _MOST_WIDTH)
        self.sheet.freeze_panes = "A2"
        self._append("the names of the columns", columns)

    def _append(self, where: str, values: Sequence[object]) -> None:
        self.rows += 1
        if self.rows > MOST_ROWS:
            raise InputError(f"{where}: an Excel sheet ends at row {MOST_ROWS:,}; write CSV.")
        names = (*self.columns, *self.added)
        self.sheet.append([self._cell(where, *cell) for cell in zip(names, values, strict=True)])

    def _cell(self, where: str, column: str, value: object) -> Any:
        if isinstance(value, Cell):
            shown = self.cell(self.sheet, value.value)
            if value.number_format != _GENERAL:  # of dates openpyxl has one of its own
                shown.number_format = value.number_format
            return shown
        if not isinstance(value, str):
            return value
        if len(value) > LONGEST_CELL:
            raise InputError(
                f"{where}: what goes into column {column!r} has {len(value):,} characters, and an Excel cell holds at "
                f"most {LONGEST_CELL:,}; write CSV."
            )
        if _SURROGATES.search(value):
            raise InputError(f"{where}: {plain.NO_FORM} (column {column!r}).")
        # Write characters not allowed in XML like Excel itself, and escape text that looks like that.
        cell = self.cell(self.sheet, self.written.sub(lambda sign: f"_x{ord(sign[0]):04X}_", value))
        cell.data_type = "s"
        return cell

    def close(self) -> None:
        """Write the file."""
        if not self.rows:
            self._begin([])
        # Like `Workbook.save`, which leaves the archive open if the disk is full.
        with zipfile.ZipFile(cast(IO[bytes], _Stream(self.file)), "w", zipfile.ZIP_DEFLATED) as archive:
            self.into_archive(self.book, archive).save()

    def abandon(self) -> None:
        """Write nothing more: what has been written is discarded."""
        with suppress(_openpyxl().utils.exceptions.WorkbookAlreadySaved):
            self.sheet.close()


class _Stream:
    """A file in which an archive is written from start to end: one that is compressed cannot go back."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file

    def write(self, data: bytes, /) -> int:
        return self._file.write(data)

    def flush(self) -> None:
        self._file.flush()


def _value(value: object) -> object:
    """Return the value to write into a cell: numbers, truth values and times of a sheet as such, all else as text."""
    if isinstance(value, Cell):
        return str(value) if type(value.value) is int and abs(value.value) > MOST_WHOLE else value
    if type(value) is int and abs(value) > MOST_WHOLE:
        return str(value)
    if value is None or type(value) in (int, float, bool, str) or isinstance(value, str):
        return value
    if isinstance(value, timedelta) or (hasattr(value, "isoformat") and not hasattr(value, "as_py")):
        return value
    return cell(value)
