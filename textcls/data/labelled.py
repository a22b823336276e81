"""Texts with their labels: what training, evaluation and the check of data read."""

from array import array
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from textcls.data.columns import DEFAULT_LABEL_COLUMN, DEFAULT_TEXT_COLUMNS
from textcls.data.rows import Bad, BadRows, ReadOptions, Row
from textcls.data.source import name_of
from textcls.data.tables import Table, open_tables, texts_of
from textcls.errors import InputError
from textcls.labels import label_problem, unpaired_surrogate


class LabelledRow(NamedTuple):
    """A text, its label, and the row they came from."""

    text: str
    label: str
    row: Row


@dataclass(slots=True)
class Places:
    """Where rows stand, in little memory: one number a row."""

    lines: "array[int]" = field(default_factory=lambda: array("q"))
    # (number of the first row, file, unit)
    files: list[tuple[int, str, str]] = field(default_factory=list)

    def append(self, row: Row) -> None:
        """Add the place of `row`."""
        if not self.files or self.files[-1][1] != row.file:
            self.files.append((len(self.lines), row.file, row.unit))
        self.lines.append(row.line)

    def __getitem__(self, i: int) -> str:
        file, unit = self._file(i)
        return f"{file}, {unit} {self.lines[i]}"

    def _file(self, i: int) -> tuple[str, str]:
        return next((file, unit) for first, file, unit in reversed(self.files) if first <= i)

    def only(self, rows: Sequence[int]) -> "Places":
        """Return the places of the rows of these numbers, in rising order."""
        found = Places()
        for i in rows:
            file, unit = self._file(i)
            found.append(Row(self.lines[i], {}, file, unit))
        return found


@dataclass(slots=True)
class Labelled:
    """Texts and labels, in the order of the files.

    Attributes:
        texts: the texts.
        labels: the labels.
        text_columns: the columns the texts came from.
        label_column: the column of the labels.
        places: where each row stands.
        more: what the further columns that were asked for hold, one value a row.
        notes: what was found out about the files and is not the default, in sentences.
    """

    texts: list[str]
    labels: list[str]
    text_columns: tuple[str, ...] = DEFAULT_TEXT_COLUMNS
    label_column: str = DEFAULT_LABEL_COLUMN
    places: Places = field(default_factory=Places)
    more: dict[str, list[Any]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def only(self, rows: Sequence[int]) -> "Labelled":
        """Return the rows of these numbers, in rising order."""
        return replace(
            self,
            texts=[self.texts[i] for i in rows],
            labels=[self.labels[i] for i in rows],
            places=self.places.only(rows),
            more={name: [values[i] for i in rows] for name, values in self.more.items()},
        )


@dataclass(frozen=True, slots=True)
class LabelledTable:
    """An open table of labelled texts, read one row at a time."""

    text_columns: tuple[str, ...]
    label_column: str
    rows: Iterator[LabelledRow]
    notes: list[str]


@contextmanager
def open_labelled(
    paths: Sequence[Path],
    text_columns: Sequence[str] = (),
    label_column: str | None = None,
    *,
    usual: tuple[Sequence[str], str] = (DEFAULT_TEXT_COLUMNS, DEFAULT_LABEL_COLUMN),
    more: Sequence[str] = (),
    options: ReadOptions | None = None,
    bad: BadRows | None = None,
) -> Iterator[LabelledTable]:
    """Open the labelled files at `paths`.

    Args:
        paths: the files; all must have the columns.
        text_columns: the columns of the text; without any the usual ones, or those of well-known names.
        label_column: the column of the label; likewise.
        usual: the text columns and the label column that are looked for first.
        more: further columns that the rows must have.
        options: how the files are read.
        bad: what to do with rows that cannot be used.

    Raises:
        InputError: as `open_tables` says; or a column is missing, or a label is empty.
    """
    with open_tables(paths, options, bad) as table:
        texts = table.choose(text_columns or usual[0], "text", guess=not text_columns)
        (label,) = table.choose([label_column or usual[1]], "label", guess=label_column is None)
        if odd := next((name for name in (*texts, label) if unpaired_surrogate(name)), None):
            raise InputError(f"The column {odd!r} cannot be kept in a model: its name has no UTF-8 form; rename it.")
        if label in texts:
            raise InputError(f"The column {label!r} cannot be both text and label of {table.parts[0].file}.")
        for part in table.parts:
            lacking = next((name for name in more if name not in part.columns), None)
            if lacking is not None:
                have = ", ".join(map(repr, part.columns))
                raise InputError(f"{part.file} has no column {lacking!r}; it has {have}.")
        yield LabelledTable(texts, label, _rows(table, texts, label), table.notes)


def _rows(table: Table, text_columns: Sequence[str], label_column: str) -> Iterator[LabelledRow]:
    for text, row in texts_of(table, text_columns):
        label = label_of(row, label_column)
        if isinstance(label, Bad):
            table.bad.add(label)
        else:
            yield LabelledRow(text, label, row)


def label_of(row: Row, column: str) -> str | Bad:
    """Return the label of a row, or what is wrong with it."""
    value = row.fields.get(column)
    if isinstance(value, list | dict):
        return Bad(row.where, f"the label in column {column!r} is a {type(value).__name__}; one label a row is needed")
    if isinstance(value, bytes):
        return Bad(row.where, f"the label in column {column!r} is bytes; write it as a string")
    # JSON and Parquet have numbers and truth values for labels, too.
    label = "" if value is None else str(value).strip()
    wrong = label_problem(label)
    if wrong is None:
        return label
    return Bad(row.where, f"the label in column {column!r} {wrong}; {'mend' if label else 'fill'} it or remove the row")


def read_labelled(
    paths: Path | Sequence[Path],
    text_columns: Sequence[str] = (),
    label_column: str | None = None,
    *,
    usual: tuple[Sequence[str], str] = (DEFAULT_TEXT_COLUMNS, DEFAULT_LABEL_COLUMN),
    more: Sequence[str] = (),
    options: ReadOptions | None = None,
    bad: BadRows | None = None,
) -> Labelled:
    """Read all texts and labels of the files at `paths`, as `open_labelled` opens them.

    Raises:
        InputError: as `open_labelled` says; or there are no rows.
    """
    paths = [paths] if isinstance(paths, Path) else paths
    with open_labelled(paths, text_columns, label_column, usual=usual, more=more, options=options, bad=bad) as table:
        found = Labelled(
            [], [], table.text_columns, table.label_column, Places(), {name: [] for name in more}, table.notes
        )
        for text, label, row in table.rows:
            found.texts.append(text)
            found.labels.append(label)
            found.places.append(row)
            for name in more:
                found.more[name].append(row.fields.get(name))
    if not found.texts:
        raise no_rows(paths, bad)
    return found


def no_rows(paths: Sequence[Path], bad: BadRows | None) -> InputError:
    """Return what is wrong with the files at `paths` if no row came of them; `bad` are those that were left out."""
    names = " and ".join(map(name_of, paths))
    have = "has" if len(paths) == 1 else "have"
    return InputError(f"{names} {have} no rows{' that can be used' if bad is not None and bad.count else ''}.")
