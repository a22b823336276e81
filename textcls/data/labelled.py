"""Texts with their labels, as read by training, evaluation and the check of data."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain, islice
from pathlib import Path
from sys import intern
from typing import Any, Final, Generic, NamedTuple, Self, TypedDict, TypeVar, Unpack, cast, overload

from textcls.data.columns import ANSWER, ANSWERED_BY, DEFAULT_LABEL_COLUMN, DEFAULT_TEXT_COLUMNS
from textcls.data.label_names import LabelNames
from textcls.data.memory import MemoryTable, Readable
from textcls.data.places import Places
from textcls.data.rows import Bad, BadRows, ReadOptions, Row, Unreadable
from textcls.data.source import STANDARD, name_of
from textcls.data.storage import RemoteFile
from textcls.data.tables import Table, TextRow, open_tables, texts_of
from textcls.data.targets import (
    JSON,
    T,
    Target,
    TargetOptions,
    as_usual,
    holds_lists,
    label_of,
    labels_of_cell,
    labels_of_columns,
    one_as_before,
)
from textcls.data.text_store import TextStore
from textcls.errors import ConfigError, InputError
from textcls.model import label_sets
from textcls.model.artifact import ModelInfo
from textcls.model.columns import Column
from textcls.model.label_paths import label_columns
from textcls.model.label_sets import LabelSet
from textcls.model.labels import unpaired_surrogate

T_co = TypeVar("T_co", bound=Target, covariant=True)
# How many rows to read to see whether they have one label or several, and how many characters of texts.
LOOKED_AT: Final = 1000
LOOKED_AT_CHARACTERS: Final = 4_000_000
# Rows among which those with the same error are counted when a row stops the work.
COUNTED: Final = 100_000


class LabelledRow(NamedTuple, Generic[T_co]):
    """A text, its label or label set, the row they came from, and how much it counts."""

    text: str
    label: T_co
    row: Row
    weight: float = 1.0


@dataclass(slots=True)
class _Rows(Generic[T]):
    """Texts and their targets, in the order of the files.

    Attributes:
        texts: the texts.
        labels: the label of each, or its label set.
        text_columns: the columns the texts came from.
        label_column: the column of the labels; if there are several, their patterns one after the other.
        places: the place of each row.
        more: the values of the further columns requested, one per row.
        notes: what was detected in the files and is not the default, in sentences.
        weights: the weight of each row, 0 or more; None if all count the same.
        renamed: maps other names of labels in the files to the labels, if some were renamed.
    """

    texts: Sequence[str]
    labels: list[T]
    text_columns: tuple[str, ...] = DEFAULT_TEXT_COLUMNS
    label_column: str = DEFAULT_LABEL_COLUMN
    places: Places = field(default_factory=Places)
    more: dict[str, list[Any]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    weights: list[float] | None = None
    renamed: Mapping[str, str] = field(default_factory=dict)

    def only(self, rows: Sequence[int]) -> Self:
        """Return the rows with these numbers, in ascending order."""
        return replace(
            self,
            texts=[self.texts[i] for i in rows],
            labels=[self.labels[i] for i in rows],
            places=self.places.only(rows),
            more={name: [values[i] for i in rows] for name, values in self.more.items()},
            weights=None if self.weights is None else [self.weights[i] for i in rows],
        )


class Labelled(_Rows[str]):
    """Texts with one label each."""

    __slots__ = ()


@dataclass(slots=True)
class LabelledSets(_Rows[LabelSet]):
    """Texts with a label set each: the labels that apply, with their probabilities.

    Attributes:
        label_columns: if each label has its own column, all labels with a column, even if they apply to no row; else
            empty.
    """

    label_columns: tuple[str, ...] = ()

    def names(self) -> list[str]:
        """Return the labels that apply to a row with a probability above 0, or have a column, sorted."""
        return sorted({*self.label_columns, *(name for labels in self.labels for name in labels)})


@dataclass(frozen=True, slots=True)
class LabelledTable(Generic[T_co]):
    """An open table of labelled texts, read one row at a time.

    Attributes:
        text_columns: the columns of the texts.
        label_column: the column of the labels; if there are several, their patterns one after the other.
        rows: the rows; either all have one label, or all have a label set.
        notes: what was detected in the files and is not the default, in sentences.
        label_columns: if each label has its own column, the labels; else empty.
    """

    text_columns: tuple[str, ...]
    label_column: str
    rows: Iterator[LabelledRow[T_co]]
    notes: list[str]
    label_columns: tuple[str, ...] = ()


class Usual(NamedTuple):
    """The columns to look for first: of the text, of the label, and those beside the text that a model reads.

    A file may lack any of the last, which are added to the text of a row (`textcls.model.columns.pack`). `names` has
    other names of a model's labels in rows, and `max_tokens` says how much of a text it reads.
    """

    text_columns: Sequence[str] = DEFAULT_TEXT_COLUMNS
    label_column: str = DEFAULT_LABEL_COLUMN
    beside: Sequence[Column] = ()
    names: LabelNames | None = None
    max_tokens: int | None = None

    @classmethod
    def of(cls, training: ModelInfo | None) -> "Usual":
        """Return the columns of a model's training; without a model, the well-known ones."""
        if training is None:
            return cls()
        names = LabelNames.of_models(training)
        return cls(training.text_columns, training.label_column, training.columns, names, training.max_tokens)


USUAL: Final = Usual()
NOTHING_USUAL: Final = TargetOptions()
_ONE_LABEL: Final = TargetOptions(several=False)


class LabelledOptions(TypedDict, total=False):
    """Options of labelled files other than their columns.

    Attributes:
        usual: the columns to look for first.
        more: further columns that the rows must have.
        options: how the files are read.
        bad: what to do with rows that cannot be used.
    """

    usual: Usual
    more: Sequence[str]
    options: ReadOptions | None
    bad: BadRows | None


def open_labelled(
    paths: Sequence[Readable],
    text_columns: Sequence[str] = (),
    label_column: str | None = None,
    **how: Unpack[LabelledOptions],
) -> AbstractContextManager[LabelledTable[str]]:
    """Open the files at `paths`, whose rows have one label each, as `open_targets` does.

    Raises:
        InputError: as for `open_targets`; or a label is empty.
    """
    opened: Any = open_targets(paths, text_columns, label_column, targets=_ONE_LABEL, **how)
    return cast(AbstractContextManager[LabelledTable[str]], opened)


@contextmanager
def open_targets(
    paths: Sequence[Readable],
    text_columns: Sequence[str] = (),
    label_column: str | None = None,
    *,
    targets: TargetOptions,
    usual: Usual = USUAL,
    usual_targets: TargetOptions = NOTHING_USUAL,
    more: Sequence[str] = (),
    options: ReadOptions | None = None,
    bad: BadRows | None = None,
) -> Iterator[LabelledTable[Target]]:
    """Open the labelled files at `paths`, whose rows have the targets described by `targets`.

    Either all rows have one label, or all have a label set. Where `targets` say nothing, labels are read as usual, such
    as in the training of a model, if the file fits. Labels known to `usual.names` are replaced by their names in the
    model.

    Args:
        paths: the files; all must have the columns.
        text_columns: the columns of the text; by default the usual ones, or those with well-known names.
        label_column: the column of the label; likewise.
        targets: how labels are written, as far as it is known.
        usual: the columns to look for first.
        usual_targets: how labels are usually written.
        more: further columns that the rows must have.
        options: how the files are read.
        bad: what to do with rows that cannot be used.

    Raises:
        InputError: as for `open_tables`; or a column is missing, the content of a cell is not valid, a pattern matches
            no column, or there are more labels than a model allows.
        ConfigError: both a column of labels and patterns of such columns are given.
    """
    with open_tables(paths, options, bad) as opened:
        # Two columns that are numbered may be two people's labels, and are no list unless somebody says so.
        asked = label_column is not None or usual.names is not None
        table = opened.with_lists(label_column or usual.label_column) if asked else opened
        texts = _text_columns(table, text_columns, usual)
        labels = label_columns(label_column or usual.label_column, table.columns)
        table.note_lacking(usual.beside, [*texts, *labels])
        _require(table, [*more, *([targets.weight_column] if targets.weight_column is not None else [])])
        items = texts_of(table, texts, usual.beside, usual.max_tokens)
        if label_column is None:
            targets = as_usual(targets, usual_targets, table.parts[0])
        if targets.label_columns:
            if label_column is not None:
                raise ConfigError(
                    "--label-column names the column of all labels, and --label-columns those of one label each; "
                    "give one of them."
                )
            by_column = labels_of_columns(table, targets, texts)
            label, names = " ".join(targets.label_columns), tuple(by_column.labels.values())
            rows: Iterator[LabelledRow[Target]] = _rows(table, items, by_column, targets.weight_column)
        else:
            label, names = _label_column(table, label_column, usual, texts), ()
            if targets.label_sets and len(label_columns(label, table.columns)) > 1:
                raise ConfigError(
                    f"The columns {label!r} are the levels of a tree, of which a row has one label, and rows are to "
                    "have several (--label-separator, --merge-rows or --task); leave one of the two out."
                )
            if label == targets.weight_column:
                raise InputError(f"The column {label!r} cannot be both label and weight of {table.parts[0].file}.")
            rows = _found_out(table, items, label, targets, usual_targets.label_separator)
        if usual.names is not None:
            names = tuple(dict.fromkeys(usual.names.name(name, table.bad) for name in names))
            rows = (row._replace(label=usual.names.target(row.label, table.bad)) for row in rows)
        rows = _merged(table, rows) if targets.merge_rows else rows
        yield LabelledTable(texts, label, rows, table.notes, names)


def _text_columns(table: Table, wanted: Sequence[str], usual: Usual) -> tuple[str, ...]:
    texts = table.choose(wanted or usual.text_columns, "text", guess=not wanted)
    _keepable(texts)
    return texts


def _label_column(table: Table, wanted: str | None, usual: Usual, texts: Sequence[str]) -> str:
    (label,) = table.choose([wanted or usual.label_column], "label", guess=wanted is None)
    _keepable([label])
    if {*label_columns(label, table.columns)} & {*texts}:
        raise InputError(f"The column {label!r} cannot be both text and label of {table.parts[0].file}.")
    return label


def _keepable(names: Sequence[str]) -> None:
    if odd := next((name for name in names if unpaired_surrogate(name)), None):
        raise InputError(f"The column {odd!r} cannot be kept in a model: its name has no UTF-8 form; rename it.")


def _require(table: Table, columns: Sequence[str]) -> None:
    for part in table.parts:
        lacking = next((name for name in columns if name not in part.columns), None)
        if lacking is not None:
            have = ", ".join(map(repr, part.columns))
            raise InputError(f"{part.file} has no column {lacking!r}; it has {have}.")


def _found_out(
    table: Table, items: Iterator[TextRow], column: str, targets: TargetOptions, separator: str | None
) -> Iterator[LabelledRow[Target]]:
    """Yield the rows, the first of which decide what has not been specified."""
    head = [] if targets.label_separator is not None or targets.several is False else _head(items)
    first = [item.row for item in head]
    read: Callable[[Row], Target | Bad]
    if targets.label_sets is None and _are_answers(table, column, first):
        targets = replace(targets, label_separator=JSON)
    if targets.label_sets or (targets.label_sets is None and holds_lists(first, column)):
        read = labels_of_cell(targets, column, table.format, first, separator)
    else:
        read = partial(label_of if targets.several is False else one_as_before, column=column)
    yield from _rows(table, chain(head, items), read, targets.weight_column)


def _merged(table: Table, rows: Iterable[LabelledRow[Target]]) -> Iterator[LabelledRow[Target]]:
    """Read all rows, and return the first one of each text, with the labels of all rows of that text."""
    found: dict[str, LabelledRow[Target]] = {}
    sets: dict[str, dict[str, float]] = {}
    count = 0
    for row in rows:
        count += 1
        found.setdefault(row.text, row)
        label_sets.add(sets.setdefault(row.text, {}), {row.label: 1.0} if isinstance(row.label, str) else row.label)
    if len(found) < count:
        texts = "1 text" if len(found) == 1 else f"{len(found):,} texts"
        table.notes.append(f"{count:,} rows are {texts}, each with the labels of all of its rows.")
    return (row._replace(label=sets[text]) for text, row in found.items())


def _are_answers(table: Table, column: str, rows: Sequence[Row]) -> bool:
    """Return whether a table was written by `textcls annotate` and its answers are lists of labels."""
    if column != ANSWER or any(ANSWERED_BY not in part.columns for part in table.parts):
        return False
    cells = [row.fields.get(column) for row in rows]
    return bool(cells) and all(isinstance(cell, str) and cell.startswith("[") for cell in cells)


def _head(items: Iterator[TextRow]) -> list[TextRow]:
    head: list[TextRow] = []
    characters = 0
    for item in items:
        head.append(item)
        characters += len(item.text)
        if len(head) >= LOOKED_AT or characters >= LOOKED_AT_CHARACTERS:
            break
    return head


def _with_count(bad: Bad, items: Iterator[TextRow], read: Callable[[Row], object]) -> Bad:
    """Return what is wrong with a row that stops the work, and how many such rows there are."""
    count, whole = 1, False
    with suppress(InputError):  # of a row that cannot be used for another reason
        for _, row in islice(items, COUNTED):
            count += isinstance(read(row), Bad)
        whole = next(items, None) is None
    if not whole:
        advice = f"leave out all such rows, at least {count:,},"
    else:
        advice = f"leave out all {count:,} such rows" if count > 1 else "leave it out"
    return bad._replace(why=bad.why.replace("leave out all such rows", advice))


def _rows(
    table: Table, items: Iterable[TextRow], read: Callable[[Row], T_co | Bad], weight_column: str | None = None
) -> Iterator[LabelledRow[T_co]]:
    # On standard input the others may take long to arrive.
    counted = not table.bad.skip and all(part.file != name_of(STANDARD) for part in table.parts)
    for text, row in (items := iter(items)):
        label = read(row)
        if isinstance(label, Bad):
            table.bad.add(_with_count(label, items, read) if counted else label)
        elif weight_column is None:
            yield LabelledRow(text, label, row)
        elif isinstance(weight := row.fields.get(weight_column), Unreadable):
            table.bad.add(Bad(row.where, weight.problem(weight_column)))
        elif isinstance(weight := label_sets.weight(row.fields.get(weight_column)), str):
            table.bad.add(Bad(row.where, f"the weight in column {weight_column!r} {weight}"))
        else:
            yield LabelledRow(text, label, row, weight)


@overload
def read_labelled(
    paths: Readable | Sequence[Readable],
    text_columns: Sequence[str] = (),
    label_column: str | None = None,
    *,
    targets: None = None,
    texts: TextStore | None = None,
    **how: Unpack[LabelledOptions],
) -> Labelled: ...


@overload
def read_labelled(
    paths: Readable | Sequence[Readable],
    text_columns: Sequence[str] = (),
    label_column: str | None = None,
    *,
    targets: TargetOptions,
    usual_targets: TargetOptions = NOTHING_USUAL,
    texts: TextStore | None = None,
    **how: Unpack[LabelledOptions],
) -> Labelled | LabelledSets: ...


def read_labelled(
    paths: Readable | Sequence[Readable],
    text_columns: Sequence[str] = (),
    label_column: str | None = None,
    *,
    targets: TargetOptions | None = None,
    usual_targets: TargetOptions = NOTHING_USUAL,
    texts: TextStore | None = None,
    **how: Unpack[LabelledOptions],
) -> Labelled | LabelledSets:
    """Read all texts of the files at `paths` with their targets: one label each, unless `targets` is given.

    With `targets` they are read as by `open_targets`: if rows have label sets, the result is `LabelledSets`. The texts
    are added to `texts`, which is empty, and may store them elsewhere than in memory.

    Raises:
        InputError: as for `open_targets`; or there are no rows.
        ConfigError: as for `open_targets`.
    """
    paths = [paths] if isinstance(paths, Path | RemoteFile | MemoryTable) else paths
    kept = TextStore() if texts is None else texts
    targets = _ONE_LABEL if targets is None else targets
    opened = open_targets(paths, text_columns, label_column, targets=targets, usual_targets=usual_targets, **how)
    more = how.get("more", ())
    labels: list[Any] = []
    places = Places()
    others: dict[str, list[Any]] = {name: [] for name in more}
    weights: list[float] | None = None if targets.weight_column is None else []
    with opened as table:
        for text, label, row, weight in table.rows:
            kept.append(text)
            # Keep equal strings only once.
            labels.append(intern(label) if isinstance(label, str) else label)
            places.append(row)
            if weights is not None:
                weights.append(weight)
            if others:
                for name, values in others.items():
                    values.append(row.fields.get(name))
    if not labels:
        raise no_rows(paths, how.get("bad"))
    found = (kept.texts(), labels, table.text_columns, table.label_column, places, others, table.notes, weights)
    return Labelled(*found) if isinstance(labels[0], str) else LabelledSets(*found, label_columns=table.label_columns)


def read_label_sets(
    paths: Readable | Sequence[Readable],
    text_columns: Sequence[str] = (),
    label_column: str | None = None,
    *,
    targets: TargetOptions,
    usual_targets: TargetOptions = NOTHING_USUAL,
    **how: Unpack[LabelledOptions],
) -> LabelledSets:
    """Read all texts of the files at `paths` with their label sets, whatever their first rows look like.

    Raises:
        InputError: as for `read_labelled`.
        ConfigError: `targets` say that rows have one label; or as for `open_targets`.
    """
    several = replace(targets, several=True)
    found = read_labelled(paths, text_columns, label_column, targets=several, usual_targets=usual_targets, **how)
    return cast(LabelledSets, found)


def no_rows(paths: Sequence[Readable], bad: BadRows | None) -> InputError:
    """Return the error for files at `paths` without any rows; `bad` are the rows that were left out."""
    names = " and ".join(map(name_of, paths))
    have = "has" if len(paths) == 1 else "have"
    if bad is None or not bad.count:
        return InputError(f"{names} {have} no rows.")
    advice = bad.shown[0].why.partition("; ")[2]
    # Leaving rows out would leave none.
    mend = f" {advice[:1].upper()}{advice[1:]}." if advice and "--on-error" not in advice else ""
    return InputError(f"{names} {have} no rows that can be used: {bad.reasons()}.{mend}")
