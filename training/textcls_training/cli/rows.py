"""The rows that `textcls train` reads from files: training and validation rows, rationales and unlabelled texts."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from textcls.cli.reading import Reading
from textcls.data import (
    Bad,
    Labelled,
    LabelledSets,
    LabelSet,
    TargetOptions,
    column_kinds,
    no_rows,
    read_label_sets,
    read_labelled,
)
from textcls.data.label_names import LabelNames
from textcls.data.labelled import NOTHING_USUAL, USUAL, LabelledOptions
from textcls.data.memory import Readable
from textcls.data.renaming import Renaming
from textcls.data.text_store import TextStore
from textcls.errors import ConfigError, InputError
from textcls.explain import telling_columns
from textcls.model.columns import Column, Kind
from textcls.model.label_paths import label_columns
from textcls_training.data.labelled_texts import Rows
from textcls_training.data.rationales import parse
from textcls_training.data.unlabelled import UnlabelledTexts
from textcls_training.data.unlabelled_files import read_unlabelled
from textcls_training.state.finished import Facts


def read_rows(
    data: Sequence[Readable],
    text_columns: Sequence[str],
    label_column: str | None,
    rationale_column: str | None,
    reading: Reading,
    targets: TargetOptions,
    texts: TextStore,
    renaming: Renaming | None = None,
    beside: Sequence[str] = (),
    before: Facts | None = None,
) -> Rows:
    """Read the training rows, their texts into `texts`, with the rationales as spans if there is a column of them, and
    with the contents of the columns `beside` the text. Unspecified options are as in the training `before`.
    """
    more = [*beside, *([] if rationale_column is None else [rationale_column])]
    usual, usual_targets = USUAL, NOTHING_USUAL
    if before is not None:
        usual, usual_targets = before.usual(), before.usual_targets()
        usual = usual._replace(names=names_before(before, renaming))
        targets = replace(targets, several=before.several) if targets.label_sets is None else targets
        targets = replace(targets, weight_column=targets.weight_column or before.weight_column)
    rows: Rows = read_labelled(
        data,
        text_columns,
        label_column,
        more=more,
        options=reading.options,
        bad=reading.bad,
        targets=targets,
        usual=usual,
        usual_targets=usual_targets,
        texts=texts,
    )
    reading.say(rows.notes)
    if renaming is not None:
        reading.say(renaming.learn(rows, skip=reading.bad.skip))
        rows = renaming.in_tree(renaming.of(rows), reading.bad)
    return rows if rationale_column is None else _with_spans(rows, rationale_column, reading)


def names_before(before: Facts | None, renaming: Renaming | None) -> LabelNames | None:
    """Return the other names that rows may use for labels of the training before, except for those renamed now."""
    names = None if before is None else before.usual().names
    return names if names is None or renaming is None else names.but_for(renaming.old_names)


def as_before(targets: TargetOptions, before: Facts) -> TargetOptions:
    """Return how labels are written if a training continues: as in the one before, unless specified."""
    usual, weights = before.usual_targets(), targets.weight_column or before.weight_column
    if targets.label_sets is not None or not before.several:
        return replace(targets, weight_column=weights)
    if usual.merge_rows and targets.weight_column is not None:
        raise ConfigError(
            "The training before has merged rows of the same text (--merge-rows), and --weight-column weighs each row; "
            "leave it out."
        )
    return replace(usual, weight_column=weights)


def columns_beside(wanted: Mapping[str, Kind | None], rows: Rows, reading: Reading) -> tuple[Column, ...]:
    """Find out how columns besides the text are read, and report it."""
    columns = column_kinds.columns_of(wanted, rows.more, [*rows.text_columns, *label_columns(rows.label_column, ())])
    if columns:
        reading.say([f"Columns beside the text: {', '.join(map(column_kinds.described, columns))}."])
        strange = (column_kinds.silences(one, rows.more[one.name]).sentence(one.name) for one in columns)
        reading.say([said for said in strange if said is not None])
        if isinstance(rows, Labelled):
            telling = telling_columns.telling(columns, column_kinds.cells_of_rows(columns, rows.more), rows.labels)
            reading.say([said for sentences in telling.values() for said in sentences])
    return columns


def read_valid(
    path: Readable,
    rows: Rows,
    reading: Reading,
    targets: TargetOptions,
    renaming: Renaming | None = None,
    beside: Sequence[str] = (),
    before: Facts | None = None,
) -> Rows:
    """Read the validation rows; one with a label that no training row has cannot be used."""
    columns = [path], rows.text_columns, None if targets.label_columns else rows.label_column
    found: Rows
    usual = USUAL._replace(names=names_before(before, renaming))
    how: LabelledOptions = {"usual": usual, "more": beside, "options": reading.options, "bad": reading.bad}
    if isinstance(rows, LabelledSets):
        found = read_label_sets(*columns, targets=targets, **how)
    else:
        found = read_labelled(*columns, **how)
    reading.say(found.notes)
    if renaming is not None:
        found = renaming.of(found)
    # Rows with weight 0 are left out, unless there are no others.
    weights = rows.weights if rows.weights and any(rows.weights) else [1.0] * len(rows.texts)
    pairs = zip(map(_names, rows.labels), weights, strict=True)
    known = {name for names, weight in pairs if weight for name in names} | {*(before.labels if before else ())}
    used = []
    for i, labels in enumerate(map(_names, found.labels)):
        unknown = next((name for name in labels if name not in known), None)
        if unknown is None:
            used.append(i)
        else:
            why = f"validation rows have the label {unknown!r}, which no training row has; add examples or correct it"
            reading.bad.add(Bad(found.places[i], why))
    if not used:
        raise no_rows([path], reading.bad)
    return found.only(used)


def read_more(
    paths: Sequence[Readable],
    rows: Rows,
    valid: Rows | None,
    pattern: str | None,
    limit: int,
    reading: Reading,
) -> UnlabelledTexts:
    """Read the unlabelled texts; copies of training and validation rows are left out."""
    found, notes = read_unlabelled(
        paths,
        rows.text_columns,
        sorted({name for names in map(_names, rows.labels) for name in names}),
        [*rows.texts, *(valid.texts if valid else ())],
        limit=limit,
        pattern=pattern,
        several=isinstance(rows, LabelledSets),
        options=reading.options,
        bad=reading.bad,
    )
    reading.say(notes)
    return found


def _with_spans(rows: Rows, column: str, reading: Reading) -> Rows:
    """Return the rows with the rationales in `column` as spans of the text; a row whose spans make no sense is bad."""
    spans, used = [], []
    for i, (cell, text) in enumerate(zip(rows.more[column], rows.texts, strict=True)):
        where = f"{rows.places[i]}, column {column!r}"
        try:
            spans.append(parse(cell, text, where))
        except InputError as error:
            why = str(error).removeprefix(f"{where}: ").removesuffix(".")
            if len(rows.text_columns) > 1:
                why += f"; spans are of {' and '.join(map(repr, rows.text_columns))} joined, one a line"
            reading.bad.add(Bad(where, why))
        else:
            used.append(i)
    if not used:
        raise InputError(f"No row can be used: none has a valid rationale in column {column!r}.")
    reading.say([f"{sum(map(bool, spans)):,} of {len(spans):,} rows have rationales in the column {column!r}."])
    kept = rows if len(used) == len(rows.texts) else rows.only(used)
    return replace(kept, more=kept.more | {column: spans})


def _names(target: str | LabelSet) -> Collection[str]:
    """Return the labels of a row."""
    return (target,) if isinstance(target, str) else target.keys()
