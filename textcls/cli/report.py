"""`textcls report`: all that labelled rows show about a model, as a page, Markdown, a model card or JSON."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import click

from textcls._util import optional_dependencies
from textcls._util.atomic_write import write_computed
from textcls.cli.options import (
    data_argument,
    label_column_option,
    label_options,
    model_argument,
    once,
    reading_options,
    text_column_option,
)
from textcls.cli.outputs import TABLE
from textcls.cli.reading import Reading
from textcls.data import TargetOptions
from textcls.data.memory import Readable
from textcls.display.plain_data import json_line
from textcls.display.report_files import BESIDE, FORMATS, report_file
from textcls.display.terminal.console import show
from textcls.display.terminal.report import report_summary
from textcls.display.text import plural
from textcls.errors import ConfigError
from textcls.evaluation import metrics
from textcls.evaluation.reporting import report as reporting
from textcls.evaluation.reporting import tracking
from textcls.evaluation.reporting.abstention import USUAL_COSTS, Costs
from textcls.evaluation.reporting.model_report import ModelReport
from textcls.model.classifier import Classifier

_BY_NAME: Final = {".html": "html", ".htm": "html", ".md": "markdown", ".json": "json"}


@click.command(epilog="Example: textcls report tickets.onnx heldout.csv --output report.html")
@model_argument
@data_argument
@click.option(
    "--output",
    "-o",
    type=TABLE,
    help="File to write: .html, .md or .json.  [default: what matters most, on standard output]",
)
@click.option(
    "--output-format",
    type=click.Choice(FORMATS),
    help="Format of the output; card is the README.md of a model on the Hugging Face Hub.  [default: from its name]",
)
@text_column_option
@label_column_option
@click.option(
    "--by",
    multiple=True,
    metavar="NAME",
    help="Also judge the rows of each value of this column, such as their source; may be repeated. Categories that the "
    "model reads beside the text are judged anyway.",
)
@click.option(
    "--error-cost",
    type=click.FloatRange(0),
    help=f"What a wrong answer costs; not with several labels per text.  [default: {USUAL_COSTS.error}]",
)
@click.option(
    "--abstention-cost",
    type=click.FloatRange(0),
    help=f"What a row costs that the model leaves to people; likewise.  [default: {USUAL_COSTS.abstention}]",
)
@click.option("--mlflow", "tracked", is_flag=True, help="Log figures, page and model card to MLflow, as a run.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@label_options
@reading_options
def report(
    model: Path,
    data: tuple[Readable, ...],
    output: Path | None,
    output_format: str | None,
    text_columns: tuple[str, ...],
    label_column: str | None,
    by: tuple[str, ...],
    error_cost: float | None,
    abstention_cost: float | None,
    tracked: bool,
    as_json: bool,
    targets: TargetOptions,
    reading: Reading,
) -> None:
    """Report how good MODEL is on the labelled files DATA, why it errs, where it is weak, and what it relies on.

    The page is one file for managers and engineers: figures with intervals, confusions, whether scores keep what they
    promise, how often it is right if it may abstain and what that costs, errors by the words behind them, kinds of
    rows (lengths, scripts, unknown words, values of --by) on which it is weaker by more than chance, words for and
    against each label, shortcuts. With several labels per text it tells of each label's threshold, and of labels that
    are missed or too many. It quotes texts of DATA.
    """
    kind = _format(output, output_format, as_json=as_json)
    metrics.require()
    if tracked:
        with optional_dependencies.needed_by("--mlflow"):
            optional_dependencies.look_for("mlflow")
    once(data)
    classifier = Classifier.load(model)
    costs = None
    if error_cost is not None or abstention_cost is not None:
        given = {"error": error_cost, "abstention": abstention_cost}
        costs = replace(USUAL_COSTS, **{name: cost for name, cost in given.items() if cost is not None})
    found = report_on(model, classifier, data, (text_columns, label_column), targets, reading, by=by, costs=costs)
    if tracked:
        files = {name: report_file(form, model, data, found) for name, form in BESIDE.items()}
        reading.say([f"Logged to MLflow as run {tracking.log(found, files)}."])
    if output is not None:
        write_computed(output, report_file(kind, model, data, found).encode())
        click.echo(f"{plural(found.rows, 'row')} -> {output}")
    elif as_json:
        click.echo(json_line(found.as_json()))
    else:
        show(report_summary(found))


def report_on(
    model: Path,
    classifier: Classifier,
    data: Sequence[Readable],
    columns: tuple[Sequence[str], str | None],
    targets: TargetOptions,
    reading: Reading,
    *,
    by: Sequence[str] = (),
    costs: Costs | None = None,
) -> ModelReport:
    """Report on a model by labelled files; with several labels per text they are read as those of its training were.

    Raises:
        ConfigError: there are costs, and the model may give several labels; or labels are requested in a form it lacks.
        InputError: the files cannot be read, or there is nothing to report on.
    """
    values: dict[str, list[object]] = {name: [] for name in by}
    if classifier.info.several:
        reporting.require_no_costs(costs)
        opened: Any = reading.label_sets(data, *columns, targets, classifier.info, more=by)
    else:
        if targets.label_sets:
            raise ConfigError(f"{model} gives each text one label; report on rows with one label each.")
        opened = reading.labelled_rows(data, *columns, classifier.info, more=by)
    with opened as rows:

        def read() -> Iterator[tuple[str, Any]]:
            for row in rows:
                for name, column in values.items():
                    column.append(row.row.fields.get(name))
                yield row.text, row.label

        found: ModelReport = reporting.report(classifier, read(), columns=values, costs=costs)
    reading.say_skipped()
    return found


def _format(output: Path | None, asked: str | None, *, as_json: bool) -> str:
    """Return the format in which a file is written; irrelevant without one."""
    if output is None:
        if asked is not None:
            raise ConfigError("--output-format needs --output, the file to write.")
        return "json"
    if as_json:
        raise ConfigError("--json prints, and --output writes a file; name it .json, or leave one of them out.")
    found = asked or _BY_NAME.get(output.suffix.lower())
    if found is None:
        raise ConfigError(
            f"The name {output} does not say the format; end it in .html, .md or .json, or add --output-format."
        )
    return found
