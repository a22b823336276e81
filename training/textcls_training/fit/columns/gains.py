"""What became of columns beside the text: what each brings, and what all of them add."""

from dataclasses import dataclass
from typing import Any, NamedTuple

from textcls_training.fit.selection import SelectionResult
from textcls_training.models.columns import ColumnTerms

# Fewer held-out rows than this fit nothing.
LEAST_ROWS = 50


class ColumnGain(NamedTuple):
    """What a column brings.

    Attributes:
        name: the name of the column.
        kept: whether the model reads it.
        nats: by how much the cross-entropy of held-out rows falls, with all other columns at hand.
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
    """What columns add, and what became of each.

    Attributes:
        terms: what they add; None where the text alone does as well.
        selected: what validation rows chose, with the logits of text and columns together.
        gains: the gains of each column.
    """

    terms: ColumnTerms | None
    selected: SelectionResult
    gains: tuple[ColumnGain, ...]
