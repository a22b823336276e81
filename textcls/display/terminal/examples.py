"""Tables whose rows end with an example: the context of a word in a text."""

from collections.abc import Sequence
from typing import Any, Final

from rich.cells import cell_len
from rich.table import Table
from rich.text import Text

from textcls.display.terminal.console import table_of
from textcls.display.text import one_line
from textcls.model.excerpts import Excerpt, marked

NARROWEST_EXAMPLE: Final = 16


def example_table(heads: Sequence[str], rows: Sequence[tuple[Any, ...]], names: int, width: int) -> Table:
    """Return a table with an example at the end of each row, which is cut if the lines are too long.

    The first `names` columns are aligned left, the numbers after them right.
    """
    table = table_of(heads[:names], heads[names:], no_wrap=True)
    table.add_column("example", no_wrap=True)
    taken = sum(2 + max(cell_len(head), *(row[i].cell_len for row in rows)) for i, head in enumerate(heads) if rows)
    for *cells, example in rows:
        table.add_row(*cells, cut(example, max(NARROWEST_EXAMPLE, width - taken)))
    return table


def cut(excerpt: Excerpt, width: int) -> Text:
    """Return an excerpt in this many columns, with its word in brackets."""
    before, term, behind = (one_line(part) for part in marked(excerpt))
    room = max(0, width - cell_len(term) - 2)
    if cell_len(before) + cell_len(behind) > room:
        # The term itself must stay visible.
        most = max(room // 2, room - cell_len(behind))
        while cell_len(before) > most:
            before = "\u2026" + before[2:] if len(before) > 1 else ""
    text = Text.assemble((before, "dim"), f"[{term}]" if term else "", (behind, "dim"))
    text.truncate(width, overflow="ellipsis")
    return text
