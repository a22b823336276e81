"""Texts with their label sets, if these are known: reads new texts, which need no labels.

An empty or missing cell means that a row's labels are unknown; an explicit `[]`, or zeros in all label columns, mean
that it has none. Labels that cannot be read are unknown, too; these are reported once everything is read.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from textcls.data.rows import Bad, Row
from textcls.data.tables import Table, TextRow
from textcls.data.targets import LabelsOfColumns, TargetOptions, as_usual, labels_of_columns
from textcls.errors import InputError
from textcls.model import label_sets
from textcls.model.label_sets import LabelSet, Parse

Known = LabelSet | None | Bad


def label_sets_if_known(
    table: Table,
    items: Iterator[TextRow],
    texts: tuple[str, ...],
    column: str,
    usual: TargetOptions,
    say: Callable[[str], None],
) -> Iterator[tuple[str, LabelSet | None]]:
    """Yield each text with its label set, or None if that is not known.

    Args:
        table: an open table.
        items: its texts.
        texts: the text columns.
        column: the label column, if the labels are in one.
        usual: how the training labels were written.
        say: takes sentences on unreadable labels, and on empty cells if others are filled, once everything is read.
    """
    try:
        read = _reader(table, texts, column, usual)
    except InputError as error:
        say(f"Labels are left aside, since they cannot be read. {error}")
        yield from ((text, None) for text, _ in items)
        return
    rows = _known(read, items, say)
    # A file without labels has one row per text.
    merges = usual.merge_rows and all(column in part.columns for part in table.parts)
    yield from _merged(rows) if merges else rows


def _merged(rows: Iterator[tuple[str, LabelSet | None]]) -> Iterator[tuple[str, LabelSet | None]]:
    """Merge labelled rows with the same text into one with the labels of all; yield unlabelled rows as they are."""
    found: dict[str, dict[str, float]] = {}
    unknown: list[str] = []
    for text, labels in rows:
        if labels is None:
            unknown.append(text)
        else:
            label_sets.add(found.setdefault(text, {}), labels)
    yield from found.items()
    yield from ((text, None) for text in unknown if text not in found)


def _known(
    read: Callable[[Row], Known], items: Iterator[TextRow], say: Callable[[str], None]
) -> Iterator[tuple[str, LabelSet | None]]:
    known, unread, empty, first = 0, 0, 0, None
    for text, row in items:
        found = read(row)
        if isinstance(found, Bad):
            unread, first = unread + 1, first or found
            yield text, None
        else:
            known, empty = known + (found is not None), empty + (found is None)
            yield text, found
    if first is not None:
        rows = "a row are" if unread == 1 else f"{unread:,} rows are"
        say(f"The labels of {rows} left aside, since they cannot be read; {first.where}: {first.why}.")
    if known and empty:
        rows = "1 row has" if empty == 1 else f"{empty:,} rows have"
        say(
            f"{rows} nothing in place of labels, which are then unknown; with --label-column an empty cell means that "
            "there are none."
        )


def _reader(table: Table, texts: tuple[str, ...], column: str, usual: TargetOptions) -> Callable[[Row], Known]:
    by_column = as_usual(TargetOptions(), usual, table.parts[0])
    if by_column.label_columns:
        return partial(_of_columns, reader=labels_of_columns(table, by_column, texts))
    of_cell = partial(label_sets.of_cell, separator=usual.label_separator)
    parse = label_sets.of_words if table.format == "fasttext" else of_cell
    if usual.merge_rows and usual.label_separator is None and table.format != "fasttext":
        parse = _one_or_list
    return partial(_of_column, column=column, parse=parse)


def _one_or_list(value: Any) -> LabelSet | str:
    return label_sets.structured(value) if isinstance(value, list | dict) else label_sets.one_or_none(value)


def _of_column(row: Row, column: str, parse: Parse) -> Known:
    value = row.fields.get(column)
    if _is_empty(value):
        return None
    found = parse(value)
    return Bad(row.where, f"the labels in column {column!r} {found}") if isinstance(found, str) else found


def _of_columns(row: Row, reader: LabelsOfColumns) -> Known:
    return None if all(_is_empty(row.fields.get(name)) for name in reader.labels) else reader(row)


def _is_empty(value: Any) -> bool:
    return value is None or (isinstance(value, str) and not value.strip())
