"""Tables and coloured texts for the terminal, made with rich."""

import json
from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from textcls import abstaining, page
from textcls.abstaining import Abstaining
from textcls.evidence import EvidenceReport, Example, LabelEvidence, marked
from textcls.explanation import Explanation, View
from textcls.metrics import Report
from textcls.page import PartTable, named, visible

WORST_CONFUSIONS: Final = 10
MOST_TOKENS: Final = 50
PIPE_WIDTH: Final = 1000
NARROWEST_EXAMPLE: Final = 16
FOR, AGAINST = "green", "red"


def console() -> Console:
    """Return the console of the commands: as wide as the terminal; in a pipe nothing is wrapped or cut."""
    found = Console(soft_wrap=True)
    return found if found.is_terminal else Console(soft_wrap=True, width=PIPE_WIDTH)


def plural(number: int, one: str) -> str:
    """Return a number with its noun: 1 row, 1,234 rows."""
    return f"{number:,} {one}{'s' * (number != 1)}"


def score_line(report: Report) -> Text:
    """Return the summary of a report in one line."""
    loss = report.cross_entropy
    return Text.assemble(
        f"{plural(report.rows, 'row')}   accuracy ",
        (f"{report.accuracy:.2%}", "bold"),
        f"   macro-F1 {report.macro_f1:.2%}",
        "" if loss is None else f"   cross-entropy {loss:.3f} (perplexity {report.perplexity:.2f})",
        f"   ECE {report.ece:.3f}",
    )


def abstaining_line(found: Abstaining) -> Text:
    """Return in one line how many rows a threshold lets the model answer, and how many of these right."""
    line = Text.assemble(
        f"At threshold {found.threshold:g} it answers {found.accepted:,} of {found.rows:,} rows: coverage ",
        (f"{found.coverage:.2%}", "bold"),
    )
    if found.precision is None:
        return line.append(", so that there is no precision.")
    bound = f" (with {abstaining.CONFIDENCE:.0%} confidence at least {found.lower_bound():.2%})"
    return line.append(", precision ").append(f"{found.precision:.2%}", "bold").append(bound + ".")


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


def json_line(value: Any) -> str:
    """Return `value` as JSON in one line, readable unless it holds what has no UTF-8 form (unpaired surrogates)."""
    line = json.dumps(value, ensure_ascii=False)
    try:
        line.encode()
    except UnicodeEncodeError:
        return json.dumps(value)
    return line


def coloured_text(explanation: Explanation, view: View) -> Text:
    """Return the text with each token tinted by what it says in `view`: the stronger, the more intense.

    Words that are unknown to the model are underlined.
    """
    text = Text(visible(explanation.text))
    strongest = float(np.abs(view.values).max(initial=0.0)) or 1.0
    for (start, end), value in zip(explanation.spans, view.values.tolist(), strict=True):
        strength = abs(value) / strongest
        if strength >= 0.1:
            colour = FOR if value > 0 else AGAINST
            text.stylize(f"bold {colour}" if strength >= 0.5 else colour, start, end)
    for i in np.flatnonzero(~explanation.known).tolist():
        text.stylize("underline", *explanation.spans[i])
    return text


def token_table(explanation: Explanation, view: View, top: int) -> Table:
    """Return what each token says in `view`, and what it added to the two labels that matter.

    For a text of more than `top` tokens: the strongest, in reading order, and the sum of the rest.
    """
    columns = explanation.columns(view)
    table = Table("token", box=None, pad_edge=False)
    for name in ("attention", view.kind, *(explanation.labels[i] for i in columns)):
        table.add_column(Text(named(name)), justify="right")
    listed = np.zeros(len(view.values), bool)
    listed[view.strongest(top)] = True
    added = explanation.contributions[:, columns]
    for i in np.flatnonzero(listed).tolist():
        start, end = explanation.spans[i]
        token = Text(named(explanation.text[start:end]))
        if not explanation.known[i]:
            token.append(" (unknown)", style="dim")
        share = f"{float(explanation.attention[i]):.3f}"
        table.add_row(token, share, *map(_signed, [float(view.values[i]), *added[i].tolist()]))
    table.add_section()

    def sums(name: str, style: str, *values: float) -> None:
        table.add_row(Text(name, style=style), "", *map(_signed, values))

    if not listed.all():
        others = f"({int((~listed).sum()):,} others)"
        sums(others, "dim", float(view.values[~listed].sum()), *added[~listed].sum(0).tolist())
    sums("(bias)", "dim", view.bias, *explanation.bias_values[columns].tolist())
    sums("= logit", "bold", view.total, *explanation.logit_values[columns].tolist())
    return table


def part_table(parts: PartTable, view: View) -> Table:
    """Return what words, pairs of words and pieces of unknown words say in `view`, strongest first."""
    table = Table("part", "kind", box=None, pad_edge=False)
    table.add_column(view.kind, justify="right")
    for row in parts.rows:
        table.add_row(Text(row.name), Text(row.kind, style="dim"), _signed(row.value))
    table.add_section()
    if parts.others:
        table.add_row(Text(f"({parts.others:,} others)", style="dim"), "", _signed(parts.rest))
    table.add_row(Text("= tokens", style="bold"), "", _signed(parts.total))
    return table


def evidence_tables(report: EvidenceReport, width: int) -> Iterator[Table | Text]:
    """Yield what a model goes by, in lines of `width`: a summary, the shortcuts, then each label."""
    yield Text(page.summary_line(report))
    yield Text()
    if report.shortcuts:
        yield Text("Shortcuts: words that alone decide many answers of a label", style="bold")
        yield _shortcut_table(report, width)
    else:
        yield Text(page.no_shortcut_line(report))
    for label in page.told_labels(report):
        yield Text()
        yield Text.assemble((named(label.label), "bold"), f"   {label.answers:,} answers")
        yield _finding_table(label, width)
    if report.mirrored:
        yield Text("\n" + page.mirror_line(report))


def _shortcut_table(report: EvidenceReport, width: int) -> Table:
    rows = []
    for s in report.shortcuts:
        wrong = "" if s.wrong is None else f"{s.wrong:,}"
        told = (named(s.text), named(s.label), f"{s.decided:,}", f"{s.holding:,}", f"{s.answers:,}", f"{s.share:.1%}")
        rows.append((*map(Text, (*told, wrong)), s.example))
    heads = ("word", "label", "decides", "in", "of answers", "share", "wrong")
    return _example_table(heads, rows, 2, width)


def _finding_table(label: LabelEvidence, width: int) -> Table:
    sides = (
        ("for", label.words_for),
        ("against", label.words_against),
        ("pairs for", label.pairs_for),
        ("pairs against", label.pairs_against),
    )
    rows = [
        (
            Text("" if i else side, style="dim"),
            Text(named(f.text)),
            _signed(f.evidence, 1),
            _signed(f.mean),
            Text(f"{f.count:,}"),
            f.example,
        )
        for side, findings in sides
        for i, f in enumerate(findings)
    ]
    return _example_table(("", "token or pair", "evidence", "mean", "count"), rows, 2, width)


def _example_table(heads: Sequence[str], rows: Sequence[tuple[Any, ...]], names: int, width: int) -> Table:
    """A table with an example at the end of each row, which gives way where the lines are too long.

    The first `names` columns stand to the left, the numbers behind them to the right.
    """
    table = Table(box=None, pad_edge=False)
    for i, head in enumerate(heads):
        table.add_column(head, justify="left" if i < names else "right", no_wrap=True)
    table.add_column("example", no_wrap=True)
    taken = sum(2 + max(cell_len(head), *(row[i].cell_len for row in rows)) for i, head in enumerate(heads) if rows)
    for *cells, example in rows:
        table.add_row(*cells, _example(example, max(NARROWEST_EXAMPLE, width - taken)))
    return table


def _example(example: Example, width: int) -> Text:
    before, meant, behind = (page.one_line(part) for part in marked(example))
    room = max(0, width - cell_len(meant) - 2)
    if cell_len(before) + cell_len(behind) > room:
        # What is meant has to stay in sight.
        most = max(room // 2, room - cell_len(behind))
        while cell_len(before) > most:
            before = "\u2026" + before[2:] if len(before) > 1 else ""
    text = Text.assemble((before, "dim"), f"[{meant}]", (behind, "dim"))
    text.truncate(width, overflow="ellipsis")
    return text


def _signed(value: float, digits: int = 3) -> Text:
    small = 0.5 * 10**-digits
    return Text(f"{value:+,.{digits}f}", style=FOR if value > small else AGAINST if value < -small else "dim")
