"""`textcls train`: a labelled table in, one ONNX file out."""

from pathlib import Path
from typing import get_args

import click
from rich.console import Console
from rich.text import Text

from textcls import artifact
from textcls import data as tables
from textcls.cli import render
from textcls.cli.options import PATH
from textcls_training.config import ClassWeight, Device, Size, TrainConfig, default_dim
from textcls_training.mixing import MIXERS
from textcls_training.model import Attention, Embedding, ModelConfig, Values
from textcls_training.progress import watching
from textcls_training.run import Source, TrainReport
from textcls_training.run import train as run_training

DEFAULT = ModelConfig()
NGRAMS = click.option(
    "--ngrams",
    default="auto",
    show_default=True,
    metavar="SIZES",
    callback=lambda _context, _parameter, value: _ngram_sizes(value),
    help="Character n-grams of a word, such as 3,5; none answers faster and is less accurate.",
)


@click.command(epilog="Example: textcls train tickets.csv --output tickets.onnx")
@click.argument("data", type=PATH)
@click.option("--output", "-o", type=PATH, help="The ONNX file to write.  [default: DATA with the suffix .onnx]")
@click.option(
    "--text-column",
    "text_columns",
    multiple=True,
    metavar="NAME",
    help="Column of the text; several are joined.  [default: text]",
)
@click.option(
    "--label-column",
    default=tables.DEFAULT_LABEL_COLUMN,
    show_default=True,
    metavar="NAME",
    help="Column of the label.",
)
@click.option("--valid", type=PATH, help="Labelled rows that choose epoch and temperature.  [default: a tenth of DATA]")
@click.option(
    "--mixing",
    type=click.Choice(list(MIXERS)),
    default=DEFAULT.mixing,
    show_default=True,
    help="How tokens see each other.",
)
@click.option("--mixing-rate", type=float, help="Learning rate of the mixing layer.  [default: 0.001]")
@click.option(
    "--attention",
    type=click.Choice(get_args(Attention)),
    default=DEFAULT.attention,
    show_default=True,
    help="How scores become weights.",
)
@click.option(
    "--embedding",
    type=click.Choice(get_args(Embedding)),
    default=DEFAULT.embedding,
    show_default=True,
    help="What a token's vector is made of: rows of a table, or the bits of its hash (words alone, tens of kilobytes).",
)
@click.option(
    "--values",
    type=click.Choice(get_args(Values)),
    default=DEFAULT.values,
    show_default=True,
    help="What attention sums up.",
)
@NGRAMS
@click.option("--bigrams/--no-bigrams", default=True, show_default=True, help="Rows for pairs of neighbouring words.")
@click.option(
    "--dim", type=click.IntRange(1, 1024), help="Width of a token's vector.  [default: 32; 64 for more than 32 labels]"
)
@click.option("--epochs", type=click.IntRange(1), help="Most passes over the data.  [default: by the number of rows]")
@click.option(
    "--max-tokens",
    type=click.IntRange(1),
    default=TrainConfig().max_tokens,
    show_default=True,
    help="Tokens of a text that are read.",
)
@click.option(
    "--class-weight",
    type=click.Choice(get_args(ClassWeight)),
    default="none",
    show_default=True,
    help="Weigh rare labels up.",
)
@click.option(
    "--size",
    type=click.Choice(get_args(Size)),
    default="default",
    show_default=True,
    help="How large the saved model may be: 300 KB, 1 MB, 3 MB and 0.1 MB for each label above 10, or any size.",
)
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Same seed and data, same bytes.")
@click.option(
    "--device", type=click.Choice(get_args(Device)), default="auto", show_default=True, help="Where to train."
)
def train(
    data: Path,
    output: Path | None,
    text_columns: tuple[str, ...],
    label_column: str,
    valid: Path | None,
    mixing: str,
    mixing_rate: float | None,
    attention: Attention,
    embedding: Embedding,
    values: Values,
    ngrams: tuple[int, ...] | None,
    bigrams: bool,
    dim: int | None,
    epochs: int | None,
    max_tokens: int,
    class_weight: ClassWeight,
    size: Size,
    seed: int,
    device: Device,
) -> None:
    """Train a classifier on the labelled CSV file DATA.

    Without --valid, a tenth of the rows, chosen by a hash of the text, decides when to stop and how to calibrate (of
    few rows each fifth in turn); the saved model is then trained on all rows.
    """
    # "." has no name to put a suffix on; that it is no file is said when it is read.
    output = output or (data.with_suffix(".onnx") if data.name else Path("model.onnx"))
    artifact.check_not_an_input(output, [data, *([valid] if valid else [])])
    columns = text_columns or tables.DEFAULT_TEXT_COLUMNS
    source = _read(data, columns, label_column)
    config = TrainConfig(
        model=ModelConfig(
            mixing=mixing,
            attention=attention,
            embedding=embedding,
            values=values,
            dim=dim or default_dim(len(set(source.labels))),
        ),
        mixing_rate=mixing_rate,
        ngram_sizes=ngrams,
        bigrams=bigrams,
        epochs=epochs,
        max_tokens=max_tokens,
        class_weight=class_weight,
        size=size,
        seed=seed,
        device=device,
    )
    judges = _read(valid, columns, label_column) if valid else None
    # Progress goes to standard error, so that `| head` or a closed pipe never ends a training.
    with watching(Console(stderr=True)) as watcher:
        report = run_training(source, output, config, valid=judges, watcher=watcher)
    _summarise(render.console(), report, output)


def _ngram_sizes(value: str) -> tuple[int, ...] | None:
    if value in ("auto", "none"):
        return None if value == "auto" else ()
    try:
        return tuple(int(size) for size in value.split(","))
    except ValueError as error:
        raise click.BadParameter(
            f"{value!r} is neither auto, none nor sizes with commas between them, such as 3,5."
        ) from error


def _read(path: Path, text_columns: tuple[str, ...], label_column: str) -> Source:
    rows = tables.read_labelled(path, text_columns, label_column)
    return Source(texts=rows.texts, labels=rows.labels, text_columns=text_columns, label_column=label_column)


def _summarise(console: Console, report: TrainReport, output: Path) -> None:
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
