"""The elements of report pages, whether a model gives a text one label or several."""

from collections.abc import Iterable, Sequence
from html import escape
from typing import Final, NamedTuple

from textcls.display.html import charts, fragments
from textcls.display.html.charts import Axes, Point
from textcls.display.html.fragments import shown, with_mark
from textcls.display.text import percent, plural
from textcls.evaluation.metrics import ReliabilityBin
from textcls.model.excerpts import excerpt

# This many labels, those with the lowest F1, are shown before the others, which are folded away.
SHOWN_LABELS: Final = 25
# The number of characters shown of a text.
CHARACTERS: Final = 240
CUT: Final = "\u2026"

STYLE: Final = (
    ".textcls .summary li{margin:.35rem 0}.textcls .matrix td{text-align:right;padding:.2rem .5rem}"
    ".textcls .matrix th[scope=col]{text-align:right;padding:.2rem .5rem}"
    ".textcls .figures{display:flex;flex-wrap:wrap;gap:.75rem;margin:1rem 0}"
    ".textcls .figures div{border:1px solid var(--line);border-radius:6px;padding:.6rem 1rem;flex:1 1 6rem}"
    ".textcls .figures b{display:block;font-size:1.6rem;line-height:1.2}.textcls .figures small{color:var(--faint)}"
    ".textcls .weak th,.textcls .weak td{font-weight:600}.textcls nav a{margin-right:1em;color:inherit}"
    ".textcls .quoted{white-space:normal;text-align:start;min-width:16rem;max-width:34rem}"
    ".textcls table.findings th[scope=col].number{text-align:right}"
    ".textcls .said,.textcls th[scope=col].said{text-align:start}.textcls th[scope=col].said{padding-left:.7rem}"
    ".textcls .kinds .bar{min-width:4rem}"
    ".textcls .several{text-align:start;white-space:normal;min-width:9rem}"
)


class Parts(NamedTuple):
    """The parts of a page that differ between the two kinds of reports.

    Attributes:
        figures: the boxes at the top: a figure, its name, and more about it.
        labels: the content below the heading of labels.
        confidence_heading: the heading of the next part.
        confidence: what scores promise, and the effects of thresholds.
        errors: likewise.
    """

    figures: list[tuple[str, str, str]]
    labels: list[str]
    confidence_heading: str
    confidence: list[str]
    errors: list[str]


def table(heads: Sequence[tuple[str, str]], rows: Iterable[str], kind: str = "findings") -> str:
    """Return a table; each head consists of its text and its class."""
    return fragments.table("".join(fragments.heads(escape(text), kind=of) for text, of in heads), rows, kind)


def quoted(text: str, place: tuple[int, int]) -> str:
    """Return a cell with a text, or the context of the word at `place` in a long one; the word is marked."""
    start, end = place
    around = CHARACTERS // 2 if len(text) > CHARACTERS and end else CHARACTERS
    found = excerpt(text, start, end, around)
    cut_before, cut_behind = found.start < start, len(found.text) - found.end < len(text) - end
    title = f"{CUT * cut_before}{with_mark(found)}{CUT * cut_behind}"
    return f'<td class="quoted" dir="auto"><bdi>{title}</bdi></td>'


def plain_table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table of words and numbers as given, with the first cell of a row as its head."""
    lines = (
        f'<tr><th scope="row">{shown(what)}</th>' + "".join(f"<td>{shown(cell)}</td>" for cell in cells) + "</tr>"
        for what, *cells in rows
    )
    return table([(head, "number" if i else "") for i, head in enumerate(heads)], lines)


def boxes(figures: Iterable[tuple[str, str, str]]) -> str:
    """Return figures side by side: each with its name, and more about it."""
    divisions = "".join(
        f"<div><b>{escape(value)}</b>{escape(what)}<br><small>{escape(more)}</small></div>"
        for value, what, more in figures
    )
    return f'<div class="figures">{divisions}</div>'


def folded(heads: Sequence[tuple[str, str]], rows: Sequence[str], absent: int) -> str:
    """Return a table of labels, of which those beyond the first ones are folded away.

    Args:
        heads: the heads of its columns.
        rows: one label each, by rising F1, followed by those that no row has.
        absent: the number of the latter.
    """
    shown = table(heads, rows[:SHOWN_LABELS])
    if len(rows) <= SHOWN_LABELS:
        return shown
    rest = len(rows) - SHOWN_LABELS
    of_both = "of higher F1, or that no row has" if absent else "of higher F1"
    which = "that no row has" if absent >= rest else of_both
    more = f"<summary>{plural(rest, 'more label')}, {which}</summary>"
    return f"{shown}<details>{more}{table(heads, rows[SHOWN_LABELS:])}</details>"


def reliability(found: Sequence[ReliabilityBin], axes: Axes, caption: str, of: str, right: str) -> str:
    """Return the chart of what scores promise and how often they are right.

    Args:
        found: the bins.
        axes: their names.
        caption: the caption below the chart.
        of: the unit counted in a bin: row, or label.
        right: the word for those that count: right.
    """
    largest = max((each.rows for each in found), default=1)
    points = []
    for each in found:
        title = f"score {percent(each.confidence)}: {percent(each.share.value)} of {plural(each.rows, of)} {right}"
        size = 2 + 5 * (each.rows / largest) ** 0.5
        points.append(Point(each.confidence, each.share.value, each.low, each.high, size, title))
    return charts.figure("Can its scores be trusted?", caption, axes, charts.diagonal(axes), charts.dots(axes, points))
