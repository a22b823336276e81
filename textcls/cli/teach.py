"""`textcls teach`: a new label from a few examples, or better examples of an old one, without training."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import click

from textcls._util.atomic_write import check_output_path
from textcls.cli.options import (
    label_column_option,
    model_argument,
    reading_options,
    text_column_option,
)
from textcls.cli.outputs import NamedPath, Output
from textcls.cli.reading import Reading
from textcls.data.rows import Bad, Row
from textcls.display.plain_data import json_line
from textcls.display.terminal.console import show
from textcls.display.terminal.teaching import taught_report
from textcls.display.text import percent
from textcls.errors import ConfigError
from textcls.model import artifact
from textcls.model.artifact import ModelInfo
from textcls.model.classifier import Classifier
from textcls.model.model_file.rewriting import check_not_published, rewrite
from textcls.model.teaching import Taught, take_back, teach, write
from textcls.model.teaching.support import prototypes_of
from textcls.model.tokenizer import tokenize

_THRESHOLD: Final = (
    "The model abstains below {}, which was chosen before it was taught: textcls evaluate --target-precision --store "
    "chooses it anew."
)


@click.command(
    "teach",
    epilog="""Example: textcls teach tickets.onnx --label refunds --examples refunds.csv

    Example: textcls teach tickets.onnx --label refunds --example "I want my money back"

    Example: textcls teach tickets.onnx --take-back refunds""",
)
@model_argument
@click.option("--label", metavar="LABEL", help="Label of the examples: a new one, or one that the model already knows.")
@click.option(
    "--examples",
    type=NamedPath(path_type=Path, allow_dash=True),
    metavar="FILE",
    help=(
        "File of example texts of LABEL; without --label, a labelled file with examples of several labels. - reads "
        "standard input."
    ),
)
@click.option("--example", "given", multiple=True, metavar="TEXT", help="An example text of LABEL; may be repeated.")
@click.option("--take-back", "back", multiple=True, metavar="LABEL", help="Forget what a label was taught.")
@click.option(
    "--output", "-o", type=Output(instead_of="model"), help="Write the model to this file.  [default: replace MODEL]"
)
@text_column_option
@label_column_option
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@reading_options
def teach_command(
    model: Path,
    label: str | None,
    examples: Path | None,
    given: tuple[str, ...],
    back: tuple[str, ...],
    output: Path | None,
    text_columns: tuple[str, ...],
    label_column: str | None,
    as_json: bool,
    reading: Reading,
) -> None:
    """Teach MODEL a label from a few examples, without training; for models made by textcls train --head prototypes.

    Replaces what the label was taught before; what it learned in training stays, and so do the other labels.
    """
    _check(label, examples, given, back)
    output = output or model
    check_output_path(output)
    check_not_published(output)
    data = artifact.read_file(model)
    classifier = Classifier.from_bytes(data, model)
    prototypes_of(classifier.info, model)
    if back:
        taught = take_back(classifier, data, back)
    else:
        columns = (text_columns, label_column)
        taught = teach(classifier, data, _examples(classifier.info, label, examples, given, columns, reading))
    if output.exists() and output.samefile(model):
        rewrite(output, taught.content, classifier.graph.sha256)
    else:
        write(taught, output)
    if classifier.info.threshold is not None:
        reading.say([_THRESHOLD.format(percent(classifier.info.threshold))])
    reading.say_skipped()
    if as_json:
        click.echo(json_line(_as_json(taught, back, output)))
    else:
        show(taught_report(taught, back, output))


def _check(label: str | None, examples: Path | None, given: Sequence[str], back: Sequence[str]) -> None:
    if back and (label is not None or examples is not None or given):
        raise ConfigError("--take-back forgets a label and the other options teach one; use one at a time.")
    if not back and examples is None and not given:
        raise ConfigError("Nothing to teach: give --examples with a file, or --example with a text.")
    if given and label is None:
        raise ConfigError("--example needs --label, which says what the text is.")


def _examples(
    info: ModelInfo,
    label: str | None,
    examples: Path | None,
    given: Sequence[str],
    columns: tuple[tuple[str, ...], str | None],
    reading: Reading,
) -> Mapping[str, Sequence[str]]:
    """Return the examples of each label."""
    label = None if label is None else label.strip()
    found: dict[str, list[str]] = {} if label is None else {label: list(given)}
    if examples is None:
        return found
    if label is None:
        with reading.labelled_rows([examples], *columns, info) as rows:
            for row in rows:
                if _says_something(row.text, row.row, reading):
                    found.setdefault(row.label, []).append(row.text)
        return found
    with reading.texts(examples, columns[0], info) as texts:
        found[label] += [text for text, row in texts if _says_something(text, row, reading)]
    return found


def _says_something(text: str, row: Row, reading: Reading) -> bool:
    """Return whether an example contains a word or a symbol; one that does not is an unusable row."""
    if tokenize(text):
        return True
    why = f"the example {text[:40]!r} contains no word or symbol; remove it, or leave out all such rows with"
    reading.bad.add(Bad(row.where, f"{why} --on-error skip"))
    return False


def _as_json(taught: Taught, back: Sequence[str], output: Path) -> dict[str, object]:
    return {
        "model": str(output),
        "labels": list(taught.classifier.labels),
        "taught": [label.to_json() for label in taught.labels],
        "taken_back": list(back),
    }
