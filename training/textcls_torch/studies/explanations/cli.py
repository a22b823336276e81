"""`textcls explain-benchmark`: how good a model's explanations are, beside those of other methods.

What needs PyTorch, whose import takes seconds, is imported when the command runs: help and completion must not wait.
"""

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np
from rich.progress import MofNCompleteColumn

from textcls import data as tables
from textcls._util import optional_dependencies
from textcls._util.atomic_write import check_not_an_input, check_output_path, write_computed
from textcls.cli.options import PATH, data_argument, model_argument, once, reading_options, text_column_option
from textcls.cli.reading import Reading
from textcls.data.memory import Readable
from textcls.display.terminal.console import stderr_console, stdout_console
from textcls.display.terminal.progress import progress_on
from textcls.errors import ConfigError, InputError
from textcls.evaluation import metrics
from textcls.model.classifier import Classifier
from textcls_torch.studies.explanations.removal import REMOVALS

if TYPE_CHECKING:
    from textcls_torch.studies.explanations.plausibility import Rationale

optional_dependencies.look_for("torch", "onnx", "scipy", "sklearn", "threadpoolctl")


@click.command(
    "explain-benchmark", epilog="Example: textcls explain-benchmark tickets.onnx heldout.csv --output page.html"
)
@model_argument
@data_argument
@text_column_option
@click.option("--label-column", metavar="NAME", help="Column of the label.  [default: that of the training]")
@click.option("--texts", type=click.IntRange(1), default=500, show_default=True, help="Most rows that are measured.")
@click.option("--methods", metavar="A,B", help="Methods, with commas between them.  [default: all]")
@click.option(
    "--removal",
    type=click.Choice([*REMOVALS, "both"]),
    default="delete",
    show_default=True,
    help="Whether a removed token disappears or is replaced by a sign.",
)
@click.option(
    "--rationale-column", metavar="NAME", help="Column of what people marked, in the forms that textcls train takes."
)
@click.option(
    "--rationales", type=PATH, help="What people marked, in a file of its own: JSON lines of row, tokens, rationales."
)
@click.option(
    "--rationale-class",
    type=click.Choice(["predicted", "right"]),
    default="predicted",
    show_default=True,
    help="Whose evidence is compared with rationales: that of the answer, as HateXplain does, or of the right label.",
)
@click.option("--other", type=PATH, help="Another model of the same labels, such as one of another seed.")
@click.option("--no-robustness", is_flag=True, help="Leave out changed texts and other models: most of the time.")
@click.option(
    "--sanity",
    is_flag=True,
    help="Also train a model of shuffled labels and one of random weights, with which explanations must not agree.",
)
@click.option(
    "--state",
    type=PATH,
    metavar="FILE",
    help="Keep each explanation in FILE as it is made: the same command goes on from there.",
)
@click.option("--output", "-o", type=PATH, help="Write an HTML page here.")
@click.option("--json", "json_path", type=PATH, help="Write all figures here.")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Same seed, same figures.")
@reading_options
def explain_benchmark_command(
    model: Path,
    data: tuple[Readable, ...],
    text_columns: tuple[str, ...],
    label_column: str | None,
    texts: int,
    methods: str | None,
    removal: str,
    rationale_column: str | None,
    rationales: Path | None,
    rationale_class: str,
    other: Path | None,
    no_robustness: bool,
    sanity: bool,
    state: Path | None,
    output: Path | None,
    json_path: Path | None,
    seed: int,
    reading: Reading,
) -> None:
    """Measure MODEL's explanations on the labelled files DATA; - reads standard input.

    Faithfulness (does the answer change without the tokens that are said to matter?), robustness and cost of the
    model's own contributions, beside LIME, SHAP, Integrated Gradients and others on the same model; with
    --rationale-column also how far they agree with people. Progress counts explanations, one per text and method.
    """
    from textcls_torch.studies.explanations import page
    from textcls_torch.studies.explanations.benchmark import explain_benchmark, require_one_label
    from textcls_torch.studies.explanations.report import print_report

    metrics.require()
    once(data)
    _check_together(rationales, rationale_column, other, reading, no_robustness=no_robustness)
    inputs = [path for path in (model, *data, rationales, other) if path is not None]
    for path in (output, json_path, state):
        if path is not None:
            check_output_path(path)
            check_not_an_input(path, inputs)
    if output is not None:
        page.require()
    classifier = Classifier.load(model)
    require_one_label(classifier)
    info = classifier.info
    usual = (info.text_columns, info.label_column)
    more = [] if rationale_column is None else [rationale_column]
    how: Any = {"usual": usual, "options": reading.options, "bad": reading.bad, "more": more}
    rows = tables.read_labelled(data, text_columns, label_column, **how)
    reading.say(rows.notes)
    reading.say_skipped()
    chosen = sorted(np.random.default_rng(seed).permutation(len(rows.texts))[:texts].tolist())
    console = stderr_console(quiet=reading.quiet)
    with progress_on(console, "explanations", MofNCompleteColumn(), transient=True) as callback:
        result = explain_benchmark(
            classifier,
            [rows.texts[i] for i in chosen],
            methods=methods.split(",") if methods is not None else None,
            removals=[r for r in REMOVALS if removal in (r, "both")],
            rationales=_marks(rationales, rationale_column, chosen, rows, rationale_class == "right"),
            other=Classifier.load(other) if other is not None else None,
            with_robustness=not no_robustness,
            sanity=sanity,
            state=state,
            seed=seed,
            callback=callback,
        )
    if json_path is not None:
        write_computed(json_path, json.dumps(result.to_json(), ensure_ascii=False, indent=1, allow_nan=False).encode())
    if output is not None:
        write_computed(output, page.render(result).encode())
    print_report(stdout_console(), result)


def _check_together(
    rationales: Path | None, column: str | None, other: Path | None, reading: Reading, *, no_robustness: bool
) -> None:
    """Refuse options that do not go together."""
    if no_robustness and other is not None:
        raise ConfigError("--other is a part of robustness, which --no-robustness leaves out; give one of them.")
    if rationales is not None and column is not None:
        raise ConfigError("--rationales and --rationale-column both say what people marked; give one of them.")
    if rationales is not None and reading.bad.skip:
        raise ConfigError("--rationales counts all rows, so that none may be skipped; leave --on-error skip out.")


def _marks(
    path: Path | None, column: str | None, chosen: list[int], rows: tables.Labelled, right: bool
) -> "list[Rationale | None] | None":
    """Return the rationale of each chosen row; with `right`, one that names no class is for the row's label."""
    from textcls_torch.studies.explanations.plausibility import of_spans
    from textcls_torch.studies.explanations.rationales import read_rationales
    from textcls_training.data.rationales import parse

    if column is not None:
        cells = rows.more[column]
        spans = [parse(cells[i], rows.texts[i], f"{rows.places[i]}, column {column!r}") for i in chosen]
        return [
            of_spans(rows.texts[i], of, rows.labels[i] if right else None) for i, of in zip(chosen, spans, strict=True)
        ]
    if path is None:
        return None
    found = read_rationales(path)
    beyond = max(found, default=0)
    if beyond >= len(rows.texts):
        raise InputError(
            f"{path} speaks of row {beyond}, and the table has {len(rows.texts)} rows; is it that of another table?"
        )
    if right:
        found = {row: replace(one, label=one.label or rows.labels[row]) for row, one in found.items()}
    return [found.get(row) for row in chosen]
