"""What would change an answer, and the effect of exchanged words on answers, for the terminal."""

from collections.abc import Iterator

from rich.table import Table
from rich.text import Text

from textcls.display.remarks import absent_line, change_line, column_change_lines, exchange_line, search_line
from textcls.display.terminal.console import AGAINST, FOR
from textcls.display.terminal.examples import example_table
from textcls.display.text import named, signed, visible
from textcls.explain.counterfactual import Search
from textcls.explain.exchanges import ExchangeReport


def change_report(search: Search) -> Iterator[Text]:
    """Yield what would change the answer, the changed text, and what was searched."""
    yield Text()
    yield Text(change_line(search), style="bold")
    if search.found is not None:
        yield changed_text(search)
    yield from map(Text, column_change_lines(search))
    yield Text(search_line(search), style="dim")


def changed_text(search: Search) -> Text:
    """Return the text with what is left out marked, followed by its replacement."""
    assert search.found is not None
    shown, at = Text(), 0
    for change in search.found.changes:
        shown.append(visible(search.text[at : change.start]))
        # Signs, in case there are no colours.
        shown.append(f"[-{visible(search.text[change.start : change.end])}-]", style=f"strike {AGAINST}")
        if change.by is not None:
            shown.append(f" {visible(change.by)}", style=f"bold {FOR}")
        at = change.end
    return shown.append(visible(search.text[at:]))


def exchange_report(report: ExchangeReport, width: int) -> Iterator[Table | Text]:
    """Yield the effect of exchanged words on answers, in lines of `width`."""
    yield Text(exchange_line(report), style="bold")
    if report.exchanges:
        yield example_table(
            ("word", "exchanged for", "label", "texts", "other answer", "mean change", "+-", "largest"),
            [
                (
                    Text(named(one.word)),
                    Text(named(one.by)),
                    Text(named(one.label)),
                    Text(f"{one.texts:,}"),
                    Text(f"{one.changed:,}"),
                    Text(signed(one.difference)),
                    Text(f"{one.error:.3f}"),
                    Text(signed(one.largest)),
                    one.example,
                )
                for one in report.exchanges
            ],
            3,
            width,
        )
    if report.absent:
        yield Text(absent_line(report), style="dim")
