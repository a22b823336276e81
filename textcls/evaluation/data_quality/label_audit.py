"""Rows of which a label is probably wrong or missing: what `textcls check --labels` finds, and how a person gets them.

Finding them takes trainings: `textcls_training.audit`.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

# What is added to a row that is written to be looked at.
COLUMNS: Final = ("suggested_label", "probability_of_label", "probability_suggested", "because_of", "copies")


@dataclass(frozen=True, slots=True)
class SuspectRow:
    """A row whose label is probably wrong; or which has a wrong label, or lacks one, where it may have several.

    Attributes:
        row: its number, from 0.
        text: the text of the row.
        label: what it has; of several labels, all of them in order.
        suggested: what it probably should have, likewise.
        probability: of its label, as models see it that have not seen the row; of several labels, of those that are to
            go, and that those to be added are absent.
        probability_suggested: the probability of the other one; with several, of the reverse.
        words: what speaks most for the suggested labels over its own.
        copies: how many near copies of the text have the suggested labels.
    """

    row: int
    text: str
    label: str | tuple[str, ...]
    suggested: str | tuple[str, ...]
    probability: float
    probability_suggested: float
    words: tuple[str, ...]
    copies: int

    def as_json(self) -> dict[str, Any]:
        """Return all of it as plain data."""
        return asdict(self)

    def columns(self, separator: str | None = None) -> Mapping[str, Any]:
        """Return what is added to the row in a file: `COLUMNS`; several labels joined by a separator, or as a list."""
        suggested: Any = self.suggested
        if not isinstance(suggested, str):
            suggested = list(suggested) if separator is None else separator.join(suggested)
        values = (
            suggested,
            round(self.probability, 4),
            round(self.probability_suggested, 4),
            " ".join(self.words),
            self.copies,
        )
        return dict(zip(COLUMNS, values, strict=True))


@dataclass(frozen=True, slots=True)
class LabelAudit:
    """What an audit of labels has found.

    Attributes:
        rows: how many there are.
        judged: how many could be judged; the only row of a label cannot.
        expected: how many of these look wrong: the sum of how probable that is of each. Hard rows add to it, too.
        suspects: rows to look at, the surest first.
        doubt: one number per row, higher for more doubtful labels.
    """

    rows: int
    judged: int
    expected: float
    suspects: tuple[SuspectRow, ...]
    doubt: list[float]

    def as_json(self) -> dict[str, Any]:
        """Return the audit as plain data, but for the doubt of rows that are not suspects."""
        found = [suspect.as_json() for suspect in self.suspects]
        return {"rows": self.rows, "judged": self.judged, "expected": round(self.expected, 1), "suspects": found}
