"""`textcls explain`: one text, with what each token added to the answer."""

import sys
from collections.abc import Sequence
from pathlib import Path

import click
from rich.text import Text

from textcls import page
from textcls.classifier import Classifier
from textcls.cli import render
from textcls.cli.options import html_option, model_argument, threshold_option
from textcls.errors import InputError
from textcls.explanation import Explanation, View
from textcls.output import check_not_an_input, check_output_path, replacing
from textcls.parts import Part
from textcls.results import Prediction


@click.command(
    epilog='Example: textcls explain tickets.onnx "my card was charged twice"',
    # A text may begin with a hyphen.
    context_settings={"ignore_unknown_options": True},
)
@model_argument
@click.argument("text")
@click.option("--label", metavar="LABEL", help="Explain this label.  [default: the winner]")
@click.option("--contrast", "against", metavar="LABEL", help="Say why not this label, instead of why not the others.")
@click.option(
    "--top",
    type=click.IntRange(min=1),
    help=f"List this many tokens, and parts.  [default: {render.MOST_TOKENS}; in a page {page.SHOWN_TOKENS}]",
)
@click.option(
    "--parts", "with_parts", is_flag=True, help="Also list words, pairs of words, and pieces of unknown words."
)
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
    threshold: float | None,
    as_json: bool,
    html: Path | None,
) -> None:
    """Classify TEXT with MODEL and show what each token added; TEXT `-` reads standard input.

    Green tokens speak for the winning label, red ones against it. The numbers add up to the logit.
    """
    classifier = Classifier.load(model)
    if html is not None:
        check_not_an_input(html, [model])
        check_output_path(html)
    prediction = classifier.predict(_standard_input() if text == "-" else text, explain=True, threshold=threshold)
    explanation = prediction.explanation
    assert explanation is not None
    view = explanation.view(label, against)
    parts = classifier.parts(explanation.text) if with_parts else None
    if html is not None:
        fragment = page.prediction_fragment(
            prediction, label=label, against=against, top=top or page.SHOWN_TOKENS, parts=parts
        )
        with replacing(html) as file:
            file.write(page.document(f"{page.named(view.label)} - {model.stem}", fragment).encode())
    if as_json:
        answer = {
            "score": prediction.score,
            "labels": [scored._asdict() for scored in prediction.top()],
            "decision": prediction.decision,
            "threshold": prediction.threshold,
            "truncated": prediction.truncated,
            "temperature": classifier.info.temperature,
            **explanation.as_json(),
            "evidence": view.as_json(),
        }
        if parts is not None:
            answer["parts"] = [part.as_json(explanation.text) for part in parts]
        click.echo(render.json_line(answer))
    elif html is not None:
        click.echo(f"{page.named(view.label)} {_score(prediction, view.label):.1%} -> {html}")
    else:
        _show(prediction, explanation, view, top or render.MOST_TOKENS, parts)


def _show(prediction: Prediction, explanation: Explanation, view: View, top: int, parts: Sequence[Part] | None) -> None:
    console = render.console()
    console.print(render.coloured_text(explanation, view))
    console.print()
    scores = [f"{page.named(s.label)} {s.score:.1%}" for s in prediction.top(3)]
    console.print(Text.assemble((scores[0], "bold"), "   ", "   ".join(scores[1:])))
    if view.against is not None:
        console.print(Text(f"why {page.named(view.label)} and not {page.named(view.against)}:"))
    elif view.label != prediction.label:
        console.print(Text(f"{page.named(view.label)}, {_score(prediction, view.label):.1%}, against all others:"))
    for remark in prediction.remarks:
        console.print(Text(remark, style="yellow"))
    console.print()
    console.print(render.token_table(explanation, view, top))
    console.print()
    checks = [page.check_line(explanation)]
    if parts is not None:
        table = page.part_table(explanation, view, parts, top)
        console.print(render.part_table(table, view))
        console.print()
        checks.append(table.check)
    for note in (*page.notes(explanation, view, top), f"Checked: {'; '.join(checks)}."):
        console.print(Text(note, style="dim"))


def _score(prediction: Prediction, label: str) -> float:
    return float(prediction.probabilities[prediction.label_names.index(label)])


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
