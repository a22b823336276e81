"""`textcls lexicon`: the model as a table, without any data: what each word, pair and piece says about each label."""

from collections.abc import Sequence
from functools import reduce
from operator import or_
from pathlib import Path

import click

from textcls._util.atomic_write import atomic_write, check_not_an_input, check_output_path
from textcls.cli.options import PATH, escape_formulas_option, model_argument
from textcls.cli.outputs import TABLE
from textcls.display.terminal.console import show, stdout_console
from textcls.display.terminal.lexicon import changes_report, lexicon_report
from textcls.display.text import plural
from textcls.errors import ConfigError
from textcls.explain.lexicon import terms as word_lists
from textcls.explain.lexicon.table import Lexicon, changes, changes_csv, changes_json, lexicon_of, require_rows
from textcls.explain.lexicon.terms import Terms
from textcls.explain.stability import load_others
from textcls.model.classifier import Classifier
from textcls.model.labels import label_number

TOP = 10
_ENDINGS = (".csv", ".json")


@click.command(
    epilog="""Example: textcls lexicon tickets.onnx

    Example: textcls lexicon tickets.onnx --before old.onnx --output changes.csv"""
)
@model_argument
@click.argument("words", type=PATH, required=False)
@click.option(
    "--before", type=PATH, metavar="MODEL", help="Show how MODEL differs from this one, instead of what it says."
)
@click.option(
    "--stability",
    "others_path",
    type=PATH,
    metavar="PATH",
    help="With --output: also write the range of each weight over other models of the same rows, as in explain.",
)
@click.option("--output", "-o", type=TABLE, metavar="FILE", help="Write the whole table: .csv or .json.")
@escape_formulas_option
@click.option("--label", "only", multiple=True, metavar="LABEL", help="Show only this label; may be repeated.")
@click.option(
    "--top",
    type=click.IntRange(min=1),
    help="List this many words for and against each label, with numbers; of changes, this many.  "
    f"[default: a line for each label; {TOP} changes]",
)
def lexicon(
    model: Path,
    words: Path | None,
    before: Path | None,
    others_path: Path | None,
    output: Path | None,
    escape_formulas: bool,
    only: tuple[str, ...],
    top: int | None,
) -> None:
    """Show what each word, short sequence of words and piece of a word says of each label in MODEL, without any data.

    A model file holds hashes of words and not the words. They come from WORDS, a file with a word or text per line, or
    from the list that `textcls train --keep-words` has left beside MODEL.
    """
    if others_path is not None and (output is None or before is not None):
        raise ConfigError("--stability is told in the table of one model; give --output, and leave --before out.")
    if output is not None and (only or top is not None) and before is None:
        raise ConfigError("--label and --top choose what is shown, and --output writes all of it; leave them out.")
    classifier = Classifier.load(model)
    others = [] if others_path is None else load_others(others_path, classifier)
    only = tuple(map(classifier.known_as, only))
    for label in only:
        label_number(classifier.labels, label)
    first = None if before is None else Classifier.load(before)
    if output is not None:
        lists = [word_lists.beside(path) for path in (model, before) if path is not None] if words is None else []
        check_not_an_input(output, lists)
        check_lexicon_path(output)
    terms = terms_of([one for one in (classifier, first) if one is not None], words)
    if first is not None and before is not None:
        names = {column.name for column in classifier.info.columns}
        columns = (*classifier.info.columns, *(one for one in first.info.columns if one.name not in names))
        sides = [lexicon_of(one, terms, columns) for one in (first, classifier)]
        _show_changes(sides[0], sides[1], (before.name, model.name), output, top or TOP, escape_formulas)
        return
    found = lexicon_of(classifier, terms)
    if output is not None:
        write_lexicon(output, found.with_range(others) if others else found, escape_formulas=escape_formulas)
    else:
        show_lexicon(found, only, top)


def terms_of(classifiers: Sequence[Classifier], words: Path | None) -> Terms:
    """Return the terms of a list, or of the lists beside the models.

    Raises:
        InputError: there is no list, or it cannot be read.
        ConfigError: a model has no values for words.
    """
    for classifier in classifiers:
        require_rows(classifier)
    if words is not None:
        return word_lists.read_terms(words, classifiers[0].info)
    return reduce(or_, (word_lists.read_beside(classifier.path, classifier.info) for classifier in classifiers))


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


def _show_changes(
    before: Lexicon, after: Lexicon, names: tuple[str, str], output: Path | None, top: int, escape_formulas: bool
) -> None:
    found = changes(before, after)
    gone, new = sum(one.after is None for one in found), sum(one.before is None for one in found)
    beside = ", and values of columns" if before.columns else ""
    said = f"{len(found) - gone - new:,} words, sequences and pieces{beside} in both, {new:,} new, {gone:,} gone"
    if output is None:
        differing = [one for one in found if one.change and one.kind != word_lists.COLUMN]
        of_columns = [one for one in found if one.change and one.kind == word_lists.COLUMN]
        click.echo(f"{said}.")
        if not differing and not of_columns:
            click.echo("The two models say the same of all of them.")
            return
        click.echo()
        show(changes_report([*differing[:top], *of_columns[:top]], names))
        return
    with atomic_write(output) as file:
        is_json = output.suffix.lower() == ".json"
        file.write((changes_json(found) if is_json else changes_csv(found, escape_formulas=escape_formulas)).encode())
    click.echo(f"{said} -> {output}.")
