"""`textcls explain`: one text, with what each token added to the answer."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import click

from textcls._util.atomic_write import atomic_write
from textcls.cli.grouped_help import Group, GroupedCommand
from textcls.cli.options import PATH, exchange_option, model_argument, threshold_option
from textcls.cli.outputs import OUTPUT, html_option
from textcls.cli.reading import Reading
from textcls.data import BadRows, ReadOptions
from textcls.display.html import explanation as html_explanation
from textcls.display.html.fragments import document, made_of
from textcls.display.html.similar_rows import similar_part
from textcls.display.plain_data import explanation_json, json_line
from textcls.display.plots import explanation as plots
from textcls.display.plots import figures
from textcls.display.remarks import explained_labels, left_out_line
from textcls.display.terminal import explanation as terminal_explanation
from textcls.display.terminal.console import Printable, show
from textcls.display.terminal.counterfactual import change_report
from textcls.display.terminal.similar_rows import similar_report
from textcls.display.text import listed, named, percent
from textcls.errors import ConfigError, InputError
from textcls.explain.counterfactual import Search, counterfactual
from textcls.explain.similar_rows import SimilarRows, similar_rows
from textcls.explain.stability import load_others, with_spread
from textcls.explain.word_groups import Groups, read_groups
from textcls.model.artifact import ModelInfo
from textcls.model.classifier import Classifier
from textcls.model.columns import cells_of, pack
from textcls.model.explanation import Attribution, Explanation
from textcls.model.prediction import Prediction, explanation_of
from textcls.model.sub_token_attribution import SubTokenAttribution
from textcls.model.text_columns import and_
from textcls.model.units import UNITS, Unit

_GROUPS: Final = (
    Group("What is asked", ("column", "label", "contrast", "counterfactual"), ("exchange", "threshold")),
    Group("What is shown", ("top", "unit", "parts"), ("stability", "rows", "row-texts")),
    Group("Output", ("json", "html"), ("plot",)),
)


@click.command(
    cls=GroupedCommand,
    groups=_GROUPS,
    epilog='Example: textcls explain tickets.onnx "my card was charged twice"',
    # A text may begin with a hyphen.
    context_settings={"ignore_unknown_options": True},
)
@model_argument
@click.argument("words", nargs=-1, required=True, metavar="TEXT")
@click.option(
    "--column",
    "columns",
    multiple=True,
    metavar="NAME=VALUE",
    help="Value of a column beside TEXT, for a model that reads columns; may be repeated, and others are missing.",
)
@click.option(
    "--label",
    metavar="LABEL",
    help="Explain this label, or node of a tree.  [default: the winner; of several labels the first three assigned]",
)
@click.option(
    "--contrast",
    "--against",
    "against",
    metavar="LABEL",
    help="Say why not this label, or node, instead of why not the others.",
)
@click.option(
    "--top",
    type=click.IntRange(min=1),
    help=f"List this many tokens, and parts.  [default: {terminal_explanation.SHOWN_TOKENS}; "
    f"in a page {html_explanation.SHOWN_TOKENS}]",
)
@click.option(
    "--parts",
    "with_parts",
    is_flag=True,
    help="Also list words, sequences of words, and pieces of unknown words.",
)
@click.option(
    "--unit",
    type=click.Choice(UNITS),
    help="Add up and average contributions over words, phrases or sentences; in long texts sentences read best.  "
    "[default: token; in scripts without spaces, except for --json, word]",
)
@click.option(
    "--counterfactual",
    "with_change",
    is_flag=True,
    help="Also search for the fewest tokens, or else sentences, without which the answer would be another, or with "
    "--contrast that one.",
)
@exchange_option
@click.option(
    "--stability",
    "others_path",
    type=PATH,
    metavar="PATH",
    help="Show the range of each number over other models of the same rows: a folder of them, such as train "
    "--resamples writes, or a model file.",
)
@click.option(
    "--rows",
    "rows_path",
    type=PATH,
    metavar="DATA",
    help="Also show which rows of a labelled file, such as that of the training, are most like TEXT, by which words.",
)
@click.option("--row-texts", is_flag=True, help="With --rows: show the texts of these rows.")
@threshold_option
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of colours.")
@html_option
@click.option(
    "--plot",
    "plot_path",
    type=OUTPUT,
    metavar="FILE",
    help="Write a plot for slides: from the bias to the logit, token by token; .svg, .png or .pdf.",
)
def explain(
    model: Path,
    words: tuple[str, ...],
    columns: tuple[str, ...],
    label: str | None,
    against: str | None,
    top: int | None,
    with_parts: bool,
    unit: Unit | None,
    with_change: bool,
    groups: Path | None,
    others_path: Path | None,
    rows_path: Path | None,
    row_texts: bool,
    threshold: float | None,
    as_json: bool,
    html: Path | None,
    plot_path: Path | None,
) -> None:
    """Classify TEXT with MODEL and show what each token added; TEXT `-` reads standard input.

    Blue tokens speak for the winning label, orange ones against it. The numbers add up to the logit. Where a text may
    have several labels, each of those assigned is explained by itself.
    """
    _check_together(groups, rows_path, with_change=with_change, row_texts=row_texts)
    if plot_path is not None:
        figures.format_of(plot_path)
        figures.require("--plot")
    exchanged = [] if groups is None else read_groups(groups)
    classifier = Classifier.load(model)
    others = [] if others_path is None else load_others(others_path, classifier)
    for name in (label, against):
        if name in classifier.labels and classifier.tree is not None and len(classifier.tree.below(name)) > 1:
            node = f"{name} {classifier.tree.separator.strip()}"
            click.echo(f"Note: {name!r} is a label itself; with the labels below it, it is {node!r}.", err=True)
    row = _row(_text(words, model), columns, classifier.info)
    prediction = classifier.predict(row, explain=True, threshold=threshold)
    explanation = explanation_of(prediction)
    by_others = [other.predict(explanation.row_for(other.info.columns), explain=True) for other in others]
    shown_by = explanation.grouped(unit or "token") if unit or as_json else explanation.readable()
    answer = _ExplainedText(prediction, explained_labels(prediction, label, against), against, shown_by, by_others)
    answer.sub_tokens = classifier.parts(explanation.text) if with_parts else None
    if with_change:
        answer.change = _change(classifier, answer, label, exchanged)
    if rows_path is not None:
        answer.similar, answer.row_texts = _similar(classifier, answer, rows_path), row_texts
    if html is not None:
        _write_page(html, model, answer, label, top or html_explanation.SHOWN_TOKENS)
    if plot_path is not None:
        _write_plot(plot_path, answer, top or plots.SHOWN_TOKENS)
    if as_json:
        click.echo(json_line(_plain(answer, classifier.info.temperature)))
    else:
        _say(answer, html, plot_path, top or terminal_explanation.SHOWN_TOKENS)


def _text(words: Sequence[str], model: Path) -> str:
    """Return the text to be explained.

    Raises:
        click.UsageError: there are several words, which is what a shell makes of an unquoted text.
    """
    if odd := next((word for word in words if len(words) > 1 and word.startswith("--")), None):
        raise click.UsageError(f"No such option: {odd}")
    if len(words) > 1:
        raise click.UsageError(f'Put the text in quotes: textcls explain {model} "{" ".join(words)}"')
    (text,) = words
    if text == "-":
        return _standard_input()
    with suppress(OSError, ValueError):  # no name that a file could have
        if Path(text).is_file():
            click.echo(f"Note: this explains the words {text!r}; textcls predict answers the rows of a file.", err=True)
    return text


def _check_together(groups: Path | None, rows: Path | None, *, with_change: bool, row_texts: bool) -> None:
    """Refuse options that need others."""
    if groups is not None and not with_change:
        raise ConfigError("--exchange needs --counterfactual, which then tries the words of a line for each other.")
    if row_texts and rows is None:
        raise ConfigError("--row-texts needs --rows, the file of the rows.")


def _row(text: str, given: Sequence[str], info: ModelInfo) -> str:
    """Return the row of a text, with the values of columns beside it: `product=phone`."""
    names = [column.name for column in info.columns]
    left_out = [gain["name"] for gain in info.training.get("columns", [])]
    fields: dict[str, str] = {}
    for one in given:
        name, value = _named(one, (*names, *left_out))
        if name in fields:
            raise ConfigError(f"--column {name} is given twice; a row has one value of it.")
        fields[name] = value
    if strange := next((name for name in fields if name not in (*names, *left_out)), None):
        reads = f"it reads {and_(names)}" if names else "it reads the text alone"
        raise ConfigError(f"The model reads no column {strange!r} beside the text; {reads}.")
    return pack(cells_of(fields, info.columns), text) if info.columns else text


def _named(given: str, names: Sequence[str]) -> tuple[str, str]:
    """Return the column and the value of `product=phone`; the name of a known column may itself contain the sign."""
    known = max((name for name in names if given.startswith(f"{name}=")), key=len, default=None)
    if known is not None:
        return known, given[len(known) + 1 :]
    name, equals, value = given.partition("=")
    if not equals:
        raise ConfigError(f"--column {given!r} has no value; write NAME=VALUE, such as product=phone.")
    return name, value


class _ExplainedText:
    """The parts of an answer that are reported."""

    def __init__(
        self,
        prediction: Prediction,
        labels: tuple[Sequence[str], Sequence[str]],
        against: str | None,
        shown_by: Explanation,
        others: Sequence[Prediction],
    ) -> None:
        self.prediction, self.against, self.others = prediction, against, others
        self.labels, self.left_out = labels
        self.explanation = explanation_of(prediction)
        self.shown_by = shown_by
        self.attributions = self._attributions(self.shown_by)
        self.sub_tokens: Sequence[SubTokenAttribution] | None = None
        self.change: Search | None = None
        self.similar: SimilarRows | None = None
        self.row_texts = False

    def _attributions(self, explanation: Explanation) -> list[Attribution]:
        found = [explanation.attribution(label, self.against) for label in self.labels]
        return [with_spread(one, self.prediction, self.others, explanation.unit) for one in found]

    @property
    def by_token(self) -> list[Attribution]:
        """The attributions by tokens, whatever unit is shown."""
        return self.attributions if self.shown_by is self.explanation else self._attributions(self.explanation)


def _plain(answer: _ExplainedText, temperature: float) -> dict[str, Any]:
    by_unit = None if answer.shown_by is answer.explanation else answer.shown_by
    found = explanation_json(
        answer.prediction, answer.explanation, answer.by_token, temperature, answer.sub_tokens, by_unit
    )
    if by_unit is not None and (spread := answer.attributions[0].spread) is not None:
        found["units_stability"] = spread.as_json()
    if answer.change is not None:
        found["counterfactual"] = answer.change.as_json()
    if answer.similar is not None:
        found["similar_rows"] = answer.similar.as_json(texts=answer.row_texts)
    return found


def _change(classifier: Classifier, answer: _ExplainedText, label: str | None, exchanged: Groups) -> Search:
    """Return what would change the answer."""
    one = answer.attributions[0].label if answer.prediction.several else label
    given = answer.prediction
    threshold = given.threshold if given.several else None
    how: dict[str, Any] = {"label": one, "against": answer.against, "groups": exchanged, "threshold": threshold}
    return counterfactual(classifier, answer.explanation.row, **how)


def _similar(classifier: Classifier, answer: _ExplainedText, path: Path) -> SimilarRows:
    """Return the rows of a file that are like the text, for the first explained label."""
    reading = Reading(ReadOptions(), BadRows(), quiet=True)
    with reading.texts_and_labels(path, (), classifier.info.label_column, classifier.info) as rows:
        return similar_rows(classifier, answer.explanation, answer.by_token[0], rows)


def _write_page(path: Path, model: Path, answer: _ExplainedText, label: str | None, top: int) -> None:
    fragment = html_explanation.prediction_fragment(
        replace(answer.prediction, explanation=answer.shown_by),
        label=label,
        against=answer.against,
        top=top,
        sub_tokens=answer.sub_tokens,
        change=answer.change,
        others=answer.others,
        more=[] if answer.similar is None else [similar_part(answer.similar, texts=answer.row_texts)],
    )
    title = f"{named(answer.attributions[0].label)} - {model.stem}"
    with atomic_write(path) as file:
        page = document(title, fragment, about=made_of(model), heading=f"An answer of {model.stem}")
        file.write(page.encode())


def _write_plot(path: Path, answer: _ExplainedText, top: int) -> None:
    if len(answer.attributions) > 1:
        names = listed([named(one.label) for one in answer.attributions])
        raise ConfigError(f"A plot explains one label, and the text has {names}; choose one by --label.")
    figure = plots.plot_attribution(answer.shown_by, answer.attributions[0], top)
    with atomic_write(path) as file:
        file.write(figures.content(figure, figures.format_of(path)))


def _say(answer: _ExplainedText, page: Path | None, plot: Path | None, top: int) -> None:
    """Print what no file contains, and where the files are: a page shows everything, and a plot the tokens."""
    asked_more = answer.sub_tokens is not None or answer.change is not None or answer.similar is not None
    if page is None and (plot is None or asked_more):
        show(_report(answer, top))
    if written := [str(path) for path in (page, plot) if path is not None]:
        winner = answer.attributions[0].label
        click.echo(f"{named(winner)} {percent(answer.explanation.score(winner))} -> {' and '.join(written)}")


def _report(answer: _ExplainedText, top: int) -> Iterator[Printable]:
    report = terminal_explanation
    given = (answer.prediction, answer.shown_by)
    if answer.prediction.several:
        yield from report.label_set_explanation_report(*given, answer.attributions, top, answer.sub_tokens)
    else:
        yield from report.explanation_report(*given, answer.attributions[0], top, answer.sub_tokens)
    if answer.change is not None:
        yield from change_report(answer.change)
    if answer.similar is not None:
        yield from similar_report(answer.similar, texts=answer.row_texts)
    if answer.left_out:
        yield left_out_line(answer.left_out)


def _standard_input() -> str:
    """Return the text on standard input, without the line break that `echo` adds."""
    given = sys.stdin.buffer.read()
    try:
        text = given.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = given.count(b"\n", 0, error.start) + 1
        raise InputError(
            f"Standard input, line {line}: byte 0x{given[error.start]:02x} is not UTF-8; send the text as UTF-8."
        ) from error
    return text.removesuffix("\n").removesuffix("\r")
