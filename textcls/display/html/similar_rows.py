"""Training rows that are like an answer, as a part of its page."""

from textcls.display.html.fragments import heads, name, shown, table
from textcls.display.remarks import similar_line
from textcls.display.text import named, percent, signed
from textcls.explain.similar_rows import SimilarRow, SimilarRows

# Characters of a row that are shown.
LONGEST_TEXT = 1_000


def similar_part(found: SimilarRows, *, texts: bool) -> str:
    """Return a table of the rows, with the words that they share, and with their texts on request."""
    content = f"<h3>Rows like it</h3><p>{shown(similar_line(found))}</p>"
    if not found.same and not found.other:
        return content
    words = ("shared words, with what they add here", *(["text"] if texts else []))
    named = heads("row") + heads("label", kind="left") + heads("alike") + heads(*words, kind="left")
    return content + table(named, (_row(row, texts=texts) for row in (*found.same, *found.other)))


def _row(row: SimilarRow, *, texts: bool) -> str:
    labels = ", ".join(map(name, row.labels))
    words = ", ".join(f"{shown(named(word))} {signed(value, 2)}" for word, value in row.shared)
    text = f'<td class="left whole" dir="auto">{shown(row.text[:LONGEST_TEXT])}</td>' if texts else ""
    return (
        f'<tr><th scope="row">{row.row:,}</th><td class="left">{labels}</td><td>{percent(row.alike, 0)}</td>'
        f'<td class="left">{words}</td>{text}</tr>'
    )
