"""The effect of exchanged words on answers, as a fragment."""

from textcls.display.html.fragments import fragment, heads, name, shown, table
from textcls.display.html.global_explanation import example
from textcls.display.remarks import absent_line, exchange_line
from textcls.display.text import signed
from textcls.explain.exchanges import ExchangeReport


def exchange_fragment(title: str, report: ExchangeReport) -> str:
    """Return a table of words, what each was exchanged for, and how answers changed."""
    parts = [f"<h2>{shown(title)}</h2>", f"<p>{shown(exchange_line(report))}</p>"]
    if report.exchanges:
        named = heads("word") + heads("exchanged for", "label", kind="left")
        named += heads("texts", "other answer", "mean change", "+-", "largest", "example")
        rows = [
            f'<tr><th scope="row">{name(one.word)}</th><td class="left">{name(one.by)}</td>'
            f'<td class="left">{name(one.label)}</td><td>{one.texts:,}</td><td>{one.changed:,}</td>'
            f"<td>{signed(one.difference)}</td><td>{one.error:.3f}</td><td>{signed(one.largest)}</td>"
            f"{example(one.example)}</tr>"
            for one in report.exchanges
        ]
        parts.append(table(named, rows))
    if report.absent:
        parts.append(f'<p class="note">{shown(absent_line(report))}</p>')
    parts.append(
        '<p class="note">The same texts, but for one word: how the probability of the label that changes most does, in '
        "the mean with its standard error, and at most. A word may mean something else there: read the examples.</p>"
    )
    return fragment(parts)
