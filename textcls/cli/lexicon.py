"""`textcls lexicon`: the model as a table, without any data: what each word, pair and piece says about each label."""

from collections.abc import Sequence
from pathlib import Path

import click

from textcls._util.atomic_write import atomic_write, check_not_an_input, check_output_path
from textcls.cli.options import PATH, escape_formulas_option, model_argument
from textcls.cli.outputs import TABLE
from textcls.display.terminal.console import show, stdout_console
from textcls.display.terminal.lexicon import lexicon_report
from textcls.display.text import plural
from textcls.errors import ConfigError
from textcls.explain.lexicon import terms as word_lists
from textcls.explain.lexicon.table import Lexicon, lexicon_of, require_rows
from textcls.explain.lexicon.terms import Terms
from textcls.model.classifier import Classifier
from textcls.model.labels import label_number

_ENDINGS = (".csv", ".json")


@click.command(epilog="Example: textcls lexicon tickets.onnx")
@model_argument
@click.argument("words", type=PATH, required=False)
@click.option("--output", "-o", type=TABLE, metavar="FILE", help="Write the whole table: .csv or .json.")
@escape_formulas_option
@click.option("--label", "only", multiple=True, metavar="LABEL", help="Show only this label; may be repeated.")
@click.option(
    "--top",
    type=click.IntRange(min=1),
    help="List this many words for and against each label, with numbers.  [default: a line for each label]",
)
def lexicon(
    model: Path,
    words: Path | None,
    output: Path | None,
    escape_formulas: bool,
    only: tuple[str, ...],
    top: int | None,
) -> None:
    """Show what each word, short sequence of words and piece of a word says of each label in MODEL, without any data.

    A model file holds hashes of words and not the words. They come from WORDS, a file with a word or text per line, or
    from the list that `textcls train --keep-words` has left beside MODEL.
    """
    if output is not None and (only or top is not None):
        raise ConfigError("--label and --top choose what is shown, and --output writes all of it; leave them out.")
    classifier = Classifier.load(model)
    only = tuple(map(classifier.known_as, only))
    for label in only:
        label_number(classifier.labels, label)
    if output is not None:
        check_not_an_input(output, [word_lists.beside(model)] if words is None else [])
        check_lexicon_path(output)
    found = lexicon_of(classifier, terms_of(classifier, words))
    if output is not None:
        write_lexicon(output, found, escape_formulas=escape_formulas)
    else:
        show_lexicon(found, only, top)


def terms_of(classifier: Classifier, words: Path | None) -> Terms:
    """Return the terms of a list, or of the list beside the model.

    Raises:
        InputError: there is no list, or it cannot be read.
        ConfigError: the model has no values for words.
    """
    require_rows(classifier)
    if words is not None:
        return word_lists.read_terms(words, classifier.info)
    return word_lists.read_beside(classifier.path, classifier.info)


def check_lexicon_path(path: Path) -> None:
    """Refuse a path whose name does not indicate a format for a lexicon.

    Raises:
        ConfigError: it ends neither in .csv nor in .json.
        SurroundingsError: nothing can be written there.
    """
    if path.suffix.lower() not in _ENDINGS:
        raise ConfigError(f"The name {path} does not say the format; end it in {' or '.join(_ENDINGS)}.")
    check_output_path(path)


def write_lexicon(path: Path, found: Lexicon, *, escape_formulas: bool = False) -> None:
    """Write a lexicon, and report how much of one it is."""
    with atomic_write(path) as file:
        is_json = path.suffix.lower() == ".json"
        file.write((found.as_json() if is_json else found.as_csv(escape_formulas=escape_formulas)).encode())
    rest = f"; {found.unknown:,} more words and sequences are unknown to the model" if found.unknown else ""
    dropped = f"; {found.dropped:,} rare ones were dropped to bound memory" if found.dropped else ""
    click.echo(f"{how_many(found)} -> {path}{rest}{dropped}.")


def show_lexicon(found: Lexicon, only: Sequence[str], top: int | None) -> None:
    """Print the strongest words of each label, or of the named ones."""
    click.echo(f"{how_many(found)} known to the model.\n")
    console = stdout_console()
    show(lexicon_report(found, only or found.labels, top, console.width), console)


def how_many(found: Lexicon) -> str:
    """Return how many terms of each kind there are."""
    number = {kind: found.number(kind) for kind in word_lists.KINDS}
    *most, last = [plural(count, kind) for kind, count in number.items() if count or kind != "triple"]
    return f"{', '.join(most)} and {last}"
