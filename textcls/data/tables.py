"""An open table, of one file or several in sequence: its columns, and its rows, read one at a time."""

from collections import Counter
from collections.abc import Container, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, NamedTuple

from textcls.data import folders, formats, storage
from textcls.data.columns import Kind, choose, numbered
from textcls.data.memory import MemoryTable, Readable
from textcls.data.patterns import matching
from textcls.data.rows import Bad, BadRows, Content, Format, ReadOptions, Row, Unreadable
from textcls.data.source import STANDARD, open_source, reading
from textcls.data.storage import RemoteFile
from textcls.errors import InputError
from textcls.model import text_columns, tokenizer
from textcls.model.columns import Column, categories_of, not_understood, unpack
from textcls.model.labels import written

# With more files than this, only one is open at a time, after a first look at each.
MOST_OPEN: Final = 100


@dataclass(frozen=True, slots=True)
class Part:
    """One file of a table: its name for a person, and its columns."""

    file: str
    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Table:
    """An open table.

    Attributes:
        columns: the columns of the first file.
        rows: the usable rows of all files; the others are recorded in `bad`.
        parts: the files.
        format: the format of the first file.
        notes: what was detected in the files and is not the default, in sentences.
        bad: the unusable rows.
        schema: the types of the columns, if the first file has such.
    """

    columns: tuple[str, ...]
    rows: Iterator[Row]
    parts: tuple[Part, ...]
    format: Format
    notes: list[str]
    bad: BadRows
    schema: Any = None

    def choose(self, wanted: Sequence[str], kind: Kind, *, guess: bool = False) -> tuple[str, ...]:
        """Return the columns of the `kind`, which every file must have; what was guessed becomes a note.

        Raises:
            InputError: a file lacks `wanted`, and `guess` is not set or does not help.
        """
        first, *others = self.parts
        found, notes = choose(first.file, first.columns, wanted, kind, guess=guess)
        self.notes.extend(notes)
        for part in others:
            choose(part.file, part.columns, found, kind, guess=False)
        return found

    def with_lists(self, name: str) -> "Table":
        """Return the table with the columns called `name`, if a file has several, as one column of lists.

        Trackers export the labels of an issue so; the columns were numbered when the file was opened.
        """
        joined = {column for part in self.parts for column in numbered(name, part.columns)}
        if name in self.columns or not joined:
            return self
        kept = [dict.fromkeys(name if column in joined else column for column in part.columns) for part in self.parts]
        parts = tuple(Part(part.file, tuple(columns)) for part, columns in zip(self.parts, kept, strict=True))
        rows = (_with_list(row, name, joined) for row in self.rows)
        self.notes.append(f"{len(joined)} columns are read as one, {name!r}: the labels of a row.")
        return replace(self, columns=parts[0].columns, rows=rows, parts=parts)

    def note_lacking(self, beside: Sequence[Column], others: Sequence[str]) -> None:
        """Note which columns beside the text a file lacks; with JSON objects, which its first ones lack.

        Args:
            beside: the columns beside the text that the model reads.
            others: the columns of the text and of the label.

        Raises:
            InputError: the file has one with a similar name.
        """
        for part in self.parts:
            lacking = [column.name for column in beside if column.name not in part.columns]
            if not lacking:
                continue
            known = [*others, *(column.name for column in beside)]
            if wrong := text_columns.misspelt_in_file(part.file, part.columns, known, lacking):
                raise InputError(wrong)
            names = text_columns.and_(lacking)
            if self.format in ("jsonl", "json"):
                said = f"{part.file} begins with rows without {names}, which the model reads beside the text: missing."
            else:
                said = f"{part.file} has no column {names}, which the model reads beside the text: missing in each row."
            self.notes.append(said)

    def require_same_columns(self) -> None:
        """Raise InputError unless all files have the same columns, in any order."""
        first, *others = self.parts
        for part in others:
            odd = sorted(set(part.columns) ^ set(first.columns))
            if odd:
                have, lack = (part, first) if odd[0] in part.columns else (first, part)
                raise InputError(
                    f"{lack.file} has no column {odd[0]!r}, which {have.file} has; files answered together need "
                    "the same columns."
                )


@contextmanager
def open_table(path: Readable, options: ReadOptions | None = None, bad: BadRows | None = None) -> Iterator[Table]:
    """Open the file at `path`, like `open_tables` with several."""
    with open_tables([path], options, bad) as table:
        yield table


@contextmanager
def open_tables(
    paths: Sequence[Readable], options: ReadOptions | None = None, bad: BadRows | None = None
) -> Iterator[Table]:
    """Open the files at `paths`, where `-` is standard input, and a folder means its files or class folders.

    A pattern such as part-*.parquet means the files that it matches.

    Raises:
        InputError: a file does not exist or cannot be read; also while rows are read, if `bad` skips none.
        ConfigError: an option is not valid, or cannot be used with the format.
        MissingExtraError: the format needs a package that is not installed.
    """
    options, bad = options or ReadOptions(), bad or BadRows()
    every = [one for path in paths for one in _each(path)]
    if not every:
        raise InputError("There is nothing to read: name at least one file.")
    with ExitStack() as stack:
        names, contents = [], []
        for path in every:
            with ExitStack() as opened:
                name, content = _content(path, options, opened)
                _check_names(name, content.columns)
                if len(every) > MOST_OPEN and _can_be_opened_again(path):
                    content = replace(content, rows=_opened_again(path, options))
                else:
                    stack.push(opened.pop_all())
            names.append(name)
            contents.append(content)
        parts = tuple(Part(name, content.columns) for name, content in zip(names, contents, strict=True))
        notes = [note for content in contents for note in content.notes]
        first = contents[0]
        if len(every) > len(paths) and first.columns == ("text",) and first.format in ("lines", "fasttext"):
            notes.append(
                f"{len(every):,} files are read line by line; where each is one text, name the folder above theirs, "
                "whose folders hold one text a file."
            )
        yield Table(first.columns, _good(names, contents, bad), parts, first.format, notes, bad, first.schema)


def _each(path: Readable) -> list[Readable]:
    """Return the paths that `path` means: the files that a pattern matches, the files of a folder, or itself."""
    if isinstance(path, MemoryTable):
        return [path]
    if isinstance(path, RemoteFile):
        return [RemoteFile(file.name) for file in storage.find(path.url)]
    found: list[Readable] = []
    for one in matching(path):
        # A folder without files has class folders, and is itself a table.
        found += (folders.files_of(one) if one != STANDARD and _is_folder(one) else []) or [one]
    return found


def _content(path: Readable, options: ReadOptions, stack: ExitStack) -> tuple[str, Content]:
    """Return the name and the content of `path`, which stays open as long as `stack`."""
    if isinstance(path, MemoryTable):
        return str(path), path.content()
    if isinstance(path, RemoteFile):
        source = stack.enter_context(open_source(stack.enter_context(storage.fetched(path.url)), str(path)))
    elif path != STANDARD and _is_folder(path):
        return str(path), folders.read(path, options)
    else:
        source = stack.enter_context(open_source(path))
    with reading(source.name):
        return source.name, formats.read(source, options)


def _can_be_opened_again(path: Readable) -> bool:
    return isinstance(path, RemoteFile) or (isinstance(path, Path) and path.is_file())


def _opened_again(path: Readable, options: ReadOptions) -> Iterator[Row | Bad]:
    """Yield the rows of one of many files, which is only opened when needed."""
    with ExitStack() as stack:
        yield from _content(path, options, stack)[1].rows


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except OSError:  # an invalid name, which will be reported when it is opened
        return False


def _check_names(file: str, columns: tuple[str, ...]) -> None:
    twice = next((name for name, times in Counter(columns).items() if times > 1), None)
    if twice is not None:
        raise InputError(f"{file} has two columns called {twice!r}; rename one.")


def _good(names: Sequence[str], contents: Sequence[Content], bad: BadRows) -> Iterator[Row]:
    for name, content in zip(names, contents, strict=True):
        # Errors of the consumer of the rows do not pass through here.
        with reading(name):
            for row in content.rows:
                if isinstance(row, Bad):
                    bad.add(row)
                else:
                    bad.blank += row.blank
                    for column, value in row.fields.items() if content.format == "xlsx" else ():
                        if isinstance(value, Unreadable):
                            bad.add_strange(column, value.what)
                    yield row


def _with_list(row: Row, name: str, joined: Container[str]) -> Row:
    fields: dict[str, Any] = {}
    for column, value in row.fields.items():
        if column in joined or column == name:
            fields.setdefault(name, []).extend(filter(None, [written(value)]))
        else:
            fields[column] = value
    return row._replace(fields=fields)


class TextRow(NamedTuple):
    """A text, and the row it came from."""

    text: str
    row: Row


def texts_of(
    table: Table, columns: Sequence[str], beside: Sequence[Column] = (), max_tokens: int | None = None
) -> Iterator[TextRow]:
    """Yield the rows of `table` with the text of their `columns`; rows without a text are recorded as bad.

    If a model reads columns `beside` the text, their cells precede the text (`textcls.model.columns.pack`); texts with
    more than `max_tokens` tokens are counted.
    """
    for row in table.rows:
        text = join_columns(row, columns, beside)
        if isinstance(text, Bad):
            table.bad.add(text)
            continue
        alone = text
        if beside:
            cells, alone = unpack(text, beside)
            for name in not_understood(row.fields, beside, cells):
                table.bad.add_strange(name, row.fields[name])
            for name, value, known in categories_of(cells, beside):
                table.bad.add_category(name, value, known=known)
        if max_tokens is not None and tokenizer.is_longer(alone, max_tokens):
            table.bad.add_cut(max_tokens)
        if not alone.strip():
            table.bad.empty += 1
        yield TextRow(text, row)


def join_columns(row: Row, columns: Sequence[str], beside: Sequence[Column] = ()) -> str | Bad:
    """Return the text of a row: its text columns, one per line; or what is wrong with them."""
    for name in columns:
        if isinstance(value := row.fields.get(name), Unreadable):
            return Bad(row.where, value.problem(name))
    try:
        return text_columns.join_columns(row.fields, columns, beside)
    except ValueError as error:
        return Bad(row.where, str(error))
