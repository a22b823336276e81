"""Training rows that are like an answer, for the terminal."""

from collections.abc import Iterator

from rich.table import Table
from rich.text import Text

from textcls.display.remarks import similar_line
from textcls.display.terminal.console import AGAINST, FOR
from textcls.display.text import named, one_line, percent, signed
from textcls.explain.similar_rows import SimilarRow, SimilarRows

LONGEST_TEXT = 100


def similar_report(found: SimilarRows, *, texts: bool) -> Iterator[Table | Text]:
    """Yield the rows of the label and of others, with the words that they share, and their texts on request."""
    yield Text()
    yield Text(similar_line(found), style="bold")
    if not found.same and not found.other:
        return
    table = Table("row", "label", "alike", "shared words, with what they add here", box=None, pad_edge=False)
    if texts:
        table.add_column("text", no_wrap=True)
    for row in (*found.same, *found.other):
        quoted = [Text(one_line(row.text)[:LONGEST_TEXT])] if texts else []
        label = ", ".join(map(named, row.labels))
        table.add_row(f"{row.row:,}", Text(label), percent(row.alike, 0), _shared(row), *quoted)
    yield table


def _shared(row: SimilarRow) -> Text:
    words = Text()
    for i, (word, value) in enumerate(row.shared):
        words.append(", " * (i > 0) + f"{named(word)} {signed(value, 2)}", style=FOR if value > 0 else AGAINST)
    return words
