"""`textcls inspect`: the metadata of a model file, and what the model relies on for your texts."""

from pathlib import Path
from typing import Final

import click
from click.core import ParameterSource

from textcls._util.atomic_write import atomic_write
from textcls.cli.lexicon import check_lexicon_path, show_lexicon, terms_of, write_lexicon
from textcls.cli.options import (
    PATH,
    exchange_option,
    model_argument,
    once,
    reading_options,
    text_column_option,
)
from textcls.cli.outputs import OUTPUT, TABLE, html_option
from textcls.cli.reading import Reading
from textcls.cli.showing import show_found
from textcls.display.html.exchanges import exchange_fragment
from textcls.display.html.fragments import document, made_of
from textcls.display.html.global_explanation import global_explanation_fragment
from textcls.display.html.groups import groups_fragment
from textcls.display.plain_data import json_line
from textcls.display.plots import figures
from textcls.display.plots.columns import plot_columns
from textcls.display.remarks import exchange_line, groups_lines
from textcls.display.terminal.columns import column_report
from textcls.display.terminal.console import show
from textcls.display.terminal.counterfactual import exchange_report
from textcls.display.terminal.global_explanation import global_explanation_report
from textcls.display.terminal.groups import groups_report
from textcls.display.terminal.model_info import model_table, threshold_table
from textcls.display.text import plural
from textcls.errors import ConfigError
from textcls.explain.columns import column_effects
from textcls.explain.exchanges import ExchangeReport, compare_exchanged
from textcls.explain.global_explanation.explainer import explain_globally
from textcls.explain.global_explanation.groups import GroupComparison, compare_groups
from textcls.explain.global_explanation.summary import GlobalExplanation
from textcls.explain.lexicon.table import lexicon, lexicon_of
from textcls.explain.word_groups import Groups, read_groups
from textcls.model.classifier import Classifier
from textcls.model.labels import label_number

LISTED: Final = 10
# Options that need --evidence.
_OF_EVIDENCE: Final = (
    *("against", "groups", "lexicon_path", "text_columns", "label_column", "only", "top", "html"),
    *("format", "encoding", "delimiter", "no_quotes", "on_error", "quiet"),
)
# Those of them that are also options of --words.
_OF_WORDS: Final = ("only", "top")


@click.command(
    epilog="""Example: textcls inspect tickets.onnx

    Example: textcls inspect tickets.onnx --evidence heldout.csv

    Example: textcls inspect tickets.onnx --evidence heldout.csv --exchange names.txt

    Example: textcls inspect tickets.onnx --evidence november.csv --against october.csv"""
)
@model_argument
@click.option(
    "--evidence",
    "data",
    type=PATH,
    metavar="DATA",
    help="Show which words count for and against each label over the texts of a file, and any shortcuts.",
)
@click.option(
    "--against",
    type=PATH,
    metavar="DATA",
    help="Show which words count more in --evidence than in these texts, and which count more in these.",
)
@exchange_option
@click.option(
    "--lexicon",
    "lexicon_path",
    type=TABLE,
    metavar="FILE",
    help="Write what the model says of each word and pair of the texts, for every label: .csv or .json.",
)
@text_column_option
@click.option("--label-column", metavar="NAME", help="Column of the label.  [default: that of the training, if there]")
@click.option("--label", "only", multiple=True, metavar="LABEL", help="Show only this label; may be repeated.")
@click.option(
    "--top",
    type=click.IntRange(min=1),
    help="List this many words and word pairs for and against each label, with numbers and examples.  "
    f"[default: an overview; in JSON and pages {LISTED}]",
)
@click.option(
    "--words", is_flag=True, help="Show the strongest words of each label, without any data: see textcls lexicon."
)
@click.option(
    "--verbose", "-v", is_flag=True, help="Also show the network, the seed and the versions it was made with."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@html_option
@click.option(
    "--plot",
    "plot_path",
    type=OUTPUT,
    metavar="FILE",
    help="Write a plot of what each column beside the text adds: .svg, .png or .pdf.",
)
@reading_options
def inspect(
    model: Path,
    data: Path | None,
    against: Path | None,
    groups: Path | None,
    lexicon_path: Path | None,
    text_columns: tuple[str, ...],
    label_column: str | None,
    only: tuple[str, ...],
    top: int | None,
    words: bool,
    verbose: bool,
    as_json: bool,
    html: Path | None,
    plot_path: Path | None,
    reading: Reading,
) -> None:
    """Show labels, settings, training summary and format of MODEL; with --evidence, which words its answers rest on."""
    _check_together(data, lexicon_path, words=words)
    classifier = Classifier.load(model)
    if words:
        show_lexicon(lexicon_of(classifier, terms_of(classifier, None)), only, top)
        return
    if plot_path is not None:
        _write_plot(plot_path, classifier)
        return
    if data is None:
        _show_facts(model, classifier, as_json, verbose)
        return
    once([path for path in (data, against) if path is not None])
    only = tuple(map(classifier.known_as, only))
    for label in only:
        label_number(classifier.labels, label)  # Refused before the file is opened.
    if against is not None:
        columns = (text_columns, label_column, classifier.info)
        with reading.texts_and_labels(data, *columns) as first, reading.texts_and_labels(against, *columns) as second:
            texts = ((text for text, _ in rows) for rows in (first, second))
            difference = compare_groups(classifier, *texts, top=top or LISTED, labels=only or None)
        reading.say_skipped()
        names = (data.name, against.name) if data.name != against.name else (str(data), str(against))
        _show_groups(model, difference, names, as_json, html, compact=top is None)
        return
    exchanged = [] if groups is None else _groups(groups, classifier, reading)
    by_words = lexicon_path is not None or bool(exchanged)
    info = classifier.info.of_texts_alone if by_words else classifier.info
    with reading.texts_and_labels(data, text_columns, label_column, info) as rows:
        if lexicon_path is not None:
            write_lexicon(lexicon_path, lexicon(classifier, (text for text, _ in rows)))
        elif exchanged:
            report = compare_exchanged(classifier, (text for text, _ in rows), exchanged)
        else:
            found = explain_globally(classifier, rows, top=top or LISTED, labels=only or None)
    reading.say_skipped()
    if lexicon_path is not None:
        return
    if exchanged:
        _show_exchanges(model, report, as_json, html)
    else:
        _show_evidence(model, found, as_json, html, compact=top is None)


def _groups(path: Path, classifier: Classifier, reading: Reading) -> Groups:
    """Read the groups of words to exchange."""
    if classifier.info.columns:
        reading.say(["Words are exchanged in texts alone: rows are answered as if their columns were empty."])
    return read_groups(path)


def _check_together(data: Path | None, lexicon_path: Path | None, *, words: bool) -> None:
    """Refuse options that do not go together, and a lexicon path whose name indicates no format."""
    if lexicon_path is not None:
        check_lexicon_path(lexicon_path)
    for other in ("data", "words", "as_json"):
        if len(given := _given("plot_path", other)) > 1:
            raise ConfigError(f"{given[0]} and {given[1]} cannot be combined; give one of them.")
    if words and (given := _given("data", "as_json")):
        raise ConfigError(f"--words and {given[0]} cannot be combined; textcls lexicon writes the whole table.")
    idle = (name for name in _OF_EVIDENCE if not (words and name in _OF_WORDS))
    if data is None and (given := _given(*idle)):
        raise ConfigError(f"{given[0]} needs --evidence with a file of texts.")
    if len(given := _given("against", "groups", "lexicon_path")) > 1:
        raise ConfigError(f"{given[0]} and {given[1]} cannot be combined; give one of them.")
    whole = (*_given("lexicon_path"), *_given("groups"))
    less = _given("only", "top", *(("as_json", "html") if _given("lexicon_path") else ()))
    if whole and less:
        raise ConfigError(f"{whole[0]} writes or shows its table whole; leave {less[0]} out.")


def _given(*names: str) -> list[str]:
    """Return those of the options that are on the command line; those in a settings file may wait for their use."""
    context = click.get_current_context()
    given = {name for name in names if context.get_parameter_source(name) == ParameterSource.COMMANDLINE}
    return [option.opts[0] for option in context.command.params if option.name in given]


def _write_plot(path: Path, classifier: Classifier) -> None:
    figures.require("--plot")
    form = figures.format_of(path)
    picture = figures.content(plot_columns(column_effects(classifier), classifier.labels), form)
    with atomic_write(path) as file:
        file.write(picture)
    click.echo(f"{plural(len(classifier.info.columns), 'column')} -> {path}")


def _show_facts(model: Path, classifier: Classifier, as_json: bool, verbose: bool) -> None:
    effects = column_effects(classifier)
    if as_json:
        added = [effect.to_json(classifier.labels) for effect in effects]
        click.echo(json_line(classifier.info.to_json() | ({"column_effects": added} if added else {})))
    else:
        show([model_table(model, classifier.info, verbose=verbose)])
        if classifier.info.several:
            show(threshold_table(classifier.info))
        show(column_report(effects, classifier.labels))


def _show_exchanges(model: Path, found: ExchangeReport, as_json: bool, html: Path | None) -> None:
    title = f"{model.stem}: words exchanged"
    show_found(
        found,
        html=html,
        as_json=as_json,
        line=exchange_line(found),
        page=lambda: document(title, exchange_fragment(title, found), about=made_of(model)),
        report=lambda width: exchange_report(found, width),
    )


def _show_groups(
    model: Path, found: GroupComparison, names: tuple[str, str], as_json: bool, html: Path | None, *, compact: bool
) -> None:
    title = f"What {model.stem} relies on: two groups of texts"
    show_found(
        found,
        html=html,
        as_json=as_json,
        line=groups_lines(found, *names)[0],
        page=lambda: document(title, groups_fragment(title, found, names), about=made_of(model)),
        report=lambda width: groups_report(found, names, width, compact=compact),
    )


def _show_evidence(model: Path, found: GlobalExplanation, as_json: bool, html: Path | None, *, compact: bool) -> None:
    title = f"What {model.stem} relies on"
    shortcuts = "" if found.audit is None else f", {plural(len(found.audit.shortcuts), 'shortcut')}"
    show_found(
        found,
        html=html,
        as_json=as_json,
        line=f"{plural(found.texts, 'text')}{shortcuts}",
        page=lambda: document(title, global_explanation_fragment(title, found), about=made_of(model)),
        report=lambda width: global_explanation_report(found, width, compact=compact),
    )
