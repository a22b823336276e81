"""`textcls compare`: two classifiers on the same labelled rows."""

from collections.abc import Sequence
from typing import Any

import click

from textcls.cli.options import (
    data_argument,
    label_column_option,
    label_options,
    once,
    reading_options,
    text_column_option,
)
from textcls.cli.reading import Reading
from textcls.data import TargetOptions
from textcls.data.given_labels import present
from textcls.data.memory import Readable
from textcls.data.rows import Row
from textcls.display.plain_data import json_line
from textcls.display.terminal.comparison import comparison_report
from textcls.display.terminal.console import show
from textcls.errors import InputError
from textcls.evaluation import metrics
from textcls.evaluation.comparison.compare import compared
from textcls.evaluation.comparison.sides import Labels, ModelSide, Side, is_several, sides_of
from textcls.model.classifier import Text
from textcls.model.label_paths import label_columns
from textcls.model.text_columns import and_, misspelt_in_file


@click.command(epilog="Example: textcls compare old.onnx new.onnx heldout.csv")
@click.argument("first", metavar="BEFORE")
@click.argument("second", metavar="AFTER")
@data_argument
@text_column_option
@label_column_option
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object, with every answer that changed.")
@label_options
@reading_options
def compare(
    first: str,
    second: str,
    data: tuple[Readable, ...],
    text_columns: tuple[str, ...],
    label_column: str | None,
    as_json: bool,
    targets: TargetOptions,
    reading: Reading,
) -> None:
    """Say whether AFTER is better than BEFORE on the labelled files DATA, and which answers change.

    Each side is a model file, a table with one answer per row (as `textcls predict` writes), or the address of a
    service, such as http://localhost:8000, whose key is read from TEXTCLS_API_KEY. Models also show why an answer
    changed. Where texts may have several labels, those of a cell of a table may be separated as in the rows, as textcls
    predict writes them, or by another usual sign.
    """
    metrics.require()
    once(data)
    sides = sides_of(first, second, several=bool(targets.label_sets), separator=targets.label_separator)
    texts, labels, given = list[str](), list[Labels](), list[Text]()
    # If a model reads several columns, each side reads the row as it has learned to.
    infos = [side.classifier.info for side in sides if isinstance(side, ModelSide)]
    whole = any(info.columns or (len(info.text_columns) > 1 and not text_columns) for info in infos)
    training = infos[0].of_texts_alone if infos else None
    columns = (text_columns, label_column)
    opened: Any = reading.labelled_rows(data, *columns, training, as_known=False)
    if is_several(sides):
        opened = reading.label_sets(data, *columns, targets, training, as_known=False)
    with opened as rows:
        for row in rows:
            if whole and not texts:
                _check_columns(row.row, sides)
            texts.append(row.text)
            given.append(row.row.fields if whole else row.text)
            labels.append(row.label if isinstance(row.label, str) else tuple(sorted(present(row.label))))
    found = compared(sides, given, texts, labels, reading.bad)
    reading.say_skipped()
    if as_json:
        click.echo(json_line(found.as_json()))
    else:
        show(comparison_report(found))


def _check_columns(row: Row, sides: Sequence[Side]) -> None:
    """Refuse a file in which a model does not find its columns: both are asked about the same rows."""
    for side in sides:
        if not isinstance(side, ModelSide):
            continue
        info = side.classifier.info
        names = [*info.text_columns, *(column.name for column in info.columns)]
        absent = [name for name in names if name not in row.fields]
        lacking = [name for name in info.text_columns if name in absent]
        if lacking:
            have = ", ".join(map(repr, row.fields))
            raise InputError(f"{row.file} has no column {and_(lacking)}, which {side.name} reads; it has {have}.")
        known = [*names, *label_columns(info.label_column, row.fields)]
        if wrong := misspelt_in_file(row.file, row.fields, known, absent, side.name):
            raise InputError(wrong)
