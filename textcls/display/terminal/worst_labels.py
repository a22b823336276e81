"""If there are many labels, show those that fare worst: nobody would read the lines of all others."""

from collections.abc import Sequence
from typing import Final

from rich.text import Text

from textcls.display.report_lines import Label

# If there are more labels than this, only the worst are shown, this many.
MOST_LABELS: Final = 40
WORST_LABELS: Final = 20


def worst(labels: Sequence[Label]) -> tuple[list[Text], Sequence[Label]]:
    """Return the labels to be shown, and a line that says which they are if not all."""
    if len(labels) <= MOST_LABELS:
        return [], labels
    shown = sorted((label for label in labels if label.rows), key=lambda label: label.f1)[:WORST_LABELS]
    return [Text(f"The {len(shown)} of {len(labels):,} labels with the lowest F1:")], shown
