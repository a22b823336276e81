"""Texts to label next, for the terminal."""

from collections.abc import Iterator, Sequence
from typing import Final

from rich.table import Table
from rich.text import Text

from textcls.display.text import named, percent, short
from textcls.labelling.suggest import Suggestion

CHARACTERS: Final = 100


def suggestions_report(suggestions: Sequence[Suggestion], places: Sequence[str]) -> Iterator[Table]:
    """Yield the texts, the most informative first, with the place of each."""
    answered = suggestions[0].label is not None
    table = Table("row", *(("answer", "score") if answered else ()), "text", box=None, pad_edge=False)
    for one, place in zip(suggestions, places, strict=True):
        proposal = [named(one.label), percent(one.score, 0)] if one.label is not None and one.score is not None else []
        table.add_row(*map(Text, (place, *proposal, short(one.text, CHARACTERS))))
    yield table
