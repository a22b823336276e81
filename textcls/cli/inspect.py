"""`textcls inspect`: what a model file says of itself, and what the model goes by on texts of yours."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import Final

import click
from click.core import ParameterSource
from rich.console import Console
from rich.table import Table
from rich.text import Text

from textcls import page
from textcls.artifact import ModelInfo
from textcls.classifier import Classifier
from textcls.cli import render
from textcls.cli.options import PATH, Reading, html_option, model_argument, reading_options, text_column_option
from textcls.data import Row, label_of, open_labelled, open_table, texts_of
from textcls.errors import ConfigError
from textcls.evidence import EvidenceCounter
from textcls.labels import label_number
from textcls.output import check_not_an_input, check_output_path, replacing

# Explained answers held at once: with many labels and long texts each takes half a megabyte.
CHUNK: Final = 128
LISTED: Final = 10
_OF_EVIDENCE: Final = (
    *("text_columns", "label_column", "only", "top", "html"),
    *("format", "encoding", "delimiter", "no_quotes", "on_error", "quiet"),
)


@click.command(
    epilog="""Example: textcls inspect tickets.onnx

    Example: textcls inspect tickets.onnx --evidence heldout.csv"""
)
@model_argument
@click.option(
    "--evidence",
    "data",
    type=PATH,
    metavar="DATA",
    help="Show what speaks for and against each label over the texts of a file, and shortcuts.",
)
@text_column_option
@click.option("--label-column", metavar="NAME", help="Column of the label.  [default: that of the training, if there]")
@click.option(
    "--label", "only", multiple=True, metavar="LABEL", help="Tell of this label alone; give it several times for more."
)
@click.option(
    "--top",
    type=click.IntRange(min=1),
    help=f"List so many words, and pairs, for and against each label.  [default: {LISTED}]",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@html_option
@reading_options
def inspect(
    model: Path,
    data: Path | None,
    text_columns: tuple[str, ...],
    label_column: str | None,
    only: tuple[str, ...],
    top: int | None,
    as_json: bool,
    html: Path | None,
    reading: Reading,
) -> None:
    """Show the labels, settings, training summary and format of MODEL; with --evidence, what it goes by."""
    if data is None and (idle := _given(*_OF_EVIDENCE)):
        raise ConfigError(f"{idle[0]} needs --evidence and a file.")
    classifier = Classifier.load(model)
    console = render.console()
    if data is None:
        _show_facts(console, model, classifier.info, as_json)
        return
    if html is not None:
        check_not_an_input(html, [model, data])
        check_output_path(html)
    for label in only:
        label_number(classifier.labels, label)  # Refused before the file is read.
    counter = _evidence(classifier, data, text_columns, label_column, reading)
    reading.say_skipped()
    report = counter.report(top or LISTED, only=only or None)
    if html is not None:
        title = f"What {model.stem} goes by"
        with replacing(html) as file:
            file.write(page.document(title, page.evidence_fragment(title, report)).encode())
    if as_json:
        click.echo(render.json_line(report.as_json()))
    elif html is not None:
        click.echo(f"{report.texts:,} texts, {len(report.shortcuts):,} shortcuts -> {html}")
    else:
        for part in render.evidence_tables(report, console.width):
            console.print(part)


def _given(*names: str) -> list[str]:
    """Return those of the options that stand on the command line; in a file of settings they may wait for their use."""
    context = click.get_current_context()
    given = {name for name in names if context.get_parameter_source(name) == ParameterSource.COMMANDLINE}
    return [option.opts[0] for option in context.command.params if option.name in given]


def _show_facts(console: Console, path: Path, info: ModelInfo, as_json: bool) -> None:
    if as_json:
        click.echo(render.json_line(asdict(info)))
        return
    table = Table(box=None, pad_edge=False, show_header=False)
    for name, value in _facts(path, info):
        table.add_row(Text(name, style="dim"), Text(value))
    console.print(table)


def _evidence(
    classifier: Classifier, data: Path, text_columns: tuple[str, ...], label_column: str | None, reading: Reading
) -> EvidenceCounter:
    counter = EvidenceCounter(classifier.labels)
    with _open(classifier.info, data, text_columns, label_column, reading) as rows:
        while chunk := list(islice(rows, CHUNK)):
            explanations = classifier.explain([text for text, _ in chunk])
            for explanation, (_, label) in zip(explanations, chunk, strict=True):
                counter.add(explanation, label)
    return counter


@contextmanager
def _open(
    info: ModelInfo, data: Path, text_columns: tuple[str, ...], label_column: str | None, reading: Reading
) -> Iterator[Iterator[tuple[str, str | None]]]:
    """Open the texts, with their labels: each row must have one in a column that was asked for, any may elsewhere."""
    options, bad = reading.options, reading.bad
    if label_column is not None:
        usual = (info.text_columns, info.label_column)
        with open_labelled([data], text_columns, label_column, usual=usual, options=options, bad=bad) as labelled:
            reading.say(labelled.notes)
            yield ((row.text, row.label) for row in labelled.rows)
        return
    with open_table(data, options, bad) as table:
        columns = table.choose(text_columns or info.text_columns, "text", guess=not text_columns)
        reading.say(table.notes)
        yield ((text, _label(row, info.label_column)) for text, row in texts_of(table, columns))


def _label(row: Row, column: str) -> str | None:
    found = label_of(row, column)
    return found if isinstance(found, str) else None


def _facts(path: Path, info: ModelInfo) -> list[tuple[str, str]]:
    training, network = info.training, info.model
    features = ["words", *(["bigrams"] if info.features.bigrams else [])]
    if info.features.ngram_sizes:
        features.append(f"character n-grams of {' and '.join(map(str, info.features.ngram_sizes))}")
    return [
        ("file", f"{path}, {path.stat().st_size / 1e6:.2f} MB, format {info.format_version}"),
        ("task", info.task),
        (render.plural(len(info.labels), "label"), ", ".join(info.labels)),
        ("columns", f"{', '.join(info.text_columns)} -> {info.label_column}"),
        (
            "trained on",
            f"{render.plural(training['rows'], 'row')}, sha256 {training['data_sha256'][:12]}, "
            f"seed {training['seed']}, {render.plural(training['epochs'], 'epoch')}"
            f"{', interrupted' if training.get('interrupted') else ''}",
        ),
        ("held out", f"{render.plural(training['held_out_rows'], 'row')}, accuracy {training['held_out_accuracy']}"),
        ("temperature", f"{info.temperature:.3f}"),
        ("threshold", "none: never abstains" if info.threshold is None else f"{info.threshold:.3f}"),
        ("reads", f"the first {info.max_tokens:,} tokens of a text: {', '.join(features)}"),
        # The configuration holds the gate's start; what it has become stands with the training.
        ("network", ", ".join(f"{name} {value}" for name, value in network.items() if name != "gate")),
        *([("learned gate", f"{training['gate']}")] if training.get("gate") is not None else []),
        ("made with", ", ".join(f"{name} {value}" for name, value in training["versions"].items())),
    ]
