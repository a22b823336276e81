"""How the commands read their files, and what they report about it."""

from collections.abc import Collection, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, TypeVar

import click

from textcls.data import (
    BadRows,
    LabelledRow,
    LabelledTable,
    LabelSet,
    ReadOptions,
    Row,
    Target,
    TargetOptions,
    label_of,
    no_rows,
    open_labelled,
    open_table,
    open_targets,
    texts_of,
)
from textcls.data.given_labels import present
from textcls.data.known_labels import label_sets_if_known
from textcls.data.label_names import LabelNames
from textcls.data.labelled import Usual
from textcls.data.memory import Readable
from textcls.data.tables import Table, TextRow
from textcls.display.terminal.console import stderr_console
from textcls.display.terminal.progress import counted
from textcls.display.text import visible
from textcls.errors import ConfigError, InputError
from textcls.model.artifact import LABELS_WRITTEN, ModelInfo
from textcls.model.label_paths import label_columns

T = TypeVar("T")
T_target = TypeVar("T_target", bound=Target)
ANY_TARGETS: Final = TargetOptions()
# Advice for rows that have one label if a model gives several: with and without these options.
_OPTIONS_OF_LABELS: Final = (
    "add --label-separator if a cell holds several, or --task several if each row has one or none"
)
_AS_IN_TRAINING: Final = "write the labels as those of the training, in lists, or leave --label-column out"


@dataclass(frozen=True, slots=True)
class Reading:
    """How a command reads its files, and what it reports about that on standard error."""

    options: ReadOptions
    bad: BadRows
    quiet: bool

    @contextmanager
    def labelled_rows(
        self,
        paths: Sequence[Readable],
        text_columns: Sequence[str],
        label_column: str | None,
        training: ModelInfo | None = None,
        *,
        more: Sequence[str] = (),
        as_known: bool = True,
    ) -> Iterator[Iterator[LabelledRow[str]]]:
        """Open labelled files for their rows.

        Args:
            paths: the files.
            text_columns: the columns of the text; without any those of the training, or of well-known names.
            label_column: the column of the label; likewise.
            training: the model whose columns are looked for first.
            more: further columns that the files must have.
            as_known: whether labels are read with the model's spelling, however the rows spell them.

        Raises:
            InputError: as in `open_labelled`; or, once all is read, there were no rows.
        """
        opened = open_labelled(
            paths,
            text_columns,
            label_column,
            usual=_usual(training, as_known=as_known),
            more=more,
            options=self.options,
            bad=self.bad,
        )
        with self._seen(opened, paths) as table:
            yield table.rows

    @contextmanager
    def table_of_targets(
        self, paths: Sequence[Readable], text_columns: Sequence[str], label_column: str | None, targets: TargetOptions
    ) -> Iterator[LabelledTable[Target]]:
        """Open labelled files whose rows have one label each, or label sets.

        Raises:
            InputError: as `open_targets` says; or, once all is read, there were no rows.
            ConfigError: as `open_targets` says.
        """
        opened = open_targets(paths, text_columns, label_column, targets=targets, options=self.options, bad=self.bad)
        with self._seen(opened, paths) as table:
            yield table

    @contextmanager
    def label_sets(
        self,
        paths: Sequence[Readable],
        text_columns: Sequence[str],
        label_column: str | None,
        targets: TargetOptions,
        training: ModelInfo | None,
        *,
        more: Sequence[str] = (),
        advice: str = _OPTIONS_OF_LABELS,
        as_known: bool = True,
    ) -> Iterator[Iterator[LabelledRow[LabelSet]]]:
        """Open labelled files whose rows have several labels each, for a model that may give several.

        By default, they are read as those of the training were, if there is a model; `more` are further columns that
        the files must have, `advice` says what to do about rows that have one label, and `as_known` whether labels are
        read with the model's spelling, however the rows spell them.

        Raises:
            InputError: as `open_targets` says; or rows have one label each; or, once all is read, there were no rows.
            ConfigError: as `open_targets` says; or `targets` say that rows have one label.
        """
        if targets.several is False:
            raise ConfigError("The model gives texts several labels, and --task single asks for one; leave it out.")
        written = ANY_TARGETS if training is None else written_labels(training)
        targets = replace(targets, merge_rows=targets.merge_rows or written.merge_rows)
        if written.label_separator is not None:
            targets = replace(targets, several=True)
        opened = open_targets(
            paths,
            text_columns,
            label_column,
            targets=targets,
            usual=_usual(training, as_known=as_known),
            usual_targets=written,
            more=more,
            options=self.options,
            bad=self.bad,
        )
        with self._seen(opened, paths) as table:
            yield (_label_set(row, advice) for row in table.rows)

    @contextmanager
    def _seen(
        self, opened: AbstractContextManager[LabelledTable[T_target]], paths: Sequence[Readable]
    ) -> Iterator[LabelledTable[T_target]]:
        """Open a table of at least one row, print its notes, and count its rows on a terminal."""
        with opened as table:
            self.say(table.notes)
            with self._counted(self._at_least_one(table.rows, paths)) as rows:
                yield replace(table, rows=rows)

    def _at_least_one(self, rows: Iterator[T], paths: Sequence[Readable]) -> Iterator[T]:
        first = next(rows, None)
        if first is None:
            raise no_rows(paths, self.bad)
        yield first
        yield from rows

    @contextmanager
    def _counted(self, rows: Iterator[T]) -> Iterator[Iterator[T]]:
        """Yield rows that are counted on a terminal; the count is removed before an error is reported."""
        with closing(counted(rows, stderr_console(quiet=self.quiet))) as found:
            yield found

    @contextmanager
    def texts(
        self, path: Readable, text_columns: Sequence[str], training: ModelInfo | None = None
    ) -> Iterator[Iterator[TextRow]]:
        """Open a file for its texts; other columns are ignored.

        Args:
            path: the file.
            text_columns: the columns of the text; without any those of the training, or of well-known names.
            training: the model whose columns are looked for first.

        Raises:
            InputError: the file cannot be read, or lacks a column.
        """
        with self._texts_of_table(path, text_columns, training) as (_, _, texts):
            yield texts

    @contextmanager
    def _texts_of_table(
        self, path: Readable, text_columns: Sequence[str], training: ModelInfo | None
    ) -> Iterator[tuple[Table, tuple[str, ...], Iterator[TextRow]]]:
        """Open a file for its texts, with the table and the columns that they come from."""
        with open_table(path, self.options, self.bad) as opened:
            usual = Usual.of(training)
            table = opened if training is None else opened.with_lists(usual.label_column)
            chosen = table.choose(text_columns or usual.text_columns, "text", guess=not text_columns)
            table.note_lacking(usual.beside, [*chosen, *label_columns(usual.label_column, table.columns)])
            self.say(table.notes)
            yield table, chosen, texts_of(table, chosen, usual.beside, usual.max_tokens)

    @contextmanager
    def texts_and_labels(
        self, path: Path, text_columns: Sequence[str], label_column: str | None, training: ModelInfo
    ) -> Iterator[Iterator[tuple[str, str | Collection[str] | None]]]:
        """Open a file for its texts and, if it has any, their labels.

        Each row must have a label if a column was requested, though an empty cell means no label if a text may have
        several; otherwise it may have one, in the column of the training, and an empty cell is an unknown label.

        Raises:
            InputError: the file cannot be read, or lacks a column; or, once all is read, there were no rows.
        """
        if label_column is not None and training.several:
            wanted = (text_columns, label_column, ANY_TARGETS, training)
            with self.label_sets([path], *wanted, advice=_AS_IN_TRAINING) as rows:
                yield ((row.text, present(row.label)) for row in rows)
            return
        if label_column is not None:
            with self.labelled_rows([path], text_columns, label_column, training) as rows_of_one:
                yield ((row.text, row.label) for row in rows_of_one)
            return
        names = LabelNames.of_models(training)
        with self._texts_of_table(path, text_columns, training) as (table, columns, texts):
            if training.several:
                how = (training.label_column, written_labels(training), lambda note: self.say([note]))
                sets = label_sets_if_known(table, texts, columns, *how)
                known = (
                    (text, None if labels is None else {names.name(one, self.bad) for one in present(labels)})
                    for text, labels in sets
                )
                with self._counted(self._at_least_one(known, [path])) as found_sets:
                    yield found_sets
            else:
                levels = label_columns(training.label_column, table.columns)
                # The label of an incomplete path is unknown.
                whole = len(levels) == 1 or {*levels} <= {*table.columns}

                def label(row: Row) -> str | None:
                    found = label_of(row, training.label_column) if whole else None
                    return names.name(found, self.bad) if isinstance(found, str) else None

                labels = ((text, label(row)) for text, row in texts)
                with self._counted(self._at_least_one(labels, [path])) as found:
                    yield found

    def say(self, notes: Sequence[str]) -> None:
        """Print `notes` to standard error, unless `quiet`."""
        for note in notes if not self.quiet else ():
            click.echo(f"Note: {visible(note)}", err=True)

    def say_each_skipped(self) -> None:
        """Print each row at the time it is skipped, since a pipe may have no end."""
        self.bad.say = lambda bad: click.echo(visible(f"Note: skipped {bad.where}: {bad.why}."), err=True)

    def say_skipped(self) -> None:
        """Print which rows were skipped, and which values were not understood, or are empty texts.

        That is part of the result and printed even if `quiet`.
        """
        for said in filter(None, (self.bad.summary(), *self.bad.odd_rows())):
            click.echo(f"Note: {visible(said)}", err=True)


def written_labels(training: ModelInfo) -> TargetOptions:
    """Return how the labels of the training of a multi-label model were written."""
    return TargetOptions.from_json(training.training.get(LABELS_WRITTEN, {}))


def _usual(training: ModelInfo | None, *, as_known: bool = True) -> Usual:
    found = Usual.of(training)
    return found if as_known else found._replace(names=None)


def _label_set(found: LabelledRow[Target], advice: str) -> LabelledRow[LabelSet]:
    text, labels, row, weight = found
    if isinstance(labels, str):
        raise InputError(f"{row.where} has one label, but the model assigns several; {advice}.")
    return LabelledRow(text, labels, row, weight)
