"""How the target of a row is read: one label, or a label set, and the weight of the row.

The options determine one function for a whole table, from a row to its target. Without options, the first rows decide:
lists, maps, and lines of fastText with several labels are label sets, and everything else is one label.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, TypeVar

from textcls.data.rows import Bad, Format, Row, Unreadable
from textcls.data.tables import Part, Table
from textcls.errors import ConfigError, InputError
from textcls.model import label_sets
from textcls.model.label_paths import label_cell, label_columns
from textcls.model.label_sets import LabelSet, Parse
from textcls.model.labels import MOST_SEVERAL, label_problem, written

Target = str | LabelSet
T = TypeVar("T", str, LabelSet)
# Returns the target of a row, or what is wrong with it.
Read = Callable[[Row], T | Bad]
# Instead of a separator: each cell contains a JSON list.
JSON: Final = "json"
# In a pattern of columns this stands for the label.
STAR: Final = "*"
# Cells recur: the number of different ones to remember with their sets.
_REMEMBERED: Final = 1 << 16
# What to do with a row whose label is not valid.
_CORRECT: Final = "{} or remove the row, or leave out all such rows with --on-error skip"


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetOptions:
    """How the targets of labelled rows are read.

    Attributes:
        label_separator: what separates the labels of a cell; `json` if each cell contains a JSON list; None if it
            is a list of JSON lines or Parquet, or a single label.
        label_columns: patterns of the columns that are one label each, such as `tag_*`; the part matching the star is
            the label. Without a star, the column with that name.
        weight_column: the column of the rows' weights; None if all count the same.
        several: whether rows may have several labels, or none; None to decide by the other options and the first rows.
        merge_rows: whether rows with the same text are merged, with the labels of all.

    Raises:
        ConfigError: two of these cannot be combined, or one is not valid.
    """

    label_separator: str | None = None
    label_columns: tuple[str, ...] = ()
    weight_column: str | None = None
    several: bool | None = None
    merge_rows: bool = False

    def __post_init__(self) -> None:
        if self.label_separator is not None and self.label_columns:
            raise ConfigError(
                "--label-separator is for several labels in a cell, and --label-columns for one column per "
                "label; use only one of them."
            )
        if self.merge_rows and self.weight_column is not None:
            raise ConfigError(
                "--merge-rows makes one row of all with the same text, and --weight-column weighs each; leave one out."
            )
        for name, given in (
            ("--label-separator", self.label_separator),
            ("--label-columns", self.label_columns),
            ("--merge-rows", self.merge_rows),
        ):
            if given and self.several is False:
                raise ConfigError(
                    f"{name} is for several labels per row, but --task asks for one; leave one of them out."
                )
        if self.label_separator == "" or (self.label_separator or "").strip("\r\n") != (self.label_separator or ""):
            raise ConfigError("A label separator is one or more characters without a line break, usually ;.")
        odd = next((pattern for pattern in self.label_columns if not pattern or pattern.count(STAR) > 1), None)
        if odd is not None:
            raise ConfigError(f"A pattern of label columns contains one * for the label, such as tag_*, not {odd!r}.")

    def to_json(self) -> dict[str, Any]:
        """Return how labels are written, as plain data; a model stores it to read other files likewise."""
        merge = {"merge_rows": True} if self.merge_rows else {}
        return {"label_separator": self.label_separator, "label_columns": list(self.label_columns)} | merge

    @classmethod
    def from_json(cls, found: Any) -> "TargetOptions":
        """Return the options from the result of `to_json`, for rows with label sets.

        Raises:
            ConfigError: it is not a result of `to_json`.
        """
        separator, columns = (
            (found.get("label_separator"), found.get("label_columns", [])) if isinstance(found, dict) else (0, [])
        )
        names = isinstance(columns, list) and all(isinstance(name, str) for name in columns)
        merge = found.get("merge_rows", False) if isinstance(found, dict) else None
        if not names or not isinstance(separator, str | None) or not isinstance(merge, bool):
            raise ConfigError("What the model says of how labels were written is nothing that this version reads.")
        return cls(label_separator=separator, label_columns=tuple(columns), several=True, merge_rows=merge)

    @property
    def label_sets(self) -> bool | None:
        """Whether rows have label sets; None if the first ones decide."""
        written = self.label_separator is not None or self.label_columns or self.merge_rows
        return True if written else self.several


def label_of(row: Row, column: str) -> str | Bad:
    """Return the label of a row, or what is wrong with it."""
    try:
        value = label_cell(row.fields, column)
    except InputError as error:
        return Bad(row.where, f"{error}; {_CORRECT.format('fill it in')}")
    if isinstance(value, list | dict):
        return Bad(row.where, _several_labels(value, column))
    if isinstance(value, Unreadable):
        return Bad(row.where, value.problem(column))
    if isinstance(value, bytes):
        return Bad(row.where, f"the label in column {column!r} is bytes; write it as a string")
    label = written(value)
    wrong = label_problem(label)
    if wrong is None:
        return label
    return Bad(
        row.where,
        f"the label in column {column!r} {wrong}; {_CORRECT.format('correct it' if label else 'fill it in')}",
    )


def required_label(row: Row, column: str) -> str:
    """Return the label of a row of a file about labels, in which each row needs one.

    Raises:
        InputError: the row has none.
    """
    found = label_of(row, column)
    if isinstance(found, Bad):
        raise InputError(f"{found.where}: {found.why.partition(';')[0]}.")
    return found


def one_as_before(row: Row, column: str) -> str | Bad:
    """Return the label of a row that follows others with one label each, or what is wrong with it."""
    found = label_of(row, column)
    if isinstance(found, str) or len(label_columns(column, row.fields)) > 1:
        return found
    value = row.fields.get(column)
    if isinstance(value, list | dict):
        advice = "where earlier rows have one label each; add --task several if rows may have several"
        return Bad(row.where, f"{found.why.partition(';')[0]}, {advice}")
    if value is None or not str(value).strip():
        return Bad(row.where, f"{found.why}, or add --task several if a row may have none")
    return found


def _several_labels(value: list[Any] | dict[Any, Any], column: str) -> str:
    if len(value) > 1 and isinstance(value, list) and all(isinstance(item, str) for item in value):
        shown = " and ".join(map(repr, value[:2]))
        return f"{len(value)} labels, {shown}; each row needs exactly one, so keep one or split the row"
    return f"the label in column {column!r} is a {type(value).__name__}; each row needs exactly one label"


class LabelsOfCell:
    """Reads the label set in one column.

    Args:
        column: the column.
        parse: returns the set of a cell's value.

    Raises:
        InputError: there are more labels than a model allows.
    """

    def __init__(self, column: str, parse: Parse) -> None:
        self.column, self.parse = column, parse
        self.names: set[str] = set()
        self.remembered: dict[str, LabelSet] = {}

    def __call__(self, row: Row) -> LabelSet | Bad:
        """Return the label set of `row`."""
        value = row.fields.get(self.column)
        text = value if isinstance(value, str) else None
        if text is not None and (known := self.remembered.get(text)) is not None:
            return known
        found = self.parse(value)
        if isinstance(found, str):
            return Bad(row.where, f"the labels in column {self.column!r} {found}")
        self._count(found, row)
        if text is not None and len(self.remembered) < _REMEMBERED:
            self.remembered[text] = found
        return found

    def _count(self, found: LabelSet, row: Row) -> None:
        self.names.update(found)
        if len(self.names) > MOST_SEVERAL:
            raise InputError(
                f"{row.where}: there are now more than {MOST_SEVERAL:,} different labels, the maximum; is "
                f"{self.column!r} the right column, and the separator right?"
            )


class LabelsOfColumns:
    """Reads a label set from one column per label.

    Args:
        labels: the label of each column.
        patterns: the patterns that matched them, for messages.
    """

    def __init__(self, labels: Mapping[str, str], patterns: Sequence[str]) -> None:
        self.labels, self.patterns = labels, patterns

    def __call__(self, row: Row) -> LabelSet | Bad:
        """Return the label set of `row`."""
        found = {}
        for column, label in self.labels.items():
            said = label_sets.probability(row.fields.get(column))
            if isinstance(said, str):
                return Bad(row.where, f"column {column!r}: {said}")
            if said > 0:
                found[label] = said
        # A line of JSON may have additional columns.
        for name in row.fields:
            if name not in self.labels and _label_in(name, self.patterns) is not None:
                why = f"the column {name!r} is one of {' '.join(self.patterns)}, which the first rows lack"
                return Bad(row.where, f"{why}; write all columns in the first row")
        return found


def _label_in(column: str, patterns: Sequence[str]) -> str | None:
    """Return the label of a column; None if it is not the column of a label."""
    for pattern in patterns:
        before, star, after = pattern.partition(STAR)
        if not star and column == pattern:
            return column
        label = column[len(before) : len(column) - len(after)]
        if star and label.strip() and column.startswith(before) and column.endswith(after):
            return label.strip()
    return None


def columns_of_labels(part: Part, options: TargetOptions, texts: Sequence[str]) -> dict[str, str]:
    """Return the label of each column in a file that matches a pattern of `options`.

    Raises:
        InputError: a pattern matches no column, one of the text or the weights, or two of the same label.
    """
    for pattern in options.label_columns:
        if not any(_label_in(name, [pattern]) is not None for name in part.columns):
            have = ", ".join(map(repr, part.columns))
            raise InputError(
                f"{part.file} has no column that --label-columns {pattern} names; it has {have}. Choose a "
                "pattern that matches the label columns."
            )
    labels = {name: label for name in part.columns if (label := _label_in(name, options.label_columns)) is not None}
    others = {**dict.fromkeys(texts, "text"), **({options.weight_column: "weight"} if options.weight_column else {})}
    for name, what in others.items():
        if name in labels:
            raise InputError(
                f"--label-columns {' '.join(options.label_columns)} names {name!r} of {part.file} as well, the "
                f"column of the {what}; choose a pattern that excludes it."
            )
    if twice := next((label for label, times in Counter(labels.values()).items() if times > 1), None):
        both = " and ".join(repr(name) for name, label in labels.items() if label == twice)
        raise InputError(f"{part.file}: the columns {both} are the same label, {twice!r}; leave one of them out.")
    for name, label in labels.items():
        if wrong := label_problem(label):
            raise InputError(f"{part.file}: the label of column {name!r} {wrong}; rename the column.")
    if len(labels) > MOST_SEVERAL:
        raise InputError(f"{part.file} has {len(labels):,} label columns; the maximum is {MOST_SEVERAL:,}.")
    return labels


def as_usual(asked: TargetOptions, usual: TargetOptions, part: Part) -> TargetOptions:
    """Return `asked`, with the usual patterns of columns if nothing was specified and the file has them."""
    if asked.label_separator is not None or asked.label_columns or asked.several is False:
        return asked
    fits = all(any(_label_in(name, [pattern]) is not None for name in part.columns) for pattern in usual.label_columns)
    return replace(asked, label_columns=usual.label_columns) if fits else asked


def labels_of_columns(table: Table, options: TargetOptions, texts: Sequence[str]) -> LabelsOfColumns:
    """Return the reader of label sets of a table with one column per label.

    Raises:
        InputError: as for `columns_of_labels`, or the files have different columns of labels.
    """
    first, *others = table.parts
    labels = columns_of_labels(first, options, texts)
    for part in others:
        odd = sorted(set(columns_of_labels(part, options, texts)) ^ set(labels))
        if odd:
            have, lack = (part, first) if odd[0] not in labels else (first, part)
            raise InputError(f"{lack.file} has no column {odd[0]!r}, which is a label in {have.file}; add it.")
    return LabelsOfColumns(labels, options.label_columns)


def labels_of_cell(
    options: TargetOptions, column: str, kind: Format, first: Sequence[Row], usual: str | None = None
) -> LabelsOfCell:
    """Return the reader of label sets in one column.

    Args:
        options: how they are written; without a separator the first rows decide.
        column: the column.
        kind: the format of the table.
        first: its first rows.
        usual: the separator if `options` have none and the rows have no lists.
    """
    if options.label_separator is None and kind == "fasttext":
        return LabelsOfCell(column, label_sets.of_words)
    if options.label_separator is None and holds_lists(first, column):
        return LabelsOfCell(column, label_sets.structured)
    separator = options.label_separator or usual
    if separator is None:
        return LabelsOfCell(column, label_sets.one_or_none)
    if separator == JSON:
        return LabelsOfCell(column, label_sets.in_json)
    return LabelsOfCell(column, partial(label_sets.separated, separator=separator))


def holds_lists(rows: Sequence[Row], column: str) -> bool:
    """Return whether any of `rows` has a list or a map in `column`."""
    return any(isinstance(row.fields.get(column), list | dict) for row in rows)
