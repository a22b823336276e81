"""What a model relies on over many texts, for the terminal."""

from collections.abc import Iterator, Sequence

from rich.table import Table
from rich.text import Text

from textcls.display.remarks import (
    DOUBTS,
    POSSIBLE,
    SHORTCUTS,
    labels_shown,
    mirror_line,
    nothing_decides_line,
    possible_line,
    shortcut_lines,
    summary_line,
)
from textcls.display.terminal.console import coloured
from textcls.display.terminal.examples import example_table
from textcls.display.terminal.overview import overview_table
from textcls.display.text import named, percent
from textcls.explain.global_explanation.summary import GlobalExplanation, LabelExplanation, TermAttribution
from textcls.explain.shortcuts.audit import Shortcut
from textcls.model.excerpts import Excerpt


def global_explanation_report(found: GlobalExplanation, width: int, *, compact: bool = False) -> Iterator[Table | Text]:
    """Yield what a model relies on, in lines of `width`: a summary, the shortcuts, then each label.

    Args:
        found: what was found.
        width: the width of a line.
        compact: whether each label has one line, so that all fit a screen; otherwise tables with numbers and examples.
    """
    yield Text(summary_line(found))
    yield Text()
    audit = found.audit
    for line in found.told_by:
        yield Text(line)
    if audit is not None and audit.shortcuts:
        yield Text(SHORTCUTS, style="bold")
        yield _shortcut_table(audit.shortcuts, width)
    first, *how = shortcut_lines(audit)
    yield Text(first)
    yield from (Text(line, style="dim") for line in how)
    if compact and (line := possible_line(audit)):
        yield Text(line)
    elif audit is not None and audit.possible:
        yield Text()
        yield Text(POSSIBLE, style="bold")
        yield _shortcut_table(audit.possible, width)
    yield Text()
    if found.deciding:
        yield Text("What alone decides many answers of a label", style="bold")
        yield _deciding_table(found, width)
    else:
        yield Text(nothing_decides_line(found))
    if compact:
        yield Text()
        yield _overview(found, width)
        yield Text("With --top 10: sums, means, counts and examples of ten each.", style="dim")
        return
    for label in labels_shown(found):
        yield Text()
        yield Text.assemble((named(label.label), "bold"), f"   {label.answers:,} answers")
        yield _term_table(label, width)
    if found.mirrored:
        yield Text("\n" + mirror_line(found))


def _overview(found: GlobalExplanation, width: int) -> Table:
    """Return a table with the strongest words and pairs for and against each label, as many as fit on a line."""
    rows = [
        (
            label.label,
            (f"{label.answers:,}",),
            _strongest(label.words_for, label.pairs_for),
            _strongest(label.words_against, label.pairs_against),
        )
        for label in found.labels
    ]
    return overview_table(rows, ("answers",), width)


def _strongest(words: Sequence[TermAttribution], pairs: Sequence[TermAttribution]) -> list[str]:
    return [term.text for term in sorted((*words, *pairs), key=lambda term: -abs(term.evidence))]


def _shortcut_table(shortcuts: Sequence[Shortcut], width: int) -> Table:
    """Return a table of shortcuts: their number of texts, the answers that change with and without them, or doubts."""
    doubted = shortcuts[0].doubt is not None
    rows = [
        (
            Text(named(s.text)),
            Text(named(s.label)),
            Text("" if s.kind == "length" else s.place),
            Text(f"{s.texts:,}"),
            Text(percent(s.of_label / s.texts)),
            Text(f"{s.put_in_changed:,}/{s.put_in:,}"),
            Text(_taken_out(s)),
            s.example or Excerpt("", 0, 0),
        )
        for s in shortcuts
    ]
    last = "but" if doubted else "taken out"
    return example_table(("shortcut", "label", "stands", "texts", "of label", "put in", last), rows, 3, width)


def _taken_out(found: Shortcut) -> str:
    if found.doubt is not None:
        return DOUBTS[found.doubt]
    return f"{found.taken_out_changed:,}/{found.taken_out:,}" if found.taken_out else ""


def _deciding_table(found: GlobalExplanation, width: int) -> Table:
    rows = []
    for s in found.deciding:
        wrong = "" if s.wrong is None else f"{s.wrong:,}"
        cells = (named(s.text), named(s.label), f"{s.decided:,}", f"{s.holding:,}", f"{s.answers:,}", percent(s.share))
        rows.append((*map(Text, (*cells, wrong)), s.example))
    heads = ("word", "label", "decides", "in", "of answers", "share", "wrong")
    return example_table(heads, rows, 2, width)


def _term_table(label: LabelExplanation, width: int) -> Table:
    sides = (
        ("for", label.words_for),
        ("against", label.words_against),
        ("pairs for", label.pairs_for),
        ("pairs against", label.pairs_against),
    )
    rows = [
        (
            Text("" if i else side, style="dim"),
            Text(named(term.text)),
            coloured(term.evidence, 1),
            coloured(term.mean),
            Text(f"{term.count:,}"),
            term.example,
        )
        for side, terms in sides
        for i, term in enumerate(terms)
    ]
    return example_table(("", "token or pair", "evidence", "mean", "count"), rows, 2, width)
