"""What is remembered of each row: numbers, not texts, so that a file larger than memory can be surveyed."""

import re
from array import array
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from textcls import tokenizer
from textcls.data.labelled import LabelledRow, Places
from textcls.data_quality.duplicates import exact, near

Int64 = NDArray[np.int64]
# One word with a digit in it and no letters beyond ASCII: a number, a code, a key.
_CODE: Final = re.compile(r"[A-Za-z0-9_.:/#+-]*[0-9][A-Za-z0-9_.:/#+-]*")


@dataclass(slots=True)
class Survey:
    """What is known of some labelled rows.

    Attributes:
        counts: whether tokens and characters are counted, which takes most of the time.
        rows: how many there are.
        places: where each stands.
        labels: how many rows have each label, in the order in which they come.
        blank: numbers of the rows whose text has no token.
        codes: how many texts look like a number or a key.
        characters: how often each character occurs.
    """

    counts: bool = True
    rows: int = 0
    places: Places = field(default_factory=Places)
    labels: Counter[str] = field(default_factory=Counter)
    blank: list[int] = field(default_factory=list)
    codes: int = 0
    characters: Counter[str] = field(default_factory=Counter)
    _number: dict[str, int] = field(default_factory=dict)
    _label: "array[int]" = field(default_factory=lambda: array("q"))
    _exact: "array[int]" = field(default_factory=lambda: array("q"))
    _near: "array[int]" = field(default_factory=lambda: array("q"))
    _tokens: "array[int]" = field(default_factory=lambda: array("q"))

    def add(self, text: str, label: str) -> None:
        """Take note of a row."""
        if next(tokenizer.token_spans(text, 1), None) is None:
            self.blank.append(self.rows)
        self.codes += _CODE.fullmatch(text.strip()) is not None
        self.labels[label] += 1
        self._label.append(self._number.setdefault(label, len(self._number)))
        self._exact.append(exact(text))
        self._near.append(near(text))
        if self.counts:
            self._tokens.append(sum(1 for _ in tokenizer.token_spans(text)))
            self.characters.update(text)
        self.rows += 1

    def extend(self, rows: Iterable[LabelledRow[str]]) -> "Survey":
        """Take note of `rows` and of where they stand."""
        for text, label, row, _ in rows:
            self.add(text, label)
            self.places.append(row)
        return self

    @property
    def names(self) -> list[str]:
        """The labels, by number."""
        return list(self._number)

    @property
    def label(self) -> Int64:
        """The number of each row's label."""
        return np.array(self._label, np.int64)

    @property
    def exact(self) -> Int64:
        """A number for each row that is the same for the same text."""
        return np.array(self._exact, np.int64)

    @property
    def near(self) -> Int64:
        """A number for each row that is the same for near copies."""
        return np.array(self._near, np.int64)

    @property
    def tokens(self) -> Int64:
        """How many tokens each text has."""
        return np.array(self._tokens, np.int64)
