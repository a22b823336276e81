"""`textcls explain`: one text, with what each token added to the answer."""

import sys
from dataclasses import replace
from pathlib import Path

import click

from textcls._util.atomic_write import atomic_write, check_not_an_input, check_output_path
from textcls.classifier import Classifier
from textcls.cli.options import exchange_option, html_option, model_argument, threshold_option
from textcls.counterfactual import counterfactual
from textcls.display.html import explanation as html_explanation
from textcls.display.html.fragments import document, made_of
from textcls.display.plain_data import explanation_json, json_line
from textcls.display.remarks import explained_labels, left_out_line
from textcls.display.terminal import explanation as terminal_explanation
from textcls.display.terminal.console import show
from textcls.display.terminal.counterfactual import change_report
from textcls.display.text import named, percent
from textcls.errors import ConfigError, InputError
from textcls.units import UNITS, Unit
from textcls.word_groups import read_groups


@click.command(
    epilog='Example: textcls explain tickets.onnx "my card was charged twice"',
    # A text may begin with a hyphen.
    context_settings={"ignore_unknown_options": True},
)
@model_argument
@click.argument("text")
@click.option(
    "--label", metavar="LABEL", help="Explain this label.  [default: the winner; of several labels each assigned]"
)
@click.option(
    "--contrast",
    "--against",
    "against",
    metavar="LABEL",
    help="Say why not this label, instead of why not the others.",
)
@click.option(
    "--top",
    type=click.IntRange(min=1),
    help=f"List this many tokens, and parts.  [default: {terminal_explanation.SHOWN_TOKENS}; "
    f"in a page {html_explanation.SHOWN_TOKENS}]",
)
@click.option(
    "--parts", "with_parts", is_flag=True, help="Also list words, pairs of words, and pieces of unknown words."
)
@click.option(
    "--unit",
    type=click.Choice(UNITS),
    default="token",
    show_default=True,
    help="Add up and average contributions over phrases or sentences; in long texts sentences read best.",
)
@click.option(
    "--counterfactual",
    "with_change",
    is_flag=True,
    help="Also search the fewest tokens without which the answer is another, or with --contrast that one.",
)
@exchange_option
@threshold_option
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of colours.")
@html_option
def explain(
    model: Path,
    text: str,
    label: str | None,
    against: str | None,
    top: int | None,
    with_parts: bool,
    unit: Unit,
    with_change: bool,
    groups: Path | None,
    threshold: float | None,
    as_json: bool,
    html: Path | None,
) -> None:
    """Classify TEXT with MODEL and show what each token added; TEXT `-` reads standard input.

    Blue tokens speak for the winning label, orange ones against it. The numbers add up to the logit. Where a text may
    have several labels, each of those assigned is explained by itself.
    """
    if groups is not None and not with_change:
        raise ConfigError("--exchange needs --counterfactual, which then tries the words of a line for each other.")
    exchanged = [] if groups is None else read_groups(groups)
    classifier = Classifier.load(model)
    if html is not None:
        check_not_an_input(html, [model])
        check_output_path(html)
    prediction = classifier.predict(_standard_input() if text == "-" else text, explain=True, threshold=threshold)
    explanation = prediction.explanation
    assert explanation is not None
    explained, left_out = explained_labels(prediction, label, against)
    shown_by = explanation.grouped(unit)
    attributions = [shown_by.attribution(one, against) for one in explained]
    attribution = attributions[0]
    sub_tokens = classifier.parts(explanation.text) if with_parts else None
    search = None
    if with_change:
        one = attributions[0].label if prediction.several else None
        search = counterfactual(classifier, explanation.text, label=one, against=against, groups=exchanged)
    if html is not None:
        fragment = html_explanation.prediction_fragment(
            replace(prediction, explanation=shown_by),
            label=label,
            against=against,
            top=top or html_explanation.SHOWN_TOKENS,
            sub_tokens=sub_tokens,
            change=search,
        )
        with atomic_write(html) as file:
            page = document(
                f"{named(attribution.label)} - {model.stem}",
                fragment,
                about=made_of(model),
                heading=f"An answer of {model.stem}",
            )
            file.write(page.encode())
    if as_json:
        temperature = classifier.info.temperature
        by_token = [explanation.attribution(one, against) for one in explained]
        by_unit = None if unit == "token" else shown_by
        found = explanation_json(prediction, explanation, by_token, temperature, sub_tokens, by_unit)
        click.echo(json_line(found if search is None else {**found, "counterfactual": search.as_json()}))
    elif html is not None:
        score = percent(terminal_explanation.score_of(prediction, attribution.label))
        click.echo(f"{named(attribution.label)} {score} -> {html}")
    else:
        shown = top or terminal_explanation.SHOWN_TOKENS
        report = terminal_explanation
        if prediction.several:
            show(report.label_set_explanation_report(prediction, shown_by, attributions, shown, sub_tokens))
        else:
            show(report.explanation_report(prediction, shown_by, attribution, shown, sub_tokens))
        if search is not None:
            show(change_report(search))
        if left_out:
            show([left_out_line(left_out)])


def _standard_input() -> str:
    """The text on standard input, less the line break that `echo` adds."""
    given = sys.stdin.buffer.read()
    try:
        text = given.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = given.count(b"\n", 0, error.start) + 1
        raise InputError(
            f"Standard input, line {line}: byte 0x{given[error.start]:02x} is not UTF-8; send the text as UTF-8."
        ) from error
    return text.removesuffix("\n").removesuffix("\r")
