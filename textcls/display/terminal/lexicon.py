"""The model as a table, for the terminal: the strongest words of each label."""

from collections.abc import Iterator, Sequence
from itertools import zip_longest

from rich.table import Table
from rich.text import Text

from textcls.display.terminal.console import AGAINST, FOR, coloured
from textcls.display.terminal.overview import overview_table
from textcls.display.text import named
from textcls.explain.lexicon.table import Lexicon

# More words than fit on a line.
_FULL = 100
_RANKED = "Strongest first, by weight times the root of the count: a rare word may weigh much by chance."
_WEIGHTS = "Weights are logits against the mean of the labels, before other words of a text dilute them."


def lexicon_report(found: Lexicon, labels: Sequence[str], top: int | None, width: int) -> Iterator[Table | Text]:
    """Yield the strongest words and pairs of labels: one line each or, with `top`, one table each with numbers."""
    if top is None:
        rows = [
            (label, (), [found.terms[i] for i in found.top(label, _FULL)], _against(found, label)) for label in labels
        ]
        yield overview_table(rows, (), width)
        yield Text()
    for label in labels if top is not None else ():
        yield Text(named(label), style="bold")
        yield _label_table(found, label, top or 0)
        yield Text()
    yield Text(_RANKED if top is None else f"{_RANKED}\n{_WEIGHTS}", style="dim")


def _against(found: Lexicon, label: str) -> list[str]:
    return [found.terms[i] for i in found.top(label, _FULL, against=True)]


def _label_table(found: Lexicon, label: str, top: int) -> Table:
    table = Table(box=None, pad_edge=False)
    for side in ("for", "against"):
        table.add_column(side, no_wrap=True)
        for head in ("count", "weight"):
            table.add_column(head, justify="right")
    values = found.evidence[:, found.labels.index(label)]
    sides = [found.top(label, top, against=against) for against in (False, True)]
    for pair in zip_longest(*sides):
        cells: list[Text] = []
        for i, style in zip(pair, (FOR, AGAINST), strict=True):
            empty = [Text(), Text(), Text()]
            cells += (
                empty
                if i is None
                else [
                    Text(named(found.terms[i]), style=style),
                    Text(f"{found.counts[i]:,}"),
                    coloured(float(values[i])),
                ]
            )
        table.add_row(*cells)
    return table
