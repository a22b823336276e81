"""Rows with a label that is probably wrong or missing: what `textcls check --labels` finds, and how it is presented.

Finding them requires trainings: `textcls_training.audit`.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

# The columns that are added to a row that is written out for review.
COLUMNS: Final = ("suggested_label", "probability_of_label", "probability_suggested", "because_of", "copies")


@dataclass(frozen=True, slots=True)
class SuspectRow:
    """A row whose label is probably wrong; or, if rows may have several, which has a wrong label or lacks one.

    Attributes:
        row: its number, from 0.
        text: the text of the row.
        label: the label that it has; with several labels, all of them in order.
        suggested: the label that it probably should have, likewise.
        probability: the probability of its label, according to models that have not seen the row; with several labels,
            that of the labels to be removed, and of the absence of those to be added.
        probability_suggested: the probability of the suggested label; with several, of the reverse.
        words: the words that speak most for the suggested labels over its own.
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
        """Return the `COLUMNS` added to the row in a file; several labels are joined by a separator, or form a list."""
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
    """The result of an audit of labels.

    Attributes:
        rows: how many there are.
        judged: how many could be judged; the only row of a label cannot be.
        expected: how many of these look wrong: the sum of their probabilities of being wrong. Hard rows add to it, too.
        suspects: rows to review, the most certain first.
        doubt: one number per row, higher for more doubtful labels.
    """

    rows: int
    judged: int
    expected: float
    suspects: tuple[SuspectRow, ...]
    doubt: list[float]

    def as_json(self) -> dict[str, Any]:
        """Return the audit as plain data, without the doubt of rows that are not suspects."""
        found = [suspect.as_json() for suspect in self.suspects]
        return {"rows": self.rows, "judged": self.judged, "expected": round(self.expected, 1), "suspects": found}
