"""A table with one line per label, with as many of its strongest words as fit on the line."""

from collections.abc import Iterable, Sequence
from typing import Final

from rich.cells import cell_len
from rich.table import Table
from rich.text import Text

from textcls.display.terminal.console import AGAINST, FOR
from textcls.display.text import named

# In a pipe, which has no width, lines of an overview are no longer than this.
WIDEST: Final = 160

# The label, its numbers, and what speaks for it and against it, the strongest first.
OverviewRow = tuple[str, Sequence[str], Sequence[str], Sequence[str]]


def overview_table(
    rows: Sequence[OverviewRow], heads: Sequence[str], width: int, sides: tuple[str, str] = ("for", "against")
) -> Table:
    """Return a table of labels in lines of `width`; `heads` are those of the numbers, `sides` those of the words."""
    table = Table(box=None, pad_edge=False)
    columns = ("label", "left"), *((head, "right") for head in heads), *((side, "left") for side in sides)
    for head, justify in columns:
        table.add_column(head, justify=justify, no_wrap=True)  # type: ignore[arg-type]
    names = max((cell_len(named(label)) for label, *_ in rows), default=0)
    numbers = sum(2 + max([cell_len(head), *(len(row[1][i]) for row in rows)]) for i, head in enumerate(heads))
    room = max(24, (min(width, WIDEST) - max(names, 5) - numbers - 6) // 2)
    for label, cells, speak_for, speak_against in rows:
        styled = ((speak_for, FOR), (speak_against, AGAINST))
        listed = [Text(_listed(terms, room), style=style) for terms, style in styled]
        table.add_row(Text(named(label), style="bold"), *cells, *listed)
    return table


def _listed(terms: Iterable[str], room: int) -> str:
    """Return the first of some terms, as many as there is space for."""
    line = ""
    for term in terms:
        # In a comma-separated list, a comma needs quotes.
        word = named(term) if any(sign.isalnum() for sign in term) else repr(named(term))
        more = f", {word}" if line else word
        if cell_len(line + more) > room:
            break
        line += more
    return line
