"""What a model goes by, as a fragment."""

from collections.abc import Sequence
from html import escape

from textcls.evidence import EvidenceReport, Example, Finding, LabelEvidence, marked
from textcls.page.fragments import bar, fragment, name, shown
from textcls.page.text import named, one_line


def summary_line(report: EvidenceReport) -> str:
    """Return how much a report rests on, in one line."""
    said = f"{report.texts:,} texts, {report.tokens:,} tokens"
    if report.labelled:
        said += f", {report.right / report.labelled:.2%} answered right"
        said += "" if report.labelled == report.texts else f" of {report.labelled:,} labelled"
    dropped = f" {report.dropped:,} rare words and pairs were dropped to bound memory." if report.dropped else ""
    return f"{said}.{dropped}"


def no_shortcut_line(report: EvidenceReport) -> str:
    """Return what is to be said if a report has no shortcuts."""
    return f"No shortcuts: no word alone decides more than {100 * report.shortcut_share:g} % of a label's answers."


def told_labels(report: EvidenceReport) -> Sequence[LabelEvidence]:
    """Return the labels with something of their own to tell: what speaks for one of two speaks against the other."""
    return report.labels[:1] if report.mirrored else report.labels


def mirror_line(report: EvidenceReport) -> str:
    """Return what is to be said of the second of two labels."""
    first, second = report.labels
    return (
        f"{named(second.label)}, {second.answers:,} answers: "
        f"what speaks for {named(first.label)} speaks against it, and the other way round."
    )


def evidence_fragment(title: str, report: EvidenceReport) -> str:
    """Return what a model goes by: shortcuts, then what speaks for and against each label."""
    parts = [f"<h2>{shown(title)}</h2>", f"<p>{shown(summary_line(report))}</p>", _shortcuts(report)]
    for label in told_labels(report):
        sides = (
            (f"Words for {name(label.label)}", label.words_for),
            ("Words against", label.words_against),
            (f"Pairs for {name(label.label)}", label.pairs_for),
            ("Pairs against", label.pairs_against),
        )
        found = "".join(_findings(head, findings) for head, findings in sides)
        parts.append(
            f"<details open><summary><b>{name(label.label)}</b> {label.answers:,} answers</summary>"
            f'<div class="wide"><table class="findings">{found}</table></div></details>'
        )
    if report.mirrored:
        parts.append(f"<p>{shown(mirror_line(report))}</p>")
    parts.append(
        '<p class="note">Evidence is what a word added for the label against all others, in logits, summed over all '
        "texts; the mean is that of one occurrence. Exact accounting of this model's answers, not a claim about "
        "causes.</p>"
    )
    return fragment(parts)


def _shortcuts(report: EvidenceReport) -> str:
    if not report.shortcuts:
        return f"<p>{shown(no_shortcut_line(report))}</p>"
    heads = '<th scope="col">word</th><th scope="col" class="left">label</th>'
    heads += "".join(f'<th scope="col">{head}</th>' for head in ("decides", "share", "wrong", "example"))
    rows = [
        f'<tr><th scope="row">{name(s.text)}</th><td class="left">{name(s.label)}</td>'
        f"<td>{s.decided:,} of {s.answers:,}</td><td>{s.share:.1%}</td>"
        f"<td>{'' if s.wrong is None else format(s.wrong, ',')}</td>{_example(s.example)}</tr>"
        for s in report.shortcuts
    ]
    return (
        '<div class="remark"><h3>Shortcuts</h3><p>Each of these words alone decides a large share of the answers of '
        "its label: without what it contributed, another label would have been answered.</p>"
        f'<div class="wide"><table class="findings"><tr>{heads}</tr>{"".join(rows)}</table>'
        "</div></div>"
    )


def _findings(head: str, findings: Sequence[Finding]) -> str:
    if not findings:
        return ""
    strongest = max(abs(f.evidence) for f in findings)
    heads = (
        f'<tr class="head"><th scope="col">{head}</th><th scope="col" colspan="2">evidence</th>'
        '<th scope="col">mean</th><th scope="col">count</th><th scope="col">example</th></tr>'
    )
    return heads + "".join(
        f'<tr><th scope="row">{name(f.text)}</th>{bar(f.evidence / strongest, 0)}<td>{f.evidence:+,.1f}</td>'
        f"<td>{f.mean:+.3f}</td><td>{f.count:,}</td>{_example(f.example)}</tr>"
        for f in findings
    )


def _example(example: Example) -> str:
    before, meant, behind = (escape(one_line(part)) for part in marked(example))
    return f'<td class="example" dir="auto">{before}<mark>{meant}</mark>{behind}</td>'
