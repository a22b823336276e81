"""The gains of columns beside the text: what each contributes, and what all of them add."""

from dataclasses import dataclass
from typing import Any, NamedTuple

from textcls_training.fit.selection import SelectionResult
from textcls_training.models.columns import ColumnTerms

# With fewer held-out rows than this, nothing is fitted.
LEAST_ROWS = 50


class ColumnGain(NamedTuple):
    """The gain of a column.

    Attributes:
        name: the name of the column.
        kept: whether the model reads it.
        nats: how much the cross-entropy of held-out rows falls, given all other columns.
        error: the standard error of that.
        missing: the share of these rows without a value.
    """

    name: str
    kept: bool
    nats: float
    error: float
    missing: float

    def to_json(self) -> dict[str, Any]:
        """Return it as plain data."""
        numbers = {"nats": self.nats, "error": self.error, "missing": self.missing}
        return {"name": self.name, "kept": self.kept} | {name: round(value, 6) for name, value in numbers.items()}


@dataclass(frozen=True, slots=True)
class FittedColumns:
    """What columns add, and the result for each.

    Attributes:
        terms: what they add; None if the text alone does as well.
        selected: the selection on validation rows, with the logits of text and columns together.
        gains: the gains of each column.
    """

    terms: ColumnTerms | None
    selected: SelectionResult
    gains: tuple[ColumnGain, ...]
