"""Files of unlabelled texts, with or without given probabilities in their columns."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from textcls.data import Bad, BadRows, ReadOptions, Table, no_rows, open_tables, texts_of
from textcls.data.memory import Readable
from textcls_training.data import probabilities
from textcls_training.data.unlabelled import AnswerCosts, UnlabelledText, UnlabelledTexts


def read_unlabelled(
    paths: Sequence[Readable],
    text_columns: Sequence[str],
    names: Sequence[str],
    labelled: Sequence[str],
    *,
    limit: int,
    pattern: str | None = None,
    several: bool = False,
    guess: bool = False,
    options: ReadOptions | None = None,
    bad: BadRows | None = None,
) -> tuple[UnlabelledTexts, list[str]]:
    """Read the unlabelled files at `paths` row by row, and return a sample of them, with notes for people.

    Args:
        paths: the files; all must have the columns.
        text_columns: the columns of the text; with labelled rows, the columns of these.
        names: the labels, in the order of their numbers.
        labelled: the texts that must not be in the sample.
        limit: how many texts are kept at most.
        pattern: the names of the columns of probabilities, with a `*` for the label; None if there are none.
        several: whether a text may have several labels, so that their probabilities do not sum to 1.
        guess: whether columns with well-known names may replace `text_columns`, which were not asked for.
        options: how the files are read.
        bad: what to do with rows that cannot be used.

    Raises:
        InputError: a file cannot be read, lacks the columns or has no rows.
        ConfigError: the pattern makes no sense.
    """
    with open_tables(paths, options, bad) as table:
        texts = table.choose(text_columns, "text", guess=guess)
        columns = None if pattern is None else _columns(table, texts, pattern, names)
        costs = AnswerCosts()
        found = UnlabelledTexts.sample(_rows(table, texts, columns, costs, several=several), limit, labelled)
        found = replace(found, costs=costs)
    if not found.given:
        raise no_rows(paths, bad)
    return found, table.notes


def _columns(table: Table, texts: Sequence[str], pattern: str, names: Sequence[str]) -> list[str]:
    """Return the column of each label; every file must have it."""
    found: list[str] = []
    for part in table.parts:
        others = [name for name in part.columns if name not in texts]
        found = probabilities.columns_of(others, pattern, names, part.file)
    return found


def _rows(
    table: Table, texts: Sequence[str], columns: Sequence[str] | None, costs: AnswerCosts, *, several: bool
) -> Iterator[UnlabelledText]:
    for text, row in texts_of(table, texts):
        if columns is None:
            yield UnlabelledText(text)
        elif wrong := probabilities.problem(row.fields, columns, several=several):
            table.bad.add(Bad(row.where, wrong))
        else:
            costs.add(row.fields)
            yield UnlabelledText(text, probabilities.of_row(row.fields, columns, several=several))
