"""`textcls annotate`: texts without labels, answered by a language model, for `textcls train --unlabelled`."""

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import click

from textcls._util import optional_dependencies
from textcls._util.atomic_write import check_not_an_input
from textcls.cli.options import PATH, new_text_column_option, reading_options
from textcls.cli.reading import Reading
from textcls.data import open_table, read_labelled
from textcls.data.rows import Row
from textcls.data.writing import NewTable
from textcls.display.terminal.console import stderr_console
from textcls.display.terminal.progress import progress_on
from textcls.display.text import percent, plural
from textcls.errors import ConfigError, InputError
from textcls.evaluation.intervals import share

if TYPE_CHECKING:
    from textcls.annotation.annotate import Agreement, Price
    from textcls.annotation.endpoint import Endpoint
    from textcls.annotation.journal import Journal
    from textcls.annotation.prompt import DescribedLabel, Prompt

optional_dependencies.look_for("openai")

# So many of the texts are asked about before it is said what all of them take.
_FIRST: Final = 20
_ADDED: Final = ("answer", "answered_by", "answered_at", "answered_prompt", "answered_tokens")


class _Run(NamedTuple):
    """What is asked, of whom, and within which bounds."""

    prompt: "Prompt"
    endpoint: "Endpoint"
    journal: "Journal"
    at_once: int
    most_tokens: float
    quiet: bool


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
@click.option("--model", required=True, metavar="NAME", help="The language model, as its server calls it.")
@click.option("--endpoint", metavar="URL", help="Address of an OpenAI-compatible server.  [default: OpenAI's]")
@click.option("--output", "-o", type=PATH, required=True, help="Write the answered rows here: .csv, .jsonl, .parquet.")
@click.option("--labelled", type=PATH, metavar="FILE", help="Labelled rows, asked about first: does the model agree?")
@click.option(
    "--least-agreement",
    type=click.FloatRange(0, 1),
    default=0.0,
    help="Stop if it agrees with fewer of them: a share.",
)
@click.option(
    "--examples", type=click.IntRange(0), default=0, show_default=True, help="Labelled rows of each label to show it."
)
@click.option("--prompt", type=PATH, metavar="FILE", help="What it is told, with {labels} where they are to stand.")
@click.option("--price", type=(float, float), metavar="IN OUT", help="Dollars for a million tokens read, and written.")
@click.option("--max-tokens-total", type=click.IntRange(1), help="Ask no more once so many tokens are spent.")
@click.option("--at-once", type=click.IntRange(1, 256), default=8, show_default=True, help="Texts asked at a time.")
@click.option("--timeout", type=click.FloatRange(1), default=60.0, show_default=True, help="Seconds for an answer.")
@click.option("--dry-run", is_flag=True, help="Send nothing: show the first request, and what all would take.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask whether texts may be sent.")
@new_text_column_option
@reading_options
def annotate(
    texts: Path,
    labels: Path,
    model: str,
    endpoint: str | None,
    output: Path,
    labelled: Path | None,
    least_agreement: float,
    examples: int,
    prompt: Path | None,
    price: tuple[float, float] | None,
    max_tokens_total: int | None,
    at_once: int,
    timeout: float,
    dry_run: bool,
    yes: bool,
    text_columns: tuple[str, ...],
    reading: Reading,
) -> None:
    """Let a language model answer TEXTS, with a probability for each label, for textcls train --unlabelled.

    Each answer is kept in OUTPUT.answers once it is given: the same command, interrupted or not, asks nothing twice.
    With --labelled, rows whose label is known are asked about first. The key is read from OPENAI_API_KEY.
    """
    from textcls.annotation.annotate import Price, sent
    from textcls.annotation.endpoint import Endpoint
    from textcls.annotation.journal import Journal

    inputs = [path for path in (texts, labels, labelled, prompt) if path is not None]
    check_not_an_input(output, inputs)
    table = NewTable.at(output, escape_formulas=False)
    known, asking = _prompt(labels, labelled, examples, prompt)
    with reading.texts(texts, text_columns) as found:
        rows = list(found)
    reading.say_skipped()
    if not rows:
        raise InputError(f"{texts} has no rows.")
    every, known = [sent(text) for text, _ in rows], [(sent(text), label) for text, label in known]
    kept = output.with_name(f"{output.name}.answers")
    with Journal(Path(":memory:") if dry_run and not kept.exists() else kept, model, asking.digest) as journal:
        costs = Price(*price) if price is not None else None
        announce = partial(_announce, asking, journal, costs, [*(text for text, _ in known), *every])
        if dry_run:
            _show(asking, every[0])
            announce()
            return
        to = Endpoint(endpoint, model, asking, seconds=timeout)
        announce()
        if not yes:
            where = endpoint or "OpenAI (https://api.openai.com/v1)"
            click.confirm(f"The texts are sent to {where}. Go on?", abort=True, err=True)
        run = _Run(asking, to, journal, at_once, max_tokens_total or inf, reading.quiet)
        asyncio.run(_ask(run, known, every, least_agreement, announce))
        done = _write(table, run, rows, every)
    click.echo(
        f"{plural(done, 'row')} of {len(rows):,} -> {output}. Next: textcls train LABELLED --unlabelled {output} "
        "--probabilities 'p_*'"
    )


def _prompt(
    labels: Path, labelled: Path | None, examples: int, prompt: Path | None
) -> "tuple[list[tuple[str, str]], Prompt]":
    """Return the labelled rows that are asked about, and what is asked, of which some of these rows are a part."""
    from textcls.annotation import prompt as asked

    described = _described(labels)
    rows: list[tuple[str, str]] = []
    if labelled is not None:
        found = read_labelled(labelled)
        rows = list(zip(found.texts, found.labels, strict=True))
        names = {label.name for label in described}
        if other := next((label for _, label in rows if label not in names), None):
            raise InputError(f"{labelled} has the label {other!r}, which {labels} does not name.")
    elif examples:
        raise ConfigError("--examples are taken from --labelled rows: name these.")
    shown = asked.examples_of(rows, examples)
    system = asked.SYSTEM if prompt is None else _read(prompt)
    made = asked.Prompt(tuple(described), tuple(rows[i] for i in shown), system)
    return [row for i, row in enumerate(rows) if i not in set(shown)], made


def _described(path: Path) -> "list[DescribedLabel]":
    from textcls.annotation.prompt import DescribedLabel

    with open_table(path) as table:
        (column,) = table.choose(["label"], "label", guess=True)
        cells = [(row.fields.get(column), row.fields.get("description")) for row in table.rows]
    return [DescribedLabel(str(name), "" if what is None else str(what)) for name, what in cells if name]


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"The prompt {path} cannot be read: is it a text file in UTF-8?") from error


def _show(prompt: "Prompt", text: str) -> None:
    """Show what is sent to ask about a text."""
    for message in prompt.messages(text):
        click.echo(f"[{message['role']}]\n{message['content']}\n")


def _announce(prompt: "Prompt", journal: "Journal", price: "Price | None", texts: Sequence[str]) -> None:
    """Say what the answers that are missing take, as far as can be told."""
    from textcls.annotation.annotate import estimate

    known = [(text, answer) for text in dict.fromkeys(texts) if (answer := journal.get(text)) is not None]
    missing = list(dict.fromkeys(texts).keys() - dict(known).keys())
    took = estimate(prompt, missing, known)
    cost = f", some ${took.dollars(price):,.2f}" if price is not None else ""
    click.echo(
        f"{plural(len(missing), 'text')} to ask about, {len(known):,} answered already: about {took.read:,} tokens to "
        f"read and {took.written:,} to write{cost}.",
        err=True,
    )


async def _ask(
    run: _Run, known: list[tuple[str, str]], texts: list[str], least: float, announce: Callable[[], None]
) -> None:
    """Have the labelled rows answered, then some texts, which tell what all take, then the others."""
    from textcls.annotation.annotate import agreement, ask_all

    left = run.most_tokens
    async with run.endpoint:
        with progress_on(stderr_console(quiet=run.quiet), "texts") as progress:

            async def ask(name: str, some: Sequence[str]) -> None:
                nonlocal left
                missing = [text for text in dict.fromkeys(some) if run.journal.get(text) is None]
                if missing and left > 0:
                    progress.phase(name, len(missing))
                    bounds: Any = {"at_once": run.at_once, "most_tokens": left, "step": progress.step}
                    left -= await ask_all(missing, run.endpoint, run.journal, **bounds)

            await ask("labelled rows", [text for text, _ in known])
            _check(agreement(known, run.prompt.names, run.journal), least)
            await ask("first texts", texts[:_FIRST])
            if len(texts) > _FIRST:
                announce()
            await ask("texts", texts)
    for note in run.endpoint.notes:
        click.echo(f"Note: {note}", err=True)


def _check(found: "Agreement", least: float) -> None:
    """Say how far the model agrees with labelled rows, and stop where that is too little."""
    if not found.rows:
        return
    interval = share(found.right, found.rows)
    worst = min(found.by_label.items(), key=lambda one: (one[1][0] / one[1][1], -one[1][1]))
    label, (right, rows) = worst
    click.echo(
        f"Labelled rows: {found.right:,} of {found.rows:,} answered as labelled, {percent(interval.value)} (95 % "
        f"interval {percent(interval.low)} to {percent(interval.high)}); least of {label!r}, {right:,} of {rows:,}.",
        err=True,
    )
    if interval.value < least:
        raise InputError(
            f"That is below --least-agreement, which is {least:g}: describe the labels better, show --examples, or ask "
            "another model. The texts were not sent."
        )


def _write(table: NewTable, run: _Run, rows: Sequence[tuple[str, Row]], texts: Sequence[str]) -> int:
    """Write the rows that were answered, and say how many were not; return how many were."""
    from textcls.annotation.annotate import best

    names = run.prompt.names
    added = [*(f"p_{name}" for name in names), *_ADDED]
    columns = list(dict.fromkeys(name for _, row in rows for name in row.fields if name not in added))
    done = without = 0
    with table.open(columns, added) as writer:
        for (_, row), text in zip(rows, texts, strict=True):
            answer = run.journal.get(text)
            if answer is None or answer.probabilities is None:
                without += answer is not None
                continue
            about = (best(answer, names), run.endpoint.model, answer.at, run.prompt.digest[:12], answer.tokens)
            probabilities = [round(float(one), 6) for one in answer.probabilities]
            kept = row._replace(fields={name: row.fields.get(name) for name in columns})
            writer.write([kept], [dict(zip(added, (*probabilities, *about), strict=True))])
            done += 1
    if without:
        click.echo(f"Note: {plural(without, 'answer')} named none of the labels: left out.", err=True)
    if unasked := len(rows) - done - without:
        click.echo(
            f"Note: {plural(unasked, 'row')} not asked about, since --max-tokens-total was spent: the same command "
            "goes on with more.",
            err=True,
        )
    return done
