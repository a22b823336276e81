"""`textcls suggest`: the texts that are most informative to label next."""

from pathlib import Path
from typing import Final

import click

from textcls.cli.options import PATH, escape_formulas_option, reading_options, text_column_option
from textcls.cli.outputs import TABLE
from textcls.cli.reading import Reading
from textcls.data.rows import Row
from textcls.data.writing import NewTable
from textcls.display.plain_data import json_line
from textcls.display.terminal.console import show
from textcls.display.terminal.suggestions import suggestions_report
from textcls.display.text import plural
from textcls.errors import ConfigError, InputError
from textcls.labelling.suggest import Suggestion, at_random, suggest
from textcls.model.classifier import Classifier

DEFAULT_NUMBER: Final = 50
_MODEL_ENDINGS: Final = (".onnx",)


@click.command(
    "suggest",
    epilog="""Example: textcls suggest tickets.onnx texts.csv -n 50 --output next.csv

    Example: textcls suggest texts.csv -n 50 --output first.csv""",
)
@click.argument("files", type=PATH, nargs=-1, required=True, metavar="[MODEL] TEXTS")
@click.option(
    "-n", "--number", type=click.IntRange(1), default=DEFAULT_NUMBER, show_default=True, help="How many rows to choose."
)
@click.option(
    "-o", "--output", type=TABLE, metavar="FILE", help="Write the rows: .csv, .tsv, .jsonl, .parquet or .xlsx."
)
@click.option(
    "--labelled",
    type=PATH,
    multiple=True,
    metavar="FILE",
    help="Rows that are labelled already; near copies of their texts are left out; may be repeated.",
)
@click.option(
    "--at-random",
    "random_rows",
    is_flag=True,
    help="Draw rows at random instead, each as likely as any other: their labels tell how good answers to all are.",
)
@escape_formulas_option
@text_column_option
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@reading_options
def suggest_command(
    files: tuple[Path, ...],
    number: int,
    output: Path | None,
    labelled: tuple[Path, ...],
    random_rows: bool,
    escape_formulas: bool,
    text_columns: tuple[str, ...],
    as_json: bool,
    reading: Reading,
) -> None:
    """Choose the rows of TEXTS that teach MODEL most when they are labelled next.

    They are those that the model is least sure of, among four times as many drawn at random, and some that are unlike
    all it has seen. Without a model (before
    there are labels) they are random ones, unlike each other. Near copies of a row, and of rows with a label, are left
    out.
    """
    model, texts_path = _model_and_texts(files)
    if random_rows and labelled:
        raise ConfigError("--at-random draws from all rows, and --labelled leaves some out; give one of them.")
    table = None
    if output is not None:
        table = NewTable.at(output, escape_formulas=escape_formulas)
    classifier = None if model is None else Classifier.load(model)
    training = None if classifier is None else classifier.info
    known = list[str]()
    for path in labelled:
        with reading.texts(path, text_columns, training) as others:
            known += [text for text, _ in others]
    with reading.texts(texts_path, text_columns, training) as found_rows:
        rows = list(found_rows)
    texts = [text for text, _ in rows]
    found = at_random(texts, number, classifier) if random_rows else suggest(texts, number, classifier, known)
    reading.say_skipped()
    if not found:
        why = "all its texts are labelled already; add others" if rows else "it has no rows"
        raise InputError(f"Nothing is left to choose from {texts_path}: {why}.")
    if table is not None:
        _write(table, [rows[one.row][1] for one in found], found)
    if as_json:
        click.echo(json_line({"rows": [one.as_json() for one in found]}))
    elif table is not None:
        tells = "label them, and textcls evaluate tells how good answers to all of them are"
        after = tells if random_rows else "label them, and train"
        click.echo(f"{plural(len(found), 'row')} of {len(rows):,} -> {table.path}. Next: {after}.")
    else:
        show(suggestions_report(found, [rows[one.row][1].where for one in found]))


def _model_and_texts(files: tuple[Path, ...]) -> tuple[Path | None, Path]:
    match files:
        case (texts,) if texts.suffix.lower() not in _MODEL_ENDINGS:
            return None, texts
        case (model,):
            raise ConfigError(f"{model} is a model; name the texts to choose from as well.")
        case (model, texts):
            return model, texts
    raise ConfigError("Give a model and one file of texts, or the file of texts alone.")


def _write(table: NewTable, rows: list[Row], found: list[Suggestion]) -> None:
    added = [one.columns() for one in found]
    columns = list(dict.fromkeys(name for row in rows for name in row.fields if name not in added[0]))
    kept = [row._replace(fields={name: row.fields.get(name) for name in columns}) for row in rows]
    with table.open(columns, list(added[0])) as writer:
        writer.write(kept, added)
