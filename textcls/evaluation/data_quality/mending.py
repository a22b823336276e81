"""Mend what is found of labelled rows where everybody would say yes; what was done is counted by kind."""

import html
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from textcls.data.labelled import LabelledRow
from textcls.data.rows import Row
from textcls.evaluation.data_quality.finding import first_of, plural
from textcls.evaluation.data_quality.survey import MARKUP
from textcls.model.labels import plain_name
from textcls.model.tokenizer import tokenize

# Labels that differ as little as `plain_name` says; tags and entities of HTML; rows with the same text and label as an
# earlier one; rows without a text or a label.
KINDS: Final = ("labels", "html", "duplicates", "empty")


@dataclass(slots=True)
class Mended:
    """Mended rows, and what was done to them.

    Attributes:
        rows: those that are left, in their order.
        renamed: of each label that is written otherwise now, the new name.
        counts: how many rows each kind has changed or left out.
    """

    rows: list[Row] = field(default_factory=list)
    renamed: dict[str, str] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)

    def lines(self) -> Iterator[str]:
        """Say what was done, a sentence a kind."""
        if self.counts["labels"]:
            names = first_of([f"{old!r} is {new!r} now" for old, new in self.renamed.items()])
            yield f"{plural(self.counts['labels'], 'row has', 'rows have')} another label: {names}."
        if self.counts["html"]:
            yield f"{plural(self.counts['html'], 'text', 'texts')} without HTML."
        if self.counts["duplicates"]:
            yield f"{plural(self.counts['duplicates'], 'copy', 'copies')} of earlier rows left out."
        if self.counts["empty"]:
            yield f"{plural(self.counts['empty'], 'row', 'rows')} without a text or a label left out."


def mend(
    rows: Sequence[LabelledRow[str]], text_columns: Sequence[str], label_column: str, kinds: Collection[str]
) -> Mended:
    """Return rows without mistakes of some kinds.

    Args:
        rows: the rows.
        text_columns: the columns of their texts.
        label_column: the column of their labels.
        kinds: which of `KINDS` are mended.
    """
    mended = Mended(renamed=_one_name_each(rows) if "labels" in kinds else {})
    seen: set[tuple[object, ...]] = set()
    for text, label, row, _ in rows:
        if "empty" in kinds and not tokenize(text):
            mended.counts["empty"] += 1
            continue
        fields = dict(row.fields)
        if label in mended.renamed:
            fields[label_column] = label = mended.renamed[label]
            mended.counts["labels"] += 1
        if "html" in kinds:
            fields |= {name: _without_html(fields[name]) for name in text_columns if isinstance(fields[name], str)}
            mended.counts["html"] += any(fields[name] != row.fields[name] for name in text_columns)
        key = (label, *(fields[name] for name in text_columns))
        if "duplicates" in kinds and key in seen:
            mended.counts["duplicates"] += 1
            continue
        seen.add(key)
        mended.rows.append(row._replace(fields=fields))
    return mended


def _one_name_each(rows: Sequence[LabelledRow[str]]) -> dict[str, str]:
    """Return the most frequent way to write it, the first of equals, of each label that is written otherwise."""
    counts = Counter(row.label for row in rows)
    alike: defaultdict[str, list[str]] = defaultdict(list)
    for name in counts:
        alike[plain_name(name)].append(name)
    best = {name: max(names, key=counts.__getitem__) for names in alike.values() for name in names}
    return {name: new for name, new in best.items() if name != new}


def _without_html(text: str) -> str:
    return MARKUP.sub(lambda found: " " if found[0].startswith("<") else html.unescape(found[0]), text)
