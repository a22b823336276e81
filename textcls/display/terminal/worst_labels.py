"""Of many labels a terminal shows those that fare worst: of the others one line would follow the other unread."""

from collections.abc import Sequence
from typing import Final, Protocol, TypeVar

from rich.text import Text

# Of more labels the worst are told; so many.
MOST_LABELS: Final = 40
WORST_LABELS: Final = 20


class Scored(Protocol):
    """A label with its figures."""

    @property
    def rows(self) -> int:
        """How many rows have it."""

    @property
    def f1(self) -> float:
        """The harmonic mean of precision and recall."""


Label = TypeVar("Label", bound=Scored)


def worst(labels: Sequence[Label]) -> tuple[list[Text], Sequence[Label]]:
    """Return the labels that are to be shown, and a line that says which if it is not all of them."""
    if len(labels) <= MOST_LABELS:
        return [], labels
    shown = sorted((label for label in labels if label.rows), key=lambda label: label.f1)[:WORST_LABELS]
    return [Text(f"The {len(shown)} of {len(labels):,} labels with the lowest F1:")], shown
