"""Mend undisputed faults of labelled rows; the changes are counted by kind."""

import json
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any, Final

from textcls.data.labelled import LabelledRow
from textcls.data.renaming import spelt_alike
from textcls.data.rows import Row
from textcls.data.targets import JSON, Target
from textcls.evaluation.data_quality.finding import first_of, plural
from textcls.evaluation.data_quality.markup import without_html
from textcls.model.label_paths import label_cell, label_columns
from textcls.model.labels import BETWEEN_LEVELS
from textcls.model.tokenizer import tokenize

# Labels that differ by case and spaces; tags and entities of HTML; rows without a text; rows with the same text and
# label as an earlier one.
KINDS: Final = ("labels", "html", "empty", "duplicates")


@dataclass(slots=True)
class Mended:
    """Mended rows, and what was changed.

    Attributes:
        rows: the remaining rows, in their order.
        renamed: the new name of each label that was written differently, keyed by its spelling in the cells.
        counts: how many rows each kind has changed or removed.
    """

    rows: list[Row] = field(default_factory=list)
    renamed: dict[str, str] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)

    def as_json(self) -> dict[str, Any]:
        """Return what was done as plain data."""
        return {"rows": len(self.rows), "renamed": self.renamed, **{kind: self.counts[kind] for kind in KINDS}}

    def lines(self) -> Iterator[str]:
        """Yield what was done, one sentence per kind."""
        if self.counts["labels"]:
            names = first_of([f"{old!r} is {new!r} now" for old, new in self.renamed.items()])
            yield f"{plural(self.counts['labels'], 'row has', 'rows have')} another label: {names}."
        if self.counts["html"]:
            yield f"HTML taken out of {plural(self.counts['html'], 'text', 'texts')}."
        if self.counts["duplicates"]:
            yield f"{plural(self.counts['duplicates'], 'copy', 'copies')} of earlier rows left out."
        if self.counts["empty"]:
            yield f"{plural(self.counts['empty'], 'row', 'rows')} without a text left out."


def mend(
    rows: Sequence[LabelledRow[Target]],
    text_columns: Sequence[str],
    label_column: str | None,
    kinds: Collection[str],
    separator: str | None = None,
    beside: Collection[str] = (),
) -> Mended:
    """Return rows without faults of some kinds.

    Args:
        rows: the rows.
        text_columns: the columns of their texts.
        label_column: the column of their labels; None if each label has a column of its own, whose name stays.
        kinds: which of `KINDS` are mended.
        separator: the separator between several labels of a cell, as in `TargetOptions`.
        beside: columns beside the text; rows that differ there are not copies.
    """
    mended, names = Mended(), {}
    if "labels" in kinds and label_column is not None:
        names = spelt_alike(name for row in rows for name in _names(row.label))
    # fastText's format has a list of labels if there are several, and a string if there is one.
    lists = any(label_column is not None and isinstance(row.fields.get(label_column), list) for _, _, row, _ in rows)
    seen: set[tuple[Any, ...]] = set()
    for _, target, row, _ in rows:
        fields = dict(row.fields)
        if lists and label_column is not None and isinstance(fields.get(label_column), str):
            fields[label_column] = list(target)
        if label_column is not None and "labels" in kinds:
            before = label_cell(fields, label_column)
            cell = _renamed(before, target, names, separator)
            if cell != before:
                of_set = {name: names[name] for name in _names(target) if name in names}
                mended.renamed |= {before: cell} if isinstance(target, str) else of_set
                mended.counts["labels"] += 1
                levels = label_columns(label_column, fields)
                fields |= zip(levels, cell.split(BETWEEN_LEVELS) if len(levels) > 1 else [cell], strict=False)
        if "html" in kinds:
            fields |= {name: without_html(fields[name]) for name in text_columns if isinstance(fields[name], str)}
            mended.counts["html"] += any(fields[name] != row.fields[name] for name in text_columns)
        texts = ["" if fields[name] is None else str(fields[name]) for name in text_columns]
        if "empty" in kinds and not any(map(tokenize, texts)):
            mended.counts["empty"] += 1
            continue
        key = (
            frozenset(names.get(name, name) for name in _names(target)),
            *texts,
            *(str(fields.get(name)) for name in beside),
        )
        if "duplicates" in kinds and key in seen:
            mended.counts["duplicates"] += 1
            continue
        seen.add(key)
        mended.rows.append(row._replace(fields=fields))
    return mended


def _names(target: Target) -> Collection[str]:
    """Return the labels of a row: one, several or none."""
    return (target,) if isinstance(target, str) else target


def _renamed(cell: Any, target: Target, names: Mapping[str, str], separator: str | None) -> Any:
    """Return the new content of a cell whose labels are renamed; each of several labels occurs in it once.

    A single label loses the space around it; a cell of several stays as it is unless one of them is renamed.
    """
    if isinstance(target, str):
        return names.get(target, target) if isinstance(cell, str) else cell
    if not names.keys() & target.keys():
        return cell
    if separator == JSON:
        return json.dumps(_renamed(json.loads(cell), target, names, None), ensure_ascii=False)
    if isinstance(cell, list) and cell and isinstance(cell[0], tuple):  # a map, as Parquet gives it
        return list(_renamed(dict(cell), target, names, separator).items())
    if isinstance(cell, dict):
        return {names.get(name.strip(), name.strip()): share for name, share in sorted(cell.items(), key=itemgetter(1))}
    found = dict.fromkeys(names.get(name, name) for name in target)
    return list(found) if isinstance(cell, list) else (separator or "").join(found)
