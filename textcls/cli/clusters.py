"""`textcls clusters`: which texts a model puts together, and by which words."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from textcls.cli.options import PATH, escape_formulas_option, model_argument, reading_options, text_column_option
from textcls.cli.outputs import OUTPUT, TABLE
from textcls.cli.reading import Reading
from textcls.cli.showing import show_found
from textcls.data.columns import DEFAULT_LABEL_COLUMN
from textcls.data.rows import Row
from textcls.data.writing import NewTable, Writer
from textcls.display.html.clusters import clusters_fragment
from textcls.display.html.fragments import document, made_of
from textcls.display.terminal.clusters import clusters_report
from textcls.display.text import in_a_shell, plural
from textcls.errors import ConfigError, InputError
from textcls.explain.clusters.survey import EXAMPLES, AnsweredText, ClusterSurvey, answered, survey_clusters
from textcls.model.artifact import CLUSTERS, ModelInfo
from textcls.model.classifier import Classifier
from textcls.model.labels import label_number, label_problem


@click.command(
    epilog="""Example: textcls clusters topics.onnx texts.csv --output clusters.html

    Example: textcls clusters topics.onnx texts.csv --assign labelled.csv --names names.json"""
)
@model_argument
@click.argument("data", type=PATH)
@click.option("--output", "-o", type=OUTPUT, metavar="FILE", help="Write a page that needs nothing but a browser.")
@click.option("--examples", type=click.IntRange(1, 100), default=EXAMPLES, show_default=True, help="Of each cluster.")
@text_column_option
@click.option(
    "--label-column",
    metavar="NAME",
    help="Column of labels to compare the clusters with.  [default: label, or as in training, if present]",
)
@click.option(
    "--assign",
    type=TABLE,
    metavar="FILE",
    help="Write the texts with their cluster as the label, to correct and train on: .csv, .tsv, .jsonl or .parquet.",
)
@click.option(
    "--names",
    type=PATH,
    metavar="FILE",
    help=(
        'Names for the labels that --assign writes: a JSON file such as {"refund, money": "refunds"}; clusters with '
        "the same name become one label, and those named null are left out."
    ),
)
@click.option(
    "--threshold", type=click.FloatRange(0, 1), help="Leave texts whose cluster scores below this out of --assign."
)
@escape_formulas_option
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@reading_options
def clusters(
    model: Path,
    data: Path,
    output: Path | None,
    examples: int,
    text_columns: tuple[str, ...],
    label_column: str | None,
    assign: Path | None,
    names: Path | None,
    threshold: float | None,
    escape_formulas: bool,
    as_json: bool,
    reading: Reading,
) -> None:
    """Show the clusters into which MODEL sorts the texts of DATA: sizes, words, examples.

    MODEL comes from textcls pretrain --objective mutual-information, or is any model with one label per text. If rows
    have labels, the report says how well the clusters agree with them; the model need not know these labels. --output
    writes a page.
    """
    if assign is None and (names is not None or threshold is not None):
        raise ConfigError(f"{'--names' if names else '--threshold'} needs --assign and a file.")
    if assign is None and escape_formulas:
        raise ConfigError("--escape-formulas is for the file of --assign; leave it out.")
    table = None if assign is None else NewTable.at(assign, escape_formulas=escape_formulas)
    classifier = Classifier.load(model)
    new_names = _read_names(names, classifier.labels) if names is not None else {}
    written: Counter[str] = Counter()
    with reading.texts_and_labels(data, text_columns, label_column, _columns(classifier.info)) as rows:
        answers = answered(classifier, ((text, label if isinstance(label, str) else None) for text, label in rows))
        with _assigned(table, answers, new_names, threshold or 0.0, written) as seen:
            found = survey_clusters(classifier, seen, examples=examples)
    reading.say_skipped()
    _show(model, found, output, as_json)
    if assign is not None and not as_json:
        enough = len(written) > 1
        then = f"Next: textcls train {in_a_shell(assign)}" if enough else "All have one label, and training needs two."
        summary = f"{plural(written.total(), 'text')} of {found.texts:,} with their clusters as labels"
        click.echo(f"{summary} -> {assign}. {then}")


def _columns(info: ModelInfo) -> ModelInfo:
    """Return the model with the usual label column, if it has learned from none."""
    return replace(info, label_column=DEFAULT_LABEL_COLUMN) if CLUSTERS in info.training else info


def _read_names(path: Path, labels: tuple[str, ...]) -> dict[str, str | None]:
    """Return the new names of clusters, None for a cluster that is left out.

    Raises:
        ConfigError: the file does not contain such names, or the model has no such cluster.
    """
    try:
        found: Any = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path} cannot be read as JSON ({error}).") from error
    if not isinstance(found, dict) or not all(name is None or isinstance(name, str) for name in found.values()):
        raise ConfigError(f'{path} must hold clusters with their new names, such as {{"refund, money": "refunds"}}.')
    for cluster, name in found.items():
        label_number(labels, cluster)
        if name is not None and (wrong := label_problem(name)):
            raise ConfigError(f"{path}: the new name of {cluster!r} {wrong}.")
    return found


@contextmanager
def _assigned(
    table: NewTable | None,
    answers: Iterable[AnsweredText],
    names: Mapping[str, str | None],
    threshold: float,
    written: Counter[str],
) -> Iterator[Iterable[AnsweredText]]:
    """Write passing texts with their clusters as labels to `table`, and count them; do nothing without a table."""
    if table is None:
        yield answers
        return
    with table.open(("text",), ("label",)) as writer:
        yield _written(writer, answers, names, threshold, written)


def _written(
    writer: Writer,
    answers: Iterable[AnsweredText],
    names: Mapping[str, str | None],
    threshold: float,
    written: Counter[str],
) -> Iterator[AnsweredText]:
    for number, answer in enumerate(answers):
        label = names.get(answer.prediction.label, answer.prediction.label)
        if label is not None and answer.prediction.score >= threshold:
            writer.write([Row(number, {"text": answer.text})], [{"label": label}])
            written[label] += 1
        yield answer
    if not written:
        raise InputError("No text has a cluster to be assigned, by --threshold and --names; nothing was written.")


def _show(model: Path, found: ClusterSurvey, html: Path | None, as_json: bool) -> None:
    title = f"Clusters of {model.stem}"
    show_found(
        found,
        html=html,
        as_json=as_json,
        line=f"{plural(found.texts, 'text')}, {plural(len(found.clusters), 'cluster')}",
        page=lambda: document(title, clusters_fragment(title, found), about=made_of(model)),
        report=lambda width: clusters_report(found, width),
    )
