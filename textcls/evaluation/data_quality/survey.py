"""What is remembered of each row: numbers, not texts, so that a file larger than memory can be surveyed."""

import re
from array import array
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import repeat
from math import inf
from typing import Final

import numpy as np
from numpy.typing import NDArray

from textcls.data.columns import ANSWERED_BY, PROBABILITY
from textcls.data.labelled import Labelled, LabelledRow, LabelledSets
from textcls.data.places import Places
from textcls.data.targets import Target
from textcls.evaluation.data_quality.duplicates import exact, near
from textcls.evaluation.data_quality.markup import holds_html
from textcls.model import tokenizer
from textcls.model.label_sets import LabelSet
from textcls.model.text_columns import and_

Int64 = NDArray[np.int64]
# A row counts as having a label of its label set if the probability is at least this.
HAS: Final = 0.5
# A model's answer that is less probable is doubtful.
SURE: Final = 0.6
# What programs write if there is no text, in lower case; PostgreSQL writes \N.
NOTHING: Final = frozenset(
    r"nan null (null) none n/a #n/a <na> nat undefined (blank) [deleted] [removed] \n".split()  # noqa: SIM905
)
# A single word with a digit in it and no letters beyond ASCII: a number, a code or a key.
_CODE: Final = re.compile(r"[A-Za-z0-9_.:/#+-]*[0-9][A-Za-z0-9_.:/#+-]*")


@dataclass(slots=True)
class Survey:
    """The properties of some labelled rows.

    Attributes:
        counts: whether tokens and characters are counted, which takes most of the time.
        rows: number of rows.
        places: the location of each row.
        labels: number of rows with each label, in the order of first occurrence; of a label set the labels that are at
            least as likely as not.
        several: whether rows have label sets.
        without: number of rows without a label.
        blank: numbers of the rows whose text has no token.
        codes: number of texts that look like a number or a key.
        nothing: numbers of the rows whose text is what programs write if there is none.
        markup: numbers of the rows whose text contains HTML tags or entities.
        characters: how often each character occurs.
        lightest: the smallest weight of a row.
        heaviest: the largest one.
        columns: columns beside the text; rows that differ there are not copies.
        answers: whether labels are answers of `textcls annotate`.
        answered: how many labels were given by each source, if the rows state it.
        unsure: numbers of the rows whose label the model gave a probability below `SURE`.
    """

    counts: bool = True
    rows: int = 0
    places: Places = field(default_factory=Places)
    labels: Counter[str] = field(default_factory=Counter)
    several: bool = False
    without: int = 0
    blank: list[int] = field(default_factory=list)
    codes: int = 0
    nothing: list[int] = field(default_factory=list)
    markup: "array[int]" = field(default_factory=lambda: array("q"))
    characters: Counter[str] = field(default_factory=Counter)
    lightest: float = inf
    heaviest: float = -inf
    columns: Sequence[str] = ()
    answers: bool = False
    answered: Counter[str] = field(default_factory=Counter)
    unsure: list[int] = field(default_factory=list)
    _number: dict[tuple[str, ...], int] = field(default_factory=dict)
    _label: "array[int]" = field(default_factory=lambda: array("q"))
    _exact: "array[int]" = field(default_factory=lambda: array("q"))
    _near: "array[int]" = field(default_factory=lambda: array("q"))
    _tokens: "array[int]" = field(default_factory=lambda: array("q"))

    def add(self, text: str, label: Target, weight: float = 1.0, beside: Sequence[object] = ()) -> None:
        """Record a row: its text, its label or label set, its weight, and the columns beside the text."""
        if next(tokenizer.token_spans(text, 1), None) is None:
            self.blank.append(self.rows)
        plain = text.strip()
        self.codes += _CODE.fullmatch(plain) is not None
        if plain.lower() in NOTHING:
            self.nothing.append(self.rows)
        if holds_html(text):
            self.markup.append(self.rows)
        names: tuple[str, ...]
        if isinstance(label, str):
            names = (label,)
            self.labels[label] += 1
        else:
            names = self._names(label)
            self.labels.update(names)
        self._label.append(self._number.setdefault(names, len(self._number)))
        if weight < self.lightest:
            self.lightest = weight
        if weight > self.heaviest:
            self.heaviest = weight
        told_apart = hash(tuple(map(str, beside))) if beside else 0
        self._exact.append(exact(text) ^ told_apart)
        self._near.append(near(text) ^ told_apart)
        if self.counts:
            self._tokens.append(sum(1 for _ in tokenizer.token_spans(text)))
            self.characters.update(text)
        self.rows += 1

    def extend(self, rows: Iterable[LabelledRow[Target]]) -> "Survey":
        """Record `rows` and their locations."""
        for text, label, row, weight in rows:
            self.add(text, label, weight, [row.fields.get(name) for name in self.columns])
            self.places.append(row)
            if self.answers and (who := row.fields.get(ANSWERED_BY)):
                self.answered[str(who)] += 1
                if _probability(row.fields.get(f"{PROBABILITY}{label}")) < SURE:
                    self.unsure.append(self.rows - 1)
        return self

    def _names(self, labels: LabelSet) -> tuple[str, ...]:
        """Return the labels that a row has, sorted, and record those that are merely likely as known labels."""
        self.several = True
        for name, share in labels.items():
            if share < HAS:
                self.labels[name] += 0
        names = tuple(sorted(name for name, share in labels.items() if share >= HAS))
        self.without += not names
        return names

    @classmethod
    def of(cls, rows: Labelled | LabelledSets) -> "Survey":
        """Return the properties of `rows` that have been read, without the counts of tokens and characters."""
        columns = rows.label_columns if isinstance(rows, LabelledSets) else ()
        found = cls(
            counts=False, places=rows.places, labels=Counter(dict.fromkeys(columns, 0)), columns=tuple(rows.more)
        )
        labels: Sequence[Target] = rows.labels
        weights = rows.weights or [1.0] * len(rows.texts)
        more = zip(*rows.more.values(), strict=True) if rows.more else repeat(())
        for text, label, weight, beside in zip(rows.texts, labels, weights, more, strict=False):
            found.add(text, label, weight, beside)
        return found

    @property
    def seen(self) -> str:
        """What tells two rows apart, in words."""
        return f"the text and {and_(self.columns)}" if self.columns else "the text"

    @property
    def sets(self) -> list[tuple[str, ...]]:
        """The distinct label sets of the rows, by number: one label each, or those of a label set, sorted."""
        return list(self._number)

    @property
    def label(self) -> Int64:
        """The number of each row's labels in `sets`."""
        return np.array(self._label, np.int64)

    def rows_of(self, name: str) -> Int64:
        """Return the numbers of the rows that have the label `name`."""
        of = [i for i, names in enumerate(self._number) if name in names]
        return np.flatnonzero(np.isin(self.label, of))

    @property
    def exact(self) -> Int64:
        """A number for each row that is the same for equal texts."""
        return np.array(self._exact, np.int64)

    @property
    def near(self) -> Int64:
        """A number for each row that is the same for near copies."""
        return np.array(self._near, np.int64)

    @property
    def tokens(self) -> Int64:
        """The number of tokens of each text."""
        return np.array(self._tokens, np.int64)


def _probability(cell: object) -> float:
    """Return the probability in a cell, 1 if there is none."""
    try:
        return float(cell)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return 1.0
