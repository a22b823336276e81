"""Tables and coloured texts for the terminal, made with rich."""

from typing import Final

import numpy as np
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from textcls.metrics import Report
from textcls.results import Explanation, Prediction

WORST_CONFUSIONS: Final = 10
MOST_TOKENS: Final = 50
PIPE_WIDTH: Final = 1000
FOR, AGAINST = "green", "red"
# Control characters but tab and line feed: a text must neither steer the terminal nor, by vanishing, move the colours.
_CONTROLS: Final = {
    c: chr(0x2400 + c) if c < 32 else "\ufffd" for c in (*range(32), *range(127, 160)) if c not in (9, 10)
}


def console() -> Console:
    """Return the console of the commands: as wide as the terminal; in a pipe nothing is wrapped or cut."""
    found = Console(soft_wrap=True)
    return found if found.is_terminal else Console(soft_wrap=True, width=PIPE_WIDTH)


def score_line(report: Report) -> Text:
    """Return the summary of a report in one line."""
    loss = report.cross_entropy
    return Text.assemble(
        f"{report.rows:,} rows   accuracy ",
        (f"{report.accuracy:.2%}", "bold"),
        f"   macro-F1 {report.macro_f1:.2%}",
        "" if loss is None else f"   cross-entropy {loss:.3f} (perplexity {report.perplexity:.2f})",
        f"   ECE {report.ece:.3f}",
    )


def label_table(report: Report) -> Table:
    """Return precision, recall and F1 of each label."""
    table = Table("label", box=None, pad_edge=False)
    for name in ("precision", "recall", "F1", "rows"):
        table.add_column(name, justify="right")
    for label in report.labels:
        table.add_row(
            Text(label.label), f"{label.precision:.3f}", f"{label.recall:.3f}", f"{label.f1:.3f}", f"{label.rows:,}"
        )
    return table


def confusion_table(report: Report, width: int) -> Table | None:
    """Return the confusion matrix; if it is wider than `width`, the confusions that occur most, if any."""
    names = [label.label for label in report.labels]
    if max(map(cell_len, ["right \\ answered", *names])) + sum(2 + max(4, cell_len(name)) for name in names) <= width:
        table = Table("right \\ answered", box=None, pad_edge=False)
        for name in names:
            table.add_column(Text(name), justify="right")
        for name, row in zip(names, report.confusion, strict=True):
            table.add_row(Text(name), *(f"{n:,}" if n else "." for n in row))
        return table
    table = Table(
        "right", "answered", "rows", box=None, pad_edge=False, title="most frequent confusions", title_justify="left"
    )
    wrong = np.array(report.confusion)
    np.fill_diagonal(wrong, 0)
    if not wrong.any():
        return None
    for index in np.argsort(-wrong, axis=None, kind="stable")[:WORST_CONFUSIONS]:
        right, answered = divmod(int(index), len(names))
        if wrong[right, answered]:
            table.add_row(Text(names[right]), Text(names[answered]), f"{wrong[right, answered]:,}")
    return table


def coloured_text(explanation: Explanation, label: str) -> Text:
    """Return the text with each token tinted by what it added to `label`: the stronger, the more intense."""
    text = Text(_visible(explanation.text))
    column = explanation.labels.index(label)
    added = explanation.contributions[:, column]
    strongest = float(np.abs(added).max(initial=0.0)) or 1.0
    for (start, end), value in zip(explanation.spans, added.tolist(), strict=True):
        strength = abs(value) / strongest
        if strength >= 0.1:
            colour = FOR if value > 0 else AGAINST
            text.stylize(f"bold {colour}" if strength >= 0.5 else colour, start, end)
    return text


def token_table(prediction: Prediction, explanation: Explanation) -> Table:
    """Return what each token added to the winner and to the runner-up; of a long text, the tokens that added most."""
    shown = [scored.label for scored in prediction.top(2)]
    winner = explanation.contributions[:, explanation.labels.index(prediction.label)]
    strongest = set(np.argsort(-np.abs(winner), kind="stable")[:MOST_TOKENS].tolist())
    table = Table("token", box=None, pad_edge=False)
    for name in ("attention", *shown):
        table.add_column(Text(name), justify="right")
    for i, token in enumerate(explanation.tokens):
        if i not in strongest:
            continue
        table.add_row(
            Text(_visible(token.text)),
            f"{token.attention:.3f}",
            *(_signed(token.contributions[name]) for name in shown),
        )
    table.add_section()
    if len(strongest) < len(winner):
        rest = [i for i in range(len(winner)) if i not in strongest]
        others = explanation.contributions[rest].sum(0)
        sums = (_signed(float(others[explanation.labels.index(name)])) for name in shown)
        table.add_row(Text(f"({len(rest):,} others)", style="dim"), "", *sums)
    table.add_row(Text("(bias)", style="dim"), "", *(_signed(explanation.bias[name]) for name in shown))
    table.add_row(Text("= logit", style="bold"), "", *(_signed(explanation.logits[name]) for name in shown))
    return table


def _visible(text: str) -> str:
    return text.translate(_CONTROLS)


def _signed(value: float) -> Text:
    return Text(f"{value:+.3f}", style=FOR if value > 0.0005 else AGAINST if value < -0.0005 else "dim")
