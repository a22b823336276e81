"""The metadata of a model of prototypes: the support rows that its labels are made of.

A label has a few *support rows*, vectors of texts. The similarity of a text to a label is its cosine to the *prototype*
of the label, the mean of its support rows, weighted by the similarity of the text (`textcls.model.teaching.scores`).
The vectors are in the graph; this module says where they come from. Shapes: S support rows, C labels.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

# A model file contains a vector of a few hundred numbers for each, and every text is compared with all.
MOST_SUPPORT_ROWS: Final = 20_000
# Above this scale the softmax over support rows has a single winner.
MOST_SCALE: Final = 100.0
KEPT_CHARACTERS: Final = 300
_MOST_TEXTS: Final = 2**53


def kept_text(text: str) -> str:
    """Return what a file keeps of a text: its start, with unpaired surrogates, invalid in UTF-8, replaced."""
    return text[:KEPT_CHARACTERS].encode("utf-8", "replace").decode()


@dataclass(frozen=True, slots=True)
class SupportRow:
    """Where a support row comes from.

    Attributes:
        row: the number of the nearest training row or taught example, counted from 1.
        rows: how many of them it is the mean of.
        taught: whether it was taught after training, and can be taken back.
        text: the start of the text of `row`, if texts are kept.
    """

    row: int
    rows: int
    taught: bool
    text: str | None = None


@dataclass(frozen=True, slots=True)
class Prototypes:
    """The support rows of a model.

    Attributes:
        scale: what a cosine is multiplied by, above 0.
        keeps_texts: whether the file contains the texts of support rows.
        support: the support rows of each label, in the order of the labels.
    """

    scale: float
    keeps_texts: bool
    support: tuple[tuple[SupportRow, ...], ...]

    @property
    def counts(self) -> list[int]:
        """How many support rows each label has [C]."""
        return [len(rows) for rows in self.support]

    def taught(self, label: int) -> int:
        """Return how many examples the taught support rows of a label are made of."""
        return sum(row.rows for row in self.support[label] if row.taught)

    def to_json(self) -> dict[str, Any]:
        """Return it as plain data: for each label, lists of rows and of how many rows each is the mean of."""
        columns: list[dict[str, Any]] = []
        for rows in self.support:
            column: dict[str, Any] = {"row": [row.row for row in rows], "rows": [row.rows for row in rows]}
            column["taught"] = sum(row.taught for row in rows)
            if self.keeps_texts:
                column["texts"] = [row.text for row in rows]
            columns.append(column)
        return {"scale": self.scale, "keeps_texts": self.keeps_texts, "support": columns}

    @classmethod
    def from_json(cls, found: Mapping[str, Any], labels: int) -> "Prototypes":
        """Read what `to_json` has written, and check it.

        Raises:
            KeyError: something is missing.
            ValueError: something is invalid.
        """
        scale, keeps_texts, columns = found["scale"], found["keeps_texts"], found["support"]
        if type(scale) not in (int, float) or not 0 < scale <= MOST_SCALE:
            raise ValueError(f"the scale of the prototypes is not a number above 0 and up to {MOST_SCALE}")
        if not isinstance(keeps_texts, bool) or not isinstance(columns, list) or len(columns) != labels:
            raise ValueError("the prototypes are not those of the labels")
        support = tuple(_support_rows(column, keeps_texts) for column in columns)
        if sum(map(len, support)) > MOST_SUPPORT_ROWS:
            raise ValueError(f"there are more than {MOST_SUPPORT_ROWS:,} support rows")
        return cls(float(scale), keeps_texts, support)


class SupportWeight(NamedTuple):
    """A support row of a label, and a text's attention to it: its share of the prototype."""

    weight: float
    row: SupportRow

    def to_json(self) -> dict[str, Any]:
        """Return it as plain data."""
        text = {} if self.row.text is None else {"text": self.row.text}
        return {"weight": self.weight, "row": self.row.row, "rows": self.row.rows, "taught": self.row.taught, **text}


@dataclass(frozen=True, slots=True, eq=False)
class SupportAttention:
    """The support rows that the prototypes for a text are made of.

    Attributes:
        prototypes: the prototypes of the model.
        weight_CK: the attention over the support rows of each label: sums to 1, then zeros.
    """

    prototypes: Prototypes
    weight_CK: NDArray[np.float32]

    def top(self, label: int, k: int) -> list[SupportWeight]:
        """Return the `k` support rows of label number `label` with the most weight, in descending order."""
        rows = self.prototypes.support[label]
        weights = self.weight_CK[label, : len(rows)]
        order = np.argsort(-weights, kind="stable")[:k].tolist()
        return [SupportWeight(float(weights[i]), rows[i]) for i in order]


def _support_rows(column: Any, keeps_texts: bool) -> tuple[SupportRow, ...]:
    if not isinstance(column, dict):
        raise ValueError("the support rows of a label are not an object")
    row, rows, taught = _wholes(column["row"]), _wholes(column["rows"]), column["taught"]
    texts: Sequence[str | None] = [None] * len(row)
    if keeps_texts:
        texts = column["texts"]
        if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
            raise ValueError("the texts of support rows are not strings")
    if not len(row) == len(rows) == len(texts) > 0:
        raise ValueError("a label has no support rows, or not one of each kind a row")
    if type(taught) is not int or not 0 <= taught <= len(row):
        raise ValueError("a label has more taught support rows than it has any")
    trained = len(row) - taught
    parts = zip(row, rows, texts, strict=True)
    return tuple(SupportRow(one, many, i >= trained, text) for i, (one, many, text) in enumerate(parts))


def _wholes(found: Any) -> list[int]:
    if not isinstance(found, list) or not all(type(one) is int and 0 < one < _MOST_TEXTS for one in found):
        raise ValueError("support rows are counted by whole numbers above 0")
    return found
