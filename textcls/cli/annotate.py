"""`textcls annotate`: texts without labels, answered by language models, for `textcls train --unlabelled`."""

import asyncio
import sys
from collections.abc import Sequence
from itertools import combinations
from math import inf, isfinite
from pathlib import Path
from typing import Final

import click

from textcls._util import optional_dependencies
from textcls.annotation.annotate import Asking
from textcls.annotation.journal import Journal
from textcls.annotation.panel import Annotator, Panel, is_answered
from textcls.annotation.price import Price
from textcls.annotation.prompt import Prompt
from textcls.cli.annotate_rows import (
    ADDED,
    BY_MODEL,
    DOLLARS,
    Known,
    Rows,
    prompt_of,
    read_given,
    read_known,
    read_labels,
)
from textcls.cli.options import (
    PATH,
    escape_formulas_option,
    new_label_column_option,
    new_text_column_option,
    reading_options,
)
from textcls.cli.outputs import TABLE
from textcls.cli.reading import Reading
from textcls.cli.settings import found_unasked
from textcls.data import ReadOptions
from textcls.data.columns import PROBABILITY
from textcls.data.storage import without_secrets
from textcls.data.targets import TargetOptions
from textcls.data.writing import NewTable
from textcls.display.terminal.annotation import (
    agreement_of_models,
    agreement_with_rows,
    cost_of_answers,
    rows_without_answers,
    what_answers_take,
)
from textcls.display.terminal.console import stderr_console
from textcls.display.terminal.progress import progress_on
from textcls.display.text import in_a_shell, plural
from textcls.errors import ConfigError, InputError, SurroundingsError

optional_dependencies.look_for("openai")

# This many texts are asked about before the total cost is reported.
_FIRST: Final = 20


@click.command(
    "annotate",
    epilog="""Example: textcls annotate tickets.csv --labels labels.csv --model gpt-5-mini --output answered.csv

    Example: textcls train labelled.csv --unlabelled answered.csv --probabilities 'p_*' --output tickets.onnx""",
)
@click.argument("texts", type=PATH)
@click.option(
    "--labels",
    type=PATH,
    required=True,
    metavar="FILE",
    help="Labels: columns label, and description of what it means.",
)
@click.option(
    "--model",
    "models",
    multiple=True,
    required=True,
    metavar="NAME",
    help="The language model, as its server calls it; with several their mean counts, and disagreements are reported.",
)
@click.option("--endpoint", metavar="URL", help="Address of an OpenAI-compatible server.  [default: OpenAI's]")
@click.option("--output", "-o", type=TABLE, required=True, help="Write the answered rows here: .csv, .jsonl, .parquet.")
@click.option("--several", is_flag=True, help="A text may have several labels, or none: each is answered yes or no.")
@click.option(
    "--samples",
    type=click.IntRange(1, 100),
    default=1,
    show_default=True,
    help="Answers to each text, whose mean counts: for servers that return no probabilities.",
)
@click.option("--labelled", type=PATH, metavar="FILE", help="Labelled rows, asked about first: does the model agree?")
@click.option("--least-agreement", type=click.FloatRange(0, 1), default=0.0, help="Stop below this share of them.")
@click.option(
    "--examples", type=click.IntRange(0), default=0, show_default=True, help="Labelled rows of each label to show it."
)
@click.option("--prompt", type=PATH, metavar="FILE", help="The instructions, with {labels} where the labels go.")
@click.option(
    "--price",
    "prices",
    type=(click.FloatRange(0), click.FloatRange(0)),
    multiple=True,
    metavar="IN OUT",
    help="Dollars for a million tokens, read and written; once, or for each --model.",
)
@click.option("--max-tokens-total", type=click.IntRange(1), help="Stop asking once this many tokens are spent.")
@click.option("--at-once", type=click.IntRange(1, 256), default=8, show_default=True, help="Requests at a time.")
@click.option("--timeout", type=click.FloatRange(1), default=60.0, show_default=True, help="Seconds for an answer.")
@click.option("--dry-run", is_flag=True, help="Send nothing: show the first request, and the cost of all.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask whether texts may be sent.")
@click.option("--label-separator", metavar="SIGN", help="Separates the labels in a cell of --labelled; json for lists.")
@escape_formulas_option
@new_text_column_option
@new_label_column_option
@reading_options
def annotate(
    texts: Path,
    labels: Path,
    models: tuple[str, ...],
    endpoint: str | None,
    output: Path,
    several: bool,
    samples: int,
    labelled: Path | None,
    least_agreement: float,
    examples: int,
    prompt: Path | None,
    prices: tuple[tuple[float, float], ...],
    max_tokens_total: int | None,
    at_once: int,
    timeout: float,
    dry_run: bool,
    yes: bool,
    label_separator: str | None,
    escape_formulas: bool,
    text_columns: tuple[str, ...],
    label_column: str | None,
    reading: Reading,
) -> None:
    """Let a language model answer TEXTS, with a probability for each label, for textcls train --unlabelled.

    Each answer is kept in OUTPUT.answers once it is given: the same command, interrupted or not, asks nothing twice.
    With --labelled, rows whose label is known are asked about first. The key is read from OPENAI_API_KEY.
    """
    from textcls.annotation.endpoint import Endpoint, address

    if str(output) == "-":
        raise ConfigError("Answers are kept beside the output: name a file, and not standard output.")
    table = NewTable.at(output, escape_formulas=escape_formulas)
    models = tuple(dict.fromkeys(models))
    costs = _prices(prices, models)
    options = ReadOptions(encoding=reading.options.encoding)
    described, rows = read_labels(labels, options), list[tuple[str, tuple[str, ...]]]()
    if labelled is not None:
        columns = (text_columns, label_column)
        targets = TargetOptions(label_separator=label_separator, several=several or None)
        rows = read_known(labelled, *columns, described, targets, reading)
    elif examples or label_separator:
        name = "--examples are" if examples else "--label-separator is"
        raise ConfigError(f"{name} for --labelled rows: name these.")
    known, asked = prompt_of(described, rows, examples, prompt, several=several)
    if least_agreement and not known:
        raise ConfigError("--least-agreement needs --labelled rows, more of each label than are shown as --examples.")
    given = read_given(texts, text_columns, known, reading)
    kept, url = output.with_name(f"{output.name}.answers"), address(endpoint)
    about = [(url, model, asked.digest, *([f"{samples} samples"] if samples > 1 else [])) for model in models]
    if dry_run:
        _show(asked, given.texts[0])
        with Journal(kept if kept.exists() else None) as journal:
            costs_of = [(journal.answers(*one), price) for one, price in zip(about, costs, strict=True)]
            click.echo(what_answers_take(asked, costs_of, given.all_texts, samples), err=True)
        return
    with Journal(kept) as journal:
        annotators = [
            Annotator(Endpoint(endpoint, model, asked, seconds=timeout, samples=samples), journal.answers(*one))
            for model, one in zip(models, about, strict=True)
        ]
        panel = Panel(asked, annotators, costs)
        _say_takes(panel, given, samples)
        _confirm(url, yes=yes and not (found_unasked("yes") or found_unasked("endpoint")))
        asking = Asking(annotators, at_once=at_once, most_tokens=max_tokens_total or inf)
        asyncio.run(_ask(asking, panel, given, samples, least_agreement, quiet=reading.quiet))
        _require_answers(panel, given, output)
        try:
            done = _write(table, panel, given)
        except InputError as error:
            raise InputError(
                f"{error} What was answered is in {kept}: rename it like the new output, and nothing is asked again."
            ) from error
        _say_at_the_end(panel, given, len(given.rows) - done)
    then = f" Next: textcls train LABELLED --unlabelled {in_a_shell(output)} --probabilities '{PROBABILITY}*'"
    click.echo(f"{plural(done, 'row')} of {len(given.rows):,} -> {output}.{then if done else ''}")


def _prices(given: Sequence[tuple[float, float]], models: Sequence[str]) -> list[Price | None]:
    """Return the price of each model, None if it is not known."""
    if not all(isfinite(number) for pair in given for number in pair):
        raise ConfigError("--price takes two numbers, dollars for a million tokens.")
    if len(given) not in {0, 1, len(models)}:
        raise ConfigError(f"--price is given {len(given)} times for {len(models)} models: give it once, or for each.")
    found: list[Price | None] = [Price(*pair) for pair in given] or [None]
    return found if len(found) == len(models) else found * len(models)


def _show(prompt: Prompt, text: str) -> None:
    """Show what is sent to ask about a text."""
    for message in prompt.messages(text):
        click.echo(f"[{message['role']}]\n{message['content']}\n")


def _say_takes(panel: Panel, given: Rows, samples: int) -> None:
    """Report the cost of the missing answers."""
    priced = [(one.answers, price) for one, price in zip(panel.annotators, panel.prices, strict=True)]
    click.echo(what_answers_take(panel.prompt, priced, given.all_texts, samples), err=True)


def _confirm(url: str, *, yes: bool) -> None:
    """Report where texts go, and ask whether they may leave this machine: a file found by chance does not allow it."""
    shown = without_secrets(url)
    if yes:
        click.echo(f"The texts are sent to {shown}.", err=True)
        return
    if not _is_asked():
        raise ConfigError(f"The texts would be sent to {shown}, and there is nobody to ask: add --yes if they may.")
    click.confirm(f"The texts are sent to {shown}. Go on?", abort=True, err=True)


def _is_asked() -> bool:
    """Return whether a person is present to answer."""
    return sys.stdin.isatty()


async def _ask(asking: Asking, panel: Panel, given: Rows, samples: int, least: float, *, quiet: bool) -> None:
    """Get answers to the labelled rows, then to some texts, which show the total cost, then to the others."""
    known, texts = [text for text, _ in given.known], given.texts
    try:
        with progress_on(stderr_console(quiet=quiet), "questions") as progress:

            async def ask(name: str, texts: Sequence[str]) -> None:
                if missing := asking.missing(texts):
                    progress.phase(name, len(missing))
                    await asking.ask(texts, progress.step)

            await ask("labelled rows", known)
            if known:
                _check(panel, given.known, least)
            if asking.missing(texts[:_FIRST]):
                await ask("first texts", texts[:_FIRST])
                if asking.missing(texts):
                    _say_takes(panel, given, samples)
            await ask("texts", texts)
    finally:
        for one in panel.annotators:
            await one.endpoint.close()
        for note in dict.fromkeys(note for one in panel.annotators for note in one.endpoint.notes):
            click.echo(f"Note: {note}", err=True)


def _check(panel: Panel, known: Known, least: float) -> None:
    """Report how far each model agrees with the labelled rows, and stop if the joint answers agree too little."""
    together = panel.agreement(known)
    if not together.rows:
        message = "None of the labelled rows was answered: the server refuses them, or --max-tokens-total is too low."
        if least:
            raise InputError(
                f"{message} Without them --least-agreement cannot be judged. The other texts were not sent."
            )
        click.echo(f"Note: {message}", err=True)
        return
    if len(panel.annotators) > 1:
        for one in panel.annotators:
            if (alone := panel.agreement(known, one)).rows:
                click.echo(agreement_with_rows(alone, len(known), by=f", {one.endpoint.model}"), err=True)
    click.echo(agreement_with_rows(together, len(known)), err=True)
    if together.right < least * together.rows:
        raise InputError(
            f"That is below --least-agreement, which is {least:g}: describe the labels better, show --examples, or "
            "ask another model. The other texts were not sent."
        )
    if 2 * together.right < together.rows:
        click.echo(
            "Note: Most labelled rows are answered otherwise than they are labelled, and the texts are sent all the "
            "same; --least-agreement 0.8 would stop here.",
            err=True,
        )


def _require_answers(panel: Panel, given: Rows, output: Path) -> None:
    """Refuse to write a table without rows if no model has answered, and report why."""
    answered = any(is_answered(panel.answer(text)) for text in given.texts)
    if not answered and any(one.without_answer for one in panel.annotators):
        _say_at_the_end(panel, given, len(given.rows))
        raise SurroundingsError(f"No row was answered, and {output} is not written: the same command asks again.")


def _say_at_the_end(panel: Panel, given: Rows, missing: int) -> None:
    """Report where models disagree, the cost of a thousand texts, and why so many rows have no answer."""
    texts = list(dict.fromkeys(given.texts))
    for one, other in combinations(panel.annotators, 2):
        if (found := panel.agreement_of(one, other, texts)).rows:
            click.echo(agreement_of_models(one.endpoint.model, other.endpoint.model, found), err=True)
    if costs := panel.costs(texts):
        click.echo(cost_of_answers(costs, sum(panel.answer(text) is not None for text in texts)), err=True)
    for note in rows_without_answers(panel.annotators, given.texts, missing):
        click.echo(f"Note: {note}", err=True)


def _write(table: NewTable, panel: Panel, given: Rows) -> int:
    """Write the rows that were answered; return how many."""
    names, annotators = panel.prompt.names, panel.annotators
    by_model = [f"{BY_MODEL}{one.endpoint.model}" for one in annotators] if len(annotators) > 1 else []
    priced = [DOLLARS] if any(panel.prices) else []
    added = [*(f"{PROBABILITY}{name}" for name in names), *ADDED, *priced, *by_model]
    columns = list(dict.fromkeys(name for row in given.rows for name in row.fields))
    done = 0
    with table.open(columns, added) as writer:
        for row, text in zip(given.rows, given.texts, strict=True):
            answer = panel.answer(text)
            if answer is None or answer.probabilities is None:
                continue
            answered = [one for one in annotators if one.answers.get(text) is not None]
            cells = [
                *(round(float(one), 6) for one in answer.probabilities),
                _cell(panel.labels(text), panel.prompt),
                ", ".join(one.endpoint.model for one in answered),
                answer.at,
                panel.prompt.digest[:12],
                answer.tokens,
                round(answer.seconds, 3),
                *(panel.dollars(text) for _ in priced),
                *(_cell(panel.labels(text, one), panel.prompt) for one in annotators if by_model),
            ]
            kept = row._replace(fields={name: row.fields.get(name) for name in columns})
            writer.write([kept], [dict(zip(added, cells, strict=True))])
            done += 1
    return done


def _cell(labels: tuple[str, ...] | None, prompt: Prompt) -> str | list[str] | None:
    """Return labels in the form of a table cell: one, or a list if there may be several."""
    if labels is None:
        return None
    return list(labels) if prompt.several else labels[0]
