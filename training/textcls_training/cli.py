"""`textcls train`: labelled files in, one ONNX file out.

Importing PyTorch takes seconds, so that a wrong path or column would be told late: files are read and looked at first,
and what needs PyTorch is imported after. A test holds the choices below to those of the configuration.
"""

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
from rich.console import Console
from rich.text import Text

from textcls import artifact
from textcls.check import Survey, find
from textcls.cli import render
from textcls.cli.options import PATH, Reading, data_argument, once, reading_options
from textcls.data import Bad, Labelled, read_labelled
from textcls.data.source import STANDARD
from textcls.errors import InputError
from textcls_training.choices import ATTENTIONS, CLASS_WEIGHTS, DEVICES, EMBEDDINGS, MIXINGS, SIZES, VALUES

if TYPE_CHECKING:
    from textcls_training.run import TrainReport

NEEDED: Final = ("torch", "onnx", "onnxscript", "numba", "scipy", "sklearn")
MAX_TOKENS: Final = 2048

for _package in NEEDED:
    if find_spec(_package) is None:
        raise ModuleNotFoundError(f"No module named {_package!r}", name=_package)

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
@click.option(
    "--text-column",
    "text_columns",
    multiple=True,
    metavar="NAME",
    help="Column of the text; several are joined.  [default: text, or of a well-known name]",
)
@click.option("--label-column", metavar="NAME", help="Column of the label.  [default: label, or of a well-known name]")
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
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Same seed and data, same bytes.")
@click.option("--device", type=click.Choice(DEVICES), default="auto", show_default=True, help="Where to train.")
@reading_options
def train(
    data: tuple[Path, ...],
    output: Path | None,
    text_columns: tuple[str, ...],
    label_column: str | None,
    valid: Path | None,
    reading: Reading,
    **settings: Any,
) -> None:
    """Train a classifier on the labelled files DATA; - reads standard input.

    Without --valid, a tenth of the rows, chosen by a hash of the text, decides when to stop and how to calibrate (of
    few rows each fifth in turn); the saved model is then trained on all rows. What looks wrong with the rows is said
    first; `textcls check` says more.
    """
    output = output or _default_output(data[0])
    others = [valid] if valid else []
    once([*data, *others])
    artifact.check_not_an_input(output, [*data, *others])
    artifact.check_output_path(output)
    rows = read_labelled(data, text_columns, label_column, options=reading.options, bad=reading.bad)
    reading.say(rows.notes)
    judges = _read_valid(valid, rows, reading) if valid else None
    reading.say_skipped()
    _warn(rows, judges, reading)
    # Progress goes to standard error, so that `| head` or a closed pipe never ends a training.
    report = run_training(rows, output, settings, valid=judges, console=Console(stderr=True, quiet=reading.quiet))
    _summarise(render.console(), report, output)


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
    rows: Labelled, output: Path, settings: dict[str, Any], *, valid: Labelled | None, console: Console
) -> "TrainReport":
    """Train with the options of the command line, as `textcls_training.run.train` says."""
    from textcls_training import run
    from textcls_training.config import TrainConfig, default_dim
    from textcls_training.model import ModelConfig
    from textcls_training.progress import watching

    dim = settings.pop("dim") or default_dim(len(set(rows.labels)))
    model = ModelConfig(
        dim=dim, **{name: settings.pop(name) for name in ("mixing", "attention", "embedding", "values")}
    )
    config = TrainConfig(model=model, ngram_sizes=settings.pop("ngrams"), **settings)

    def source(rows: Labelled) -> run.Source:
        return run.Source(
            texts=rows.texts, labels=rows.labels, text_columns=rows.text_columns, label_column=rows.label_column
        )

    with watching(console) as watcher:
        return run.train(source(rows), output, config, valid=source(valid) if valid else None, watcher=watcher)


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
    console.print(f"Trained on {report.rows:,} rows, {len(held.labels)} labels, {report.epochs} epochs.")
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
        Text.assemble((str(output), "bold"), f", {size}. Next: textcls evaluate {output} heldout.csv"), soft_wrap=True
    )
