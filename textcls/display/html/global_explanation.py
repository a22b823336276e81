"""A global explanation, what a model relies on over many texts, as a fragment."""

from collections.abc import Sequence
from typing import Final

from textcls.display.html.fragments import bar, fragment, heads, name, shown, table, tables, with_mark
from textcls.display.remarks import (
    DOUBTS,
    POSSIBLE,
    labels_shown,
    mirror_line,
    nothing_decides_line,
    shortcut_lines,
    summary_line,
)
from textcls.display.text import percent, signed
from textcls.explain.global_explanation.summary import GlobalExplanation, TermAttribution
from textcls.explain.shortcuts.audit import Shortcut, ShortcutAudit
from textcls.model.excerpts import Excerpt

# This many labels are unfolded.
OPEN: Final = 8


def global_explanation_fragment(title: str, report: GlobalExplanation) -> str:
    """Return what a model relies on: shortcuts, then what speaks for and against each label."""
    parts = [f"<h2>{shown(title)}</h2>", f"<p>{shown(summary_line(report))}</p>"]
    parts += [f'<p class="remark">{shown(line)}</p>' for line in report.told_by]
    parts.append(_shortcuts(report.audit))
    parts.append(_deciding(report))
    for number, label in enumerate(labels_shown(report)):
        sides = (
            (f"Words for {name(label.label)}", label.words_for),
            ("Words against", label.words_against),
            (f"Pairs for {name(label.label)}", label.pairs_for),
            ("Pairs against", label.pairs_against),
        )
        parts.append(
            f"<details{' open' if number < OPEN else ''}><summary><b>{name(label.label)}</b> {label.answers:,} answers"
            f"</summary>{tables(_terms(head, terms) for head, terms in sides)}</details>"
        )
    against = "" if report.several else " against all others"
    if report.mirrored:
        parts.append(f"<p>{shown(mirror_line(report))}</p>")
    parts.append(
        f'<p class="note">Evidence is what a word added for the label{against}, in logits, summed over all '
        "texts; the mean is that of one occurrence. Exact accounting of this model's answers, not a claim about "
        "causes.</p>"
    )
    return fragment(parts)


def _shortcuts(audit: ShortcutAudit | None) -> str:
    content = "".join(f'<p class="note">{shown(line)}</p>' for line in shortcut_lines(audit))
    if audit is None:
        return content
    if audit.shortcuts:
        content = (
            '<div class="remark"><h3>Shortcuts</h3><p>What gives a label away without being part of what the texts '
            "say: how many texts of other labels get its label when it is put into them, and how many of its own get "
            f"another when it is taken out.</p>{_shortcut_table(audit.shortcuts)}{content}</div>"
        )
    if audit.possible:
        content += f"<details><summary>{POSSIBLE}</summary>{_shortcut_table(audit.possible)}</details>"
    return content


def _shortcut_table(shortcuts: Sequence[Shortcut]) -> str:
    last = "taken out" if shortcuts[0].doubt is None else "but"
    named = heads("shortcut") + heads("label", "stands", kind="left")
    named += heads("texts", "of label", "put in", last, "example")
    rows = [
        f'<tr><th scope="row">{name(s.text)}</th><td class="left">{name(s.label)}</td>'
        f'<td class="left">{"" if s.kind == "length" else s.place}</td><td>{s.texts:,}</td>'
        f"<td>{percent(s.of_label / s.texts)}</td><td>{s.put_in_changed:,} of {s.put_in:,}</td>"
        f"<td>{_taken_out(s)}</td>{'<td></td>' if s.example is None else example(s.example)}</tr>"
        for s in shortcuts
    ]
    return table(named, rows)


def _taken_out(found: Shortcut) -> str:
    if found.doubt is not None:
        return DOUBTS[found.doubt]
    return f"{found.taken_out_changed:,} of {found.taken_out:,}" if found.taken_out else ""


def _deciding(report: GlobalExplanation) -> str:
    if not report.deciding:
        return f"<p>{shown(nothing_decides_line(report))}</p>"
    named = heads("word") + heads("label", kind="left") + heads("decides", "share", "wrong", "example")
    rows = [
        f'<tr><th scope="row">{name(s.text)}</th><td class="left">{name(s.label)}</td>'
        f"<td>{s.decided:,} of {s.answers:,}</td><td>{percent(s.share)}</td>"
        f"<td>{'' if s.wrong is None else format(s.wrong, ',')}</td>{example(s.example)}</tr>"
        for s in report.deciding
    ]
    otherwise = "it would not have been assigned" if report.several else "another label would have been answered"
    return (
        '<div class="remark"><h3>What decides</h3><p>Each of these alone decides a large share of the '
        f"answers of its label: without what it contributed, {otherwise}.</p>"
        f"{table(named, rows)}</div>"
    )


def _terms(head: str, terms: Sequence[TermAttribution]) -> tuple[str, list[str]]:
    strongest = max((abs(f.evidence) for f in terms), default=1.0)
    return heads(head) + heads("evidence", columns=2) + heads("mean", "count", "example"), [
        f'<tr><th scope="row">{name(f.text)}</th>{bar(f.evidence / strongest, 0)}<td>{signed(f.evidence, 1)}</td>'
        f"<td>{signed(f.mean)}</td><td>{f.count:,}</td>{example(f.example)}</tr>"
        for f in terms
    ]


def example(found: Excerpt) -> str:
    """Return a cell with the context of a word, which is marked."""
    return f'<td class="example" dir="auto">{with_mark(found)}</td>'
