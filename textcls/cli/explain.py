"""`textcls explain`: one text, with what each token added to the answer."""

import json
from pathlib import Path

import click
from rich.text import Text

from textcls.classifier import Classifier
from textcls.cli import render
from textcls.cli.options import model_argument


@click.command(
    epilog='Example: textcls explain tickets.onnx "my card was charged twice"',
    # A text may begin with a hyphen.
    context_settings={"ignore_unknown_options": True},
)
@model_argument
@click.argument("text")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of colours.")
def explain(model: Path, text: str, as_json: bool) -> None:
    """Classify TEXT with MODEL and show what each token added.

    Green tokens speak for the winning label, red ones against it. The numbers add up to the logit.
    """
    classifier = Classifier.load(model)
    prediction = classifier.predict(text, explain=True)
    explanation = prediction.explanation
    assert explanation is not None
    if as_json:
        tokens = [{**t._asdict(), "contributions": dict(t.contributions)} for t in explanation.tokens]
        answer = {
            "label": prediction.label,
            "score": prediction.score,
            "labels": [scored._asdict() for scored in prediction.top()],
            "decision": prediction.decision,
            "truncated": prediction.truncated,
            "temperature": classifier.info.temperature,
            "bias": explanation.bias,
            "logits": explanation.logits,
            "tokens": tokens,
        }
        click.echo(json.dumps(answer, ensure_ascii=False))
        return
    console = render.console()
    console.print(render.coloured_text(explanation, prediction.label))
    console.print()
    scores = [f"{s.label} {s.score:.1%}" for s in prediction.top(3)]
    console.print(Text.assemble((scores[0], "bold"), "   ", "   ".join(scores[1:])))
    if prediction.truncated:
        console.print("The text is longer than the model reads; the rest was cut.", style="yellow")
    console.print()
    console.print(render.token_table(prediction, explanation))
