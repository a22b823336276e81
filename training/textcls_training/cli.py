"""`textcls train`: labelled files in, one ONNX file out.

Importing PyTorch takes seconds, so that a wrong path or column would be told late: files are read and looked at first,
and what needs PyTorch is imported after. A test holds the choices below to those of the configuration.
"""

import shlex
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
from click.core import ParameterSource
from rich.console import Console
from rich.text import Text

from textcls import extras
from textcls.check import Survey, find
from textcls.cli import INTERRUPTED, render
from textcls.cli.options import (
    PATH,
    Reading,
    data_argument,
    new_label_column_option,
    new_text_column_option,
    once,
    reading_options,
)
from textcls.data import Bad, Labelled, read_labelled
from textcls.data.source import STANDARD
from textcls.errors import ConfigError, InputError
from textcls.output import check_not_an_input, check_output_path
from textcls_training import rationales
from textcls_training.choices import ATTENTIONS, CLASS_WEIGHTS, DEVICES, EMBEDDINGS, MIXINGS, SIZES, VALUES
from textcls_training.rationales import Spans

if TYPE_CHECKING:
    from textcls_training.run import TrainReport

NEEDED: Final = ("torch", "onnx", "onnxscript", "numba", "scipy", "sklearn")
MAX_TOKENS: Final = 2048
RATIONALE_WEIGHT: Final = 10.0

extras.look_for(*NEEDED)

ngrams_option = click.option(
    "--ngrams",
    default="auto",
    show_default=True,
    metavar="SIZES",
    callback=lambda _context, _parameter, value: _ngram_sizes(value),
    help="Character n-grams of a word, such as 3,5; none answers faster and is less accurate.",
)


@click.command(epilog="Example: textcls train tickets.csv --output tickets.onnx")
@data_argument
@click.option("--output", "-o", type=PATH, help="The ONNX file to write.  [default: DATA with the suffix .onnx]")
@new_text_column_option
@new_label_column_option
@click.option(
    "--valid",
    type=click.Path(path_type=Path, allow_dash=True),
    help="Labelled rows that choose epoch and temperature.  [default: a tenth of DATA]",
)
@click.option(
    "--mixing",
    type=click.Choice(MIXINGS),
    default="none",
    show_default=True,
    help="How tokens see each other.",
)
@click.option("--mixing-rate", type=float, help="Learning rate of the mixing layer.  [default: 0.001]")
@click.option(
    "--attention",
    type=click.Choice(ATTENTIONS),
    default="norm",
    show_default=True,
    help="How scores become weights.",
)
@click.option(
    "--embedding",
    type=click.Choice(EMBEDDINGS),
    default="rows",
    show_default=True,
    help="What a token's vector is made of: rows of a table, or the bits of its hash (words alone, tens of kilobytes).",
)
@click.option(
    "--values",
    type=click.Choice(VALUES),
    default="token",
    show_default=True,
    help="What attention sums up.",
)
@ngrams_option
@click.option("--bigrams/--no-bigrams", default=True, show_default=True, help="Rows for pairs of neighbouring words.")
@click.option(
    "--dim", type=click.IntRange(1, 1024), help="Width of a token's vector.  [default: 32; 64 for more than 32 labels]"
)
@click.option("--epochs", type=click.IntRange(1), help="Most passes over the data.  [default: by the number of rows]")
@click.option(
    "--max-tokens",
    type=click.IntRange(1),
    default=MAX_TOKENS,
    show_default=True,
    help="Tokens of a text that are read.",
)
@click.option(
    "--class-weight",
    type=click.Choice(CLASS_WEIGHTS),
    default="none",
    show_default=True,
    help="Weigh rare labels up.",
)
@click.option(
    "--size",
    type=click.Choice(SIZES),
    default="default",
    show_default=True,
    help="How large the saved model may be: 300 KB, 1 MB, 3 MB and 0.1 MB for each label above 10, or any size.",
)
@click.option(
    "--rationale-column",
    metavar="NAME",
    help="Column of what people marked as the reason for the label: JSON, spans of characters of the text such as "
    '[[3, 7]], or phrases such as ["charged twice"]; rows may have none. Of several text columns, spans count in the '
    "joined text.",
)
@click.option(
    "--rationale-weight",
    type=click.FloatRange(min=0),
    default=RATIONALE_WEIGHT,
    show_default=True,
    help="How much it counts that attention rests on the marks.",
)
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Same seed and data, same bytes.")
@click.option("--device", type=click.Choice(DEVICES), default="auto", show_default=True, help="Where to train.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of tables.")
@click.option("--verbose", "-v", is_flag=True, help="Say on standard error how long each step took.")
@reading_options
def train(
    data: tuple[Path, ...],
    output: Path | None,
    text_columns: tuple[str, ...],
    label_column: str | None,
    valid: Path | None,
    rationale_column: str | None,
    as_json: bool,
    verbose: bool,
    reading: Reading,
    **settings: Any,
) -> None:
    """Train a classifier on the labelled files DATA; - reads standard input.

    Without --valid, a tenth of the rows, chosen by a hash of the text, decides when to stop and how to calibrate (of
    few rows each fifth in turn); the saved model is then trained on all rows. What looks wrong with the rows is said
    first; `textcls check` says more.
    """
    weight = click.get_current_context().get_parameter_source("rationale_weight")
    if rationale_column is None and weight == ParameterSource.COMMANDLINE:
        raise ConfigError("--rationale-weight needs --rationale-column, which names the column of the marks.")
    output = output or _default_output(data[0])
    others = [valid] if valid else []
    once([*data, *others])
    check_not_an_input(output, [*data, *others])
    check_output_path(output)
    clock = _Clock()
    more = [] if rationale_column is None else [rationale_column]
    rows = read_labelled(data, text_columns, label_column, more=more, options=reading.options, bad=reading.bad)
    reading.say(rows.notes)
    if rationale_column is not None:
        rows = _marked(rows, rationale_column, reading)
    judges = _read_valid(valid, rows, reading) if valid else None
    reading.say_skipped()
    clock.lap("reading")
    _warn(rows, judges, reading)
    clock.lap("checking")
    # Progress goes to standard error, so that `| head` or a closed pipe never ends a training.
    console = Console(stderr=True, quiet=reading.quiet)
    marks = rows.more[rationale_column] if rationale_column is not None else None
    report = run_training(rows, output, settings, valid=judges, marks=marks, console=console)
    clock.lap("loading", report.seconds)
    if verbose:
        click.echo(f"Seconds: {clock}.", err=True)
    if as_json:
        click.echo(render.json_line({"output": str(output), **report.to_json(), "seconds": clock.seconds}))
    else:
        _summarise(render.console(), report, output)
    if report.interrupted:
        click.echo(
            f"Interrupted: {output} holds what was learned from {report.rows:,} rows; whole epochs: {report.epochs}.",
            err=True,
        )
        raise click.exceptions.Exit(INTERRUPTED)


class _Clock:
    """How long each step takes."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self.began = time.perf_counter()

    def lap(self, name: str, inner: Mapping[str, float] | None = None) -> None:
        """Note the step `name` that ends now; the steps `inner` behind it are told for themselves."""
        inner, now = inner or {}, time.perf_counter()
        self.seconds |= {name: now - self.began - sum(inner.values()), **inner}
        self.began = now

    def __str__(self) -> str:
        steps = ", ".join(f"{name} {taken:.1f}" for name, taken in self.seconds.items())
        return f"{steps}, {sum(self.seconds.values()):.1f} in all"


def _default_output(data: Path) -> Path:
    # "." has no name to put a suffix on; that it is no file is said when it is read.
    if data == STANDARD or not data.name:
        return Path("model.onnx")
    return (data.with_suffix("") if data.suffix.lower() == ".gz" else data).with_suffix(".onnx")


def _read_valid(path: Path, rows: Labelled, reading: Reading) -> Labelled:
    """Read the validation rows; one whose label no training row has cannot be used."""
    found = read_labelled([path], rows.text_columns, rows.label_column, options=reading.options, bad=reading.bad)
    reading.say(found.notes)
    known, used = set(rows.labels), []
    for i, label in enumerate(found.labels):
        if label in known:
            used.append(i)
        else:
            why = f"validation rows have the label {label!r}, which no training row has; add examples or correct it"
            reading.bad.add(Bad(found.places[i], why))
    if not used:
        raise InputError(f"{path} has no rows that can be used.")
    return found.only(used)


def _marked(rows: Labelled, column: str, reading: Reading) -> Labelled:
    """Return the rows with what `column` holds as spans of the text; a row whose marks make no sense cannot be used."""
    spans, used = [], []
    for i, (cell, text) in enumerate(zip(rows.more[column], rows.texts, strict=True)):
        where = f"{rows.places[i]}, column {column!r}"
        try:
            spans.append(rationales.parse(cell, text, where))
        except InputError as error:
            why = str(error).removeprefix(f"{where}: ").removesuffix(".")
            if len(rows.text_columns) > 1:
                why += f"; marks are of {' and '.join(map(repr, rows.text_columns))} joined, one a line"
            reading.bad.add(Bad(where, why))
        else:
            used.append(i)
    if not used:
        raise InputError(f"No row can be used: none has marks in column {column!r} that make sense.")
    reading.say([f"{sum(map(bool, spans)):,} of {len(spans):,} rows have marks in the column {column!r}."])
    return replace(rows if len(used) == len(rows.texts) else rows.only(used), more={column: spans})


def _warn(rows: Labelled, judges: Labelled | None, reading: Reading) -> None:
    if reading.quiet:
        return
    for finding in find(_survey(rows), _survey(judges) if judges else None):
        click.echo(f"Warning: {finding}", err=True)


def _survey(rows: Labelled) -> Survey:
    survey = Survey(counts=False, places=rows.places)
    for text, label in zip(rows.texts, rows.labels, strict=True):
        survey.add(text, label)
    return survey


def run_training(
    rows: Labelled,
    output: Path,
    settings: dict[str, Any],
    *,
    valid: Labelled | None,
    console: Console,
    marks: Sequence[Spans] | None = None,
) -> "TrainReport":
    """Train with the options of the command line, as `textcls_training.run.train` says."""
    from textcls_training import run
    from textcls_training.config import from_options
    from textcls_training.progress import watching
    from textcls_training.stopping import stopped_by_ctrl_c

    config = from_options(len(set(rows.labels)), settings)

    def source(rows: Labelled, marks: Sequence[Spans] | None = None) -> run.Source:
        columns: Any = {"text_columns": rows.text_columns, "label_column": rows.label_column}
        return run.Source(texts=rows.texts, labels=rows.labels, rationales=marks, **columns)

    judges = source(valid) if valid else None
    with stopped_by_ctrl_c(quiet=console.quiet) as stop, watching(console) as watcher:
        return run.train(source(rows, marks), output, config, valid=judges, watcher=watcher, stop=stop)


def _ngram_sizes(value: str) -> tuple[int, ...] | None:
    if value in ("auto", "none"):
        return None if value == "auto" else ()
    try:
        return tuple(int(size) for size in value.split(","))
    except ValueError as error:
        raise click.BadParameter(
            f"{value!r} is neither auto, none nor sizes with commas between them, such as 3,5."
        ) from error


def _summarise(console: Console, report: "TrainReport", output: Path) -> None:
    held = report.held_out
    counts = ((report.rows, "row"), (len(held.labels), "label"), (report.epochs, "epoch"))
    console.print(f"Trained on {', '.join(render.plural(*count) for count in counts)}.")
    if held.rows:
        how = "Held out: " if report.folds == 1 else f"Cross-fitted in {report.folds} parts: "
        missing = [row.label for row in held.labels if not row.rows]
        console.print(Text.assemble(how, render.score_line(held), f" (before calibration {report.ece_before:.3f})"))
        console.print(render.label_table(held))
        if missing:
            names = ", ".join(map(repr, missing))
            console.print(f"No judging row has {names}: how well that is told apart is not known.", style="yellow")
    if report.gate is not None:
        console.print(f"The gate of the mixing layer has become {report.gate:.2f}.")
    if report.temperature == 1:
        console.print(f"Not calibrated: {report.held_out_rows} judging rows are too few for it.", style="yellow")
    size = f"{report.file_bytes / 1e6:.2f} MB"
    console.print(
        Text.assemble(
            (str(output), "bold"), f", {size}. Next: textcls evaluate {shlex.quote(str(output))} heldout.csv"
        ),
        soft_wrap=True,
    )
