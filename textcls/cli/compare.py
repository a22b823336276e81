"""`textcls compare`: two classifiers on the same labelled rows."""

import click

from textcls.cli.options import data_argument, label_column_option, once, reading_options, text_column_option
from textcls.cli.reading import Reading
from textcls.comparison.compare import compared
from textcls.comparison.sides import ModelSide, side_of
from textcls.data.memory import Readable
from textcls.display.plain_data import json_line
from textcls.display.terminal.comparison import comparison_report
from textcls.display.terminal.console import show
from textcls.evaluation import metrics


@click.command(epilog="Example: textcls compare old.onnx new.onnx heldout.csv")
@click.argument("first", metavar="BEFORE")
@click.argument("second", metavar="AFTER")
@data_argument
@text_column_option
@label_column_option
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object, with every answer that changed.")
@reading_options
def compare(
    first: str,
    second: str,
    data: tuple[Readable, ...],
    text_columns: tuple[str, ...],
    label_column: str | None,
    as_json: bool,
    reading: Reading,
) -> None:
    """Say whether AFTER is better than BEFORE on the labelled files DATA, and which answers change.

    Each side is a model file, a table with one answer per row (as `textcls predict` writes), or the address of a
    service, such as http://localhost:8000, whose key is read from TEXTCLS_API_KEY. Models also show why an answer
    changed.
    """
    metrics.require()
    once(data)
    sides = (side_of(first), side_of(second))
    training = next((side.classifier.info for side in sides if isinstance(side, ModelSide)), None)
    with reading.labelled_rows(data, text_columns, label_column, training) as rows:
        texts, labels = [], []
        for row in rows:
            texts.append(row.text)
            labels.append(row.label)
    found = compared(sides, texts, labels, (sides[0].answers(texts), sides[1].answers(texts)))
    reading.say_skipped()
    if as_json:
        click.echo(json_line(found.as_json()))
    else:
        show(comparison_report(found))
