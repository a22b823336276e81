"""`textcls annotate`: texts without labels, answered by a language model, for `textcls train --unlabelled`."""

import asyncio
import sys
from collections.abc import Callable, Sequence
from functools import partial
from math import inf, isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import click

from textcls._util import optional_dependencies
from textcls._util.atomic_write import check_not_an_input
from textcls.cli.options import (
    PATH,
    escape_formulas_option,
    new_label_column_option,
    new_text_column_option,
    reading_options,
)
from textcls.cli.reading import Reading
from textcls.data import ReadOptions, open_table, read_labelled
from textcls.data.rows import Row
from textcls.data.writing import NewTable
from textcls.display.terminal.console import stderr_console
from textcls.display.terminal.progress import progress_on
from textcls.display.text import listed, percent, plural
from textcls.errors import ConfigError, InputError
from textcls.evaluation.intervals import share
from textcls.model.labels import unpaired_surrogate

if TYPE_CHECKING:
    from textcls.annotation.annotate import Agreement, Asking
    from textcls.annotation.endpoint import Endpoint
    from textcls.annotation.journal import Journal
    from textcls.annotation.price import Price
    from textcls.annotation.prompt import DescribedLabel, Prompt

optional_dependencies.look_for("openai")

# So many of the texts are asked about before it is said what all of them take.
_FIRST: Final = 20
_PROBABILITY: Final = "p_"
_ADDED: Final = ("answer", "answered_by", "answered_at", "answered_prompt", "answered_tokens")


class _Rows(NamedTuple):
    """The rows to answer, with the texts that are sent of them; and rows whose label is known, likewise."""

    rows: Sequence[Row]
    texts: Sequence[str]
    known: Sequence[tuple[str, str]]


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
@click.option("--least-agreement", type=click.FloatRange(0, 1), default=0.0, help="Stop below this share of them.")
@click.option(
    "--examples", type=click.IntRange(0), default=0, show_default=True, help="Labelled rows of each label to show it."
)
@click.option("--prompt", type=PATH, metavar="FILE", help="What it is told, with {labels} where they are to stand.")
@click.option(
    "--price",
    type=(click.FloatRange(0), click.FloatRange(0)),
    metavar="IN OUT",
    help="Dollars for a million tokens, read and written.",
)
@click.option("--max-tokens-total", type=click.IntRange(1), help="Ask no more once so many tokens are spent.")
@click.option("--at-once", type=click.IntRange(1, 256), default=8, show_default=True, help="Texts asked at a time.")
@click.option("--timeout", type=click.FloatRange(1), default=60.0, show_default=True, help="Seconds for an answer.")
@click.option("--dry-run", is_flag=True, help="Send nothing: show the first request, and what all would take.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask whether texts may be sent.")
@escape_formulas_option
@new_text_column_option
@new_label_column_option
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
    escape_formulas: bool,
    text_columns: tuple[str, ...],
    label_column: str | None,
    reading: Reading,
) -> None:
    """Let a language model answer TEXTS, with a probability for each label, for textcls train --unlabelled.

    Each answer is kept in OUTPUT.answers once it is given: the same command, interrupted or not, asks nothing twice.
    With --labelled, rows whose label is known are asked about first. The key is read from OPENAI_API_KEY.
    """
    from textcls.annotation.annotate import Asking
    from textcls.annotation.endpoint import Endpoint, address
    from textcls.annotation.journal import Journal
    from textcls.annotation.price import Price

    if str(output) == "-":
        raise ConfigError("Answers are kept beside the output: name a file, and not standard output.")
    check_not_an_input(output, [path for path in (texts, labels, labelled, prompt) if path is not None])
    table = NewTable.at(output, escape_formulas=escape_formulas)
    if price is not None and not all(map(isfinite, price)):
        raise ConfigError("--price takes two numbers, dollars for a million tokens.")
    options = ReadOptions(encoding=reading.options.encoding)
    described, rows = _described(labels, options), list[tuple[str, str]]()
    if labelled is not None:
        rows = _labelled(labelled, text_columns, label_column, options, described, reading)
    elif examples:
        raise ConfigError("--examples are taken from --labelled rows: name these.")
    known, asked = _prompt(described, rows, examples, prompt)
    if least_agreement and not known:
        raise ConfigError("--least-agreement needs --labelled rows, more of each label than are shown as --examples.")
    given = _given(texts, text_columns, known, reading)
    announce = partial(_announce, asked, [*(text for text, _ in known), *given.texts], price and Price(*price))
    kept = output.with_name(f"{output.name}.answers")
    about = (address(endpoint), model, asked.digest)
    if dry_run:
        _show(asked, given.texts[0])
        with Journal(kept if kept.exists() else None, *about) as journal:
            announce(journal)
        return
    to = Endpoint(endpoint, model, asked, seconds=timeout)
    with Journal(kept, *about) as journal:
        announce(journal)
        _confirm(to, yes=yes)
        asking = Asking(to, journal, at_once=at_once, most_tokens=max_tokens_total or inf)
        asyncio.run(_ask(asking, to, journal, given, partial(announce, journal), least_agreement, quiet=reading.quiet))
        try:
            done = _write(table, to, journal, given)
        except InputError as error:
            raise InputError(
                f"{error} What was answered is in {kept}: rename it like the new output, and nothing is asked again."
            ) from error
        _say_missing(asking, given.texts, len(given.rows) - done)
    click.echo(
        f"{plural(done, 'row')} of {len(given.rows):,} -> {output}."
        + (f" Next: textcls train LABELLED --unlabelled {output} --probabilities 'p_*'" if done else "")
    )


def _labelled(
    path: Path,
    text_columns: Sequence[str],
    label_column: str | None,
    options: ReadOptions,
    described: "Sequence[DescribedLabel]",
    reading: Reading,
) -> list[tuple[str, str]]:
    """Return labelled rows, texts as they are sent, all of whose labels are among those that are described."""
    from textcls.annotation.annotate import sent

    found = read_labelled(path, text_columns, label_column, options=options, bad=reading.bad)
    names, having = [label.name for label in described], set(found.labels)
    if other := next((label for label in found.labels if label not in names), None):
        raise InputError(f"{path} has the label {other!r}, which --labels does not name.")
    if without := [name for name in names if name not in having]:
        reading.say([f"No labelled row has the label {listed(without)}, which train needs of each."])
    return [(sent(text), label) for text, label in zip(found.texts, found.labels, strict=True)]


def _prompt(
    described: "Sequence[DescribedLabel]", rows: Sequence[tuple[str, str]], examples: int, prompt: Path | None
) -> "tuple[list[tuple[str, str]], Prompt]":
    """Return the labelled rows that are asked about, and what is asked, of which the others are a part."""
    from textcls.annotation import prompt as asked

    shown = set(asked.examples_of(rows, examples))
    system = asked.SYSTEM if prompt is None else _read(prompt)
    made = asked.Prompt(tuple(described), tuple(rows[i] for i in sorted(shown)), system)
    return [row for i, row in enumerate(rows) if i not in shown], made


def _described(path: Path, options: ReadOptions) -> "list[DescribedLabel]":
    from textcls.annotation.prompt import DescribedLabel

    with open_table(path, options) as table:
        if "label" not in table.columns:
            raise InputError(f"{path} has no column label; it has {listed(table.columns)}.")
        cells = [(row.fields.get("label"), row.fields.get("description"), row.where) for row in table.rows]
    found = []
    for name, what, where in cells:
        label = "" if name is None else str(name).strip()
        if unpaired_surrogate(label):
            raise InputError(f"{where}: the label holds half a character, which no request can.")
        if label:
            found.append(DescribedLabel(label, "" if what is None else str(what).strip()))
    return found


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"The prompt {path} cannot be read: is it a text file in UTF-8?") from error


def _given(path: Path, text_columns: Sequence[str], known: Sequence[tuple[str, str]], reading: Reading) -> _Rows:
    """Return the rows to answer, whose columns must not be those of the answers."""
    from textcls.annotation.annotate import sent

    with reading.texts(path, text_columns) as found:
        rows = list(found)
    reading.say_skipped()
    if not rows:
        raise InputError(f"{path} has no rows.")
    columns = dict.fromkeys(name for _, row in rows for name in row.fields)
    if taken := next((name for name in columns if name in _ADDED or name.startswith(_PROBABILITY)), None):
        raise InputError(
            f"{path} has a column {taken!r}, and {listed(_ADDED)} and all that begin with {_PROBABILITY} are "
            "columns of the answers: rename it."
        )
    return _Rows([row for _, row in rows], [sent(text) for text, _ in rows], known)


def _show(prompt: "Prompt", text: str) -> None:
    """Show what is sent to ask about a text."""
    for message in prompt.messages(text):
        click.echo(f"[{message['role']}]\n{message['content']}\n")


def _announce(prompt: "Prompt", texts: Sequence[str], price: "Price | None", journal: "Journal") -> None:
    """Say what the answers that are missing take, as far as can be told."""
    from textcls.annotation.price import estimate

    known = [(text, answer) for text in dict.fromkeys(texts) if (answer := journal.get(text)) is not None]
    missing = list(dict.fromkeys(texts).keys() - dict(known).keys())
    took = estimate(prompt, missing, known)
    cost = f", some ${took.dollars(price):,.2f}" if price is not None else ""
    click.echo(
        f"{plural(len(missing), 'text')} to ask about, {len(known):,} answered already: about {took.read:,} tokens to "
        f"read and {took.written:,} to write{cost}.",
        err=True,
    )


def _confirm(to: "Endpoint", *, yes: bool) -> None:
    """Let a person say whether texts may leave this machine."""
    if yes:
        return
    if not _is_asked():
        raise ConfigError(f"The texts would be sent to {to.url}, and there is nobody to ask: add --yes if they may.")
    click.confirm(f"The texts are sent to {to.url}. Go on?", abort=True, err=True)


def _is_asked() -> bool:
    """Say whether somebody sits before this."""
    return sys.stdin.isatty()


async def _ask(
    asking: "Asking",
    to: "Endpoint",
    journal: "Journal",
    given: _Rows,
    announce: Callable[[], None],
    least: float,
    *,
    quiet: bool,
) -> None:
    """Have the labelled rows answered, then some texts, which tell what all take, then the others."""
    from textcls.annotation.annotate import agreement

    try:
        async with to:
            with progress_on(stderr_console(quiet=quiet), "texts") as progress:

                async def ask(name: str, texts: Sequence[str]) -> None:
                    if missing := asking.missing(texts):
                        progress.phase(name, len(missing))
                        await asking.ask(missing, progress.step)

                await ask("labelled rows", [text for text, _ in given.known])
                if given.known:
                    _check(agreement(given.known, to.prompt.names, journal), len(given.known), least)
                await ask("first texts", given.texts[:_FIRST])
                if asking.missing(given.texts):
                    announce()
                    await ask("texts", given.texts)
    finally:
        for note in to.notes:
            click.echo(f"Note: {note}", err=True)


def _check(found: "Agreement", rows: int, least: float) -> None:
    """Say how far the model agrees with so many labelled rows, and stop where that is too little or not known."""
    if not found.rows:
        said = "None of the labelled rows was answered: the server refuses them, or --max-tokens-total is too low."
        if least:
            raise InputError(f"{said} Without them --least-agreement cannot be judged. The texts were not sent.")
        click.echo(f"Note: {said}", err=True)
        return
    interval = share(found.right, found.rows)
    said = (
        f"Labelled rows: {found.right:,} of {found.rows:,} answered as labelled, {percent(interval.value)} (95 % "
        f"interval {percent(interval.low)} to {percent(interval.high)})"
    )
    if found.right < found.rows:
        label, (right, rows) = min(found.by_label.items(), key=lambda one: (one[1][0] / one[1][1], -one[1][1]))
        said += f"; least of {label!r}, {right:,} of {rows:,}"
    if found.rows < rows:
        said += f"; {rows - found.rows:,} without an answer"
    click.echo(f"{said}.", err=True)
    if interval.value < least:
        raise InputError(
            f"That is below --least-agreement, which is {least:g}: describe the labels better, show --examples, or ask "
            "another model. The texts were not sent."
        )


def _write(table: NewTable, to: "Endpoint", journal: "Journal", given: _Rows) -> int:
    """Write the rows that were answered; return how many."""
    from textcls.annotation.annotate import best

    names = to.prompt.names
    added = [*(f"{_PROBABILITY}{name}" for name in names), *_ADDED]
    columns = list(dict.fromkeys(name for row in given.rows for name in row.fields))
    done = 0
    with table.open(columns, added) as writer:
        for row, text in zip(given.rows, given.texts, strict=True):
            answer = journal.get(text)
            if answer is None or answer.probabilities is None:
                continue
            about = (best(answer, names), to.model, answer.at, to.prompt.digest[:12], answer.tokens)
            probabilities = [round(float(one), 6) for one in answer.probabilities]
            kept = row._replace(fields={name: row.fields.get(name) for name in columns})
            writer.write([kept], [dict(zip(added, (*probabilities, *about), strict=True))])
            done += 1
    return done


def _say_missing(asking: "Asking", texts: Sequence[str], missing: int) -> None:
    """Say why rows have no answer."""
    without = set(asking.missing(texts))
    refused, unasked = (sum(text in some for text in texts) for some in (asking.refused, without))
    if none := missing - refused - unasked:
        click.echo(f"Note: {plural(none, 'answer')} named none of the labels: left out.", err=True)
    if refused:
        click.echo(
            f"Note: {plural(refused, 'row')} refused by the server, or not answered to the end: left out, and asked "
            "about again next time.",
            err=True,
        )
    if unasked:
        click.echo(
            f"Note: {plural(unasked, 'row')} not asked about, since --max-tokens-total was spent: the same command "
            "goes on with more.",
            err=True,
        )
