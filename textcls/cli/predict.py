"""`textcls predict`: a table in, the same table with answers out."""

import csv
import io
import json
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Final

import click

from textcls import artifact
from textcls.classifier import Classifier
from textcls.cli.options import PATH, model_argument, text_column_option, threshold_option
from textcls.data import Row, join_columns, open_table
from textcls.errors import InputError
from textcls.results import Prediction

CHUNK: Final = 1024
ANSWER_COLUMNS: Final = ("predicted_label", "score", "decision")
EXPLANATION_COLUMN: Final = "explanation"


@click.command(epilog="Example: textcls predict tickets.onnx new.csv --output answers.csv")
@model_argument
@click.argument("data", type=PATH)
@click.option("--output", "-o", type=PATH, required=True, help="The CSV file to write.")
@text_column_option
@threshold_option
@click.option("--explain", is_flag=True, help="Add a column with what each token added to the winning label, as JSON.")
def predict(
    model: Path, data: Path, output: Path, text_columns: tuple[str, ...], threshold: float | None, explain: bool
) -> None:
    """Classify each row of the CSV file DATA with MODEL.

    All columns and the order of the rows are kept; predicted_label, score and decision are added.
    """
    classifier = Classifier.load(model)
    artifact.check_not_an_input(output, [data, model])
    written = 0
    columns = text_columns or classifier.info.text_columns
    with open_table(data) as table:
        table.require(columns, "--text-column")
        added = (*ANSWER_COLUMNS, EXPLANATION_COLUMN) if explain else ANSWER_COLUMNS
        clash = next((name for name in added if name in table.columns), None)
        if clash is not None:
            raise InputError(f"{data} already has a column {clash!r}; rename it, since the answers go there.")
        with artifact.replacing(output) as raw:
            file = io.TextIOWrapper(raw, encoding="utf-8", newline="")
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow([*table.columns, *added])
            for rows in _chunks(table.rows):
                answers = classifier.predict(
                    [join_columns(r, columns) for r in rows], explain=explain, threshold=threshold
                )
                writer.writerows(_answer_row(row, answer) for row, answer in zip(rows, answers, strict=True))
                written += len(rows)
            file.detach()
    click.echo(f"{written} rows -> {output}")


def _chunks(rows: Iterator[Row]) -> Iterator[Sequence[Row]]:
    while chunk := list(islice(rows, CHUNK)):
        yield chunk


def _answer_row(row: Row, answer: Prediction) -> list[str]:
    fields = [*row.fields.values(), answer.label, f"{answer.score:.6f}", answer.decision]
    if answer.explanation is not None:
        found = answer.explanation
        added = found.contributions[:, found.labels.index(answer.label)].tolist()
        shares = [[found.text[a:b], round(value, 4)] for (a, b), value in zip(found.spans, added, strict=True)]
        fields.append(json.dumps(shares, ensure_ascii=False))
    return fields
