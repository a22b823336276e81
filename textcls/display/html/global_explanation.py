"""A global explanation, what a model goes by over many texts, as a fragment."""

from collections.abc import Sequence
from html import escape

from textcls.display.html.fragments import bar, fragment, name, shown
from textcls.display.remarks import labels_shown, mirror_line, no_shortcut_line, summary_line
from textcls.display.text import one_line, percent, signed
from textcls.global_explanation.excerpts import Excerpt, marked
from textcls.global_explanation.summary import GlobalExplanation, TermAttribution


def global_explanation_fragment(title: str, report: GlobalExplanation) -> str:
    """Return what a model goes by: shortcuts, then what speaks for and against each label."""
    parts = [f"<h2>{shown(title)}</h2>", f"<p>{shown(summary_line(report))}</p>", _shortcuts(report)]
    for label in labels_shown(report):
        sides = (
            (f"Words for {name(label.label)}", label.words_for),
            ("Words against", label.words_against),
            (f"Pairs for {name(label.label)}", label.pairs_for),
            ("Pairs against", label.pairs_against),
        )
        found = "".join(_terms(head, terms) for head, terms in sides)
        parts.append(
            f"<details open><summary><b>{name(label.label)}</b> {label.answers:,} answers</summary>"
            f'<div class="wide"><table class="findings">{found}</table></div></details>'
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


def _shortcuts(report: GlobalExplanation) -> str:
    if not report.shortcuts:
        return f"<p>{shown(no_shortcut_line(report))}</p>"
    heads = '<th scope="col">word</th><th scope="col" class="left">label</th>'
    heads += "".join(f'<th scope="col">{head}</th>' for head in ("decides", "share", "wrong", "example"))
    rows = [
        f'<tr><th scope="row">{name(s.text)}</th><td class="left">{name(s.label)}</td>'
        f"<td>{s.decided:,} of {s.answers:,}</td><td>{percent(s.share)}</td>"
        f"<td>{'' if s.wrong is None else format(s.wrong, ',')}</td>{_example(s.example)}</tr>"
        for s in report.shortcuts
    ]
    otherwise = "it would not have been assigned" if report.several else "another label would have been answered"
    return (
        '<div class="remark"><h3>Shortcuts</h3><p>Each of these words alone decides a large share of the answers of '
        f"its label: without what it contributed, {otherwise}.</p>"
        f'<div class="wide"><table class="findings"><tr>{heads}</tr>{"".join(rows)}</table>'
        "</div></div>"
    )


def _terms(head: str, terms: Sequence[TermAttribution]) -> str:
    if not terms:
        return ""
    strongest = max(abs(f.evidence) for f in terms)
    heads = (
        f'<tr class="head"><th scope="col">{head}</th><th scope="col" colspan="2">evidence</th>'
        '<th scope="col">mean</th><th scope="col">count</th><th scope="col">example</th></tr>'
    )
    return heads + "".join(
        f'<tr><th scope="row">{name(f.text)}</th>{bar(f.evidence / strongest, 0)}<td>{signed(f.evidence, 1)}</td>'
        f"<td>{signed(f.mean)}</td><td>{f.count:,}</td>{_example(f.example)}</tr>"
        for f in terms
    )


def _example(example: Excerpt) -> str:
    before, meant, behind = (escape(one_line(part)) for part in marked(example))
    return f'<td class="example" dir="auto">{before}<mark>{meant}</mark>{behind}</td>'
