"""Explanations as HTML: a fragment for notebooks, a page of its own for files.

Nothing runs and nothing is fetched: no script, no font, no picture. Texts are escaped, and what would be invisible or
would reorder what stands around it is made visible, one character for one. The sign of a token is told by the colour
and by the kind of its underline. The same explanation gives the same bytes.
"""

from collections.abc import Iterable, Sequence
from html import escape
from math import ceil
from typing import Final, NamedTuple
from unicodedata import category

import numpy as np
from numpy.typing import NDArray

from textcls.evidence import EvidenceReport, Example, Finding, LabelEvidence, marked
from textcls.explanation import Explanation, View
from textcls.parts import Part
from textcls.results import Prediction

# Rows of the table of tokens, bars of scores, tokens shown before the rest is folded away.
SHOWN_TOKENS: Final = 20
SHOWN_LABELS: Final = 8
UNFOLDED: Final = 300
# Beyond these a page of a long text would take megabytes.
MOST_TITLES: Final = 2_000
MOST_UNREAD: Final = 2_000
MOST_NAMED: Final = 12
LONGEST_NAME: Final = 60
LEVELS: Final = 9
_KINDS: Final = {"word": "word", "pair": "pair", "ngram": "piece"}

# Control characters but tab and line feed, what reorders its surroundings, and unpaired surrogates.
_INVISIBLE: Final = (
    {c: chr(0x2400 + c) for c in range(32) if c not in (9, 10)}
    | {127: "\u2421"}
    | dict.fromkeys(
        [*range(128, 160), *range(0x202A, 0x202F), *range(0x2066, 0x206A), *range(0xD800, 0xE000)], "\ufffd"
    )
)


def visible(text: str) -> str:
    """Return `text` as it may be shown: same length, without characters that steer, reorder or cannot be written."""
    return text.translate(_INVISIBLE)


def one_line(text: str) -> str:
    """Return `text` visible and without line breaks and tabs; same length."""
    return visible(text).replace("\n", " ").replace("\t", " ")


def named(text: str) -> str:
    """Return a token or label as it is named in a table: on one line, never blank, and cut where it is very long."""
    shown = one_line(text)
    if all(not c.isprintable() or category(c) == "Mn" for c in shown):
        # A joiner or a lone accent would leave nothing to see.
        shown = " ".join(f"U+{ord(c):04X}" for c in shown[:MOST_NAMED])
    return shown if len(shown) <= LONGEST_NAME else shown[: LONGEST_NAME - 1] + "\u2026"


def check_line(explanation: Explanation) -> str:
    """Return the sum check in one line."""
    error = explanation.completeness_error
    return "bias + tokens = logit, " + (f"to {error:.0e}" if error else "exactly")


def notes(explanation: Explanation, view: View, shown: int) -> list[str]:
    """Return what is to be said under a table of the `shown` strongest tokens: what it covers, what is unknown."""
    found = []
    if shown < len(view.values):
        share = view.share(view.strongest(shown))
        found.append(f"The {shown:,} tokens shown carry {share:.1%} of the evidence.")
    unknown = explanation.unknown
    if unknown:
        names = list(dict.fromkeys(named(token.text) for token in unknown))
        listed = ", ".join(names[:MOST_NAMED]) + (f" and {len(names) - MOST_NAMED:,} more" * (len(names) > MOST_NAMED))
        found.append(
            f"Unknown to the model: {listed} ({len(unknown):,} of {len(view.values):,} tokens, "
            f"{view.share(~explanation.known):.1%} of the evidence)."
        )
    return found


class PartRow(NamedTuple):
    """A part as it is listed."""

    name: str
    kind: str
    value: float


class PartTable(NamedTuple):
    """What the parts of a text say in a view.

    Attributes:
        rows: the strongest, strongest first.
        others: how many more there are.
        rest: what those say.
        total: what all say, which is what all tokens say.
        check: that they do, in one line.
    """

    rows: list[PartRow]
    others: int
    rest: float
    total: float
    check: str


def part_table(explanation: Explanation, view: View, parts: Sequence[Part], top: int) -> PartTable:
    """Return the `top` strongest parts of an explained text, and the sums."""
    rows = [[part.contributions[label] for label in explanation.labels] for part in parts]
    added = np.array(rows, np.float64).reshape(-1, len(explanation.labels))
    values = added @ view.direction
    order = np.argsort(-np.abs(values), kind="stable").tolist()
    shown = [
        PartRow(part_name(parts[i], explanation.text), _KINDS[parts[i].kind], float(values[i])) for i in order[:top]
    ]
    error = float(np.abs(added.sum(0) - explanation.contributions.sum(0, dtype=np.float64)).max())
    check = "parts = tokens, " + (f"to {error:.0e}" if error else "exactly")
    rest = float(values[order[top:]].sum())
    return PartTable(shown, len(order[top:]), rest, float(values.sum()), check)


def part_name(part: Part, text: str) -> str:
    """Return how a part of `text` is named in a table; a pair with the edge of the text shows the edge."""
    name = named(text[part.start : part.end])
    if part.edge is None:
        return name
    return f"\u27e8start\u27e9 {name}" if part.edge == "start" else f"{name} \u27e8end\u27e9"


def document(title: str, *fragments: str) -> str:
    """Return a page of its own that shows the fragments."""
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        # Whatever a text holds, a browser will neither run nor fetch anything.
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{_text(title)}</title>\n<style>{_PAGE_STYLE}</style>\n</head>\n<body>\n"
        + "\n".join(fragments)
        + "\n</body>\n</html>\n"
    )


def prediction_fragment(
    prediction: Prediction,
    *,
    label: str | None = None,
    against: str | None = None,
    top: int = SHOWN_TOKENS,
    parts: Sequence[Part] | None = None,
) -> str:
    """Return an answer, with its explanation if it has one. The arguments are those of `explanation_fragment`."""
    remarks = [prediction.reason] if prediction.reason else []
    if prediction.truncated:
        remarks.append("The text is longer than the model reads; the rest was cut.")
    found = [_scores(prediction.label_names, prediction.probabilities)]
    found += [f'<p class="remark">{_text(remark)}</p>' for remark in remarks]
    if prediction.explanation is not None:
        found.append(_explanation(prediction.explanation, label, against, top, parts))
    return _fragment(found)


def explanation_fragment(
    explanation: Explanation,
    *,
    label: str | None = None,
    against: str | None = None,
    top: int = SHOWN_TOKENS,
    parts: Sequence[Part] | None = None,
) -> str:
    """Return an explanation.

    Args:
        explanation: what to show.
        label: the label spoken for; by default the most probable.
        against: the one label it is held against; by default all others.
        top: rows of the table of tokens, and of that of parts.
        parts: what `Classifier.parts` says of the text, to be shown folded away.

    Raises:
        ConfigError: there is no such label, both are the same, or `top` is negative.
    """
    scores = _scores(explanation.labels, explanation.probability_values)
    return _fragment([scores, _explanation(explanation, label, against, top, parts)])


def _fragment(parts: Iterable[str]) -> str:
    return f'<div class="textcls">\n<style>{_STYLE}</style>\n' + "\n".join(parts) + "\n</div>"


def _text(text: str) -> str:
    return escape(visible(text))


def _name(text: str) -> str:
    return f"<bdi>{escape(named(text))}</bdi>"


# Scores


def _scores(labels: Sequence[str], probabilities: NDArray[np.float32]) -> str:
    order = np.argsort(-probabilities, kind="stable").tolist()
    scores = probabilities.tolist()
    rows = [
        f'<tr{" class=first" if place == 0 else ""}><th scope="row">{_name(labels[i])}</th>'
        f'<td class="track"><i style="width:{100 * scores[i]:.1f}%"></i></td><td>{scores[i]:.1%}</td></tr>'
        for place, i in enumerate(order)
    ]
    shown = f'<table class="scores">{"".join(rows[:SHOWN_LABELS])}</table>'
    if len(rows) <= SHOWN_LABELS:
        return shown
    rest = f'<table class="scores">{"".join(rows[SHOWN_LABELS:])}</table>'
    return f"{shown}<details><summary>{len(rows) - SHOWN_LABELS:,} more labels</summary>{rest}</details>"


# The text and its tokens


def _explanation(
    explanation: Explanation, label: str | None, against: str | None, top: int, parts: Sequence[Part] | None
) -> str:
    view = explanation.view(label, against)
    # Beside what is explained, the numbers of the label that comes closest to it.
    other = against or (explanation.runner_up if view.label == explanation.label else explanation.label)
    rest = f" and not {_name(against)}" if against else ""
    found = [
        f"<h3>Why {_name(view.label)}{rest}</h3>",
        _tinted(explanation, view, other),
        _legend(explanation, view),
        _tables(explanation, view, other, top),
    ]
    if parts is not None:
        found.append(_parts(part_table(explanation, view, parts, top), view))
    if remarks := notes(explanation, view, top):
        found.append('<p class="note">' + "<br>".join(map(_text, remarks)) + "</p>")
    checked = "" if explanation.completeness_error < 1e-3 else " The parts do not add up: do not trust this split."
    found.append(
        f'<p class="note">Checked: {check_line(explanation)}.{checked} '
        "This is exact accounting of this model's answer, not a claim about causes.</p>"
    )
    return "\n".join(found)


def _levels(view: View) -> list[int]:
    """How strongly each token is tinted: 0, not at all, to LEVELS, signed."""
    strongest = float(np.abs(view.values).max(initial=0.0)) or 1.0
    shares = (view.values.astype(np.float64) / strongest).tolist()
    return [0 if abs(s) < 0.04 else ceil(abs(s) * LEVELS) * (1 if s > 0 else -1) for s in shares]


def _tinted(explanation: Explanation, view: View, other: str | None) -> str:
    text, spans = visible(explanation.text), explanation.spans
    marks = _marks(explanation, view, other)
    pieces, place = [], 0
    for (start, end), mark in zip(spans, marks, strict=True):
        token = escape(text[start:end])
        pieces.append(escape(text[place:start]) + (f"<span{mark}>{token}</span>" if mark else token))
        place = end
    head, rest = "".join(pieces[:UNFOLDED]), "".join(pieces[UNFOLDED:])
    found = f'<div class="text" dir="auto">{head}{"" if rest else _unread(text[place:])}</div>'
    if not rest:
        return found
    share = view.share(np.arange(UNFOLDED, len(spans)))
    summary = f"{len(spans) - UNFOLDED:,} more tokens, {share:.1%} of the evidence"
    return (
        f"{found}<details><summary>{summary}</summary>"
        f'<div class="text" dir="auto">{rest}{_unread(text[place:])}</div></details>'
    )


def _unread(text: str) -> str:
    """What stands behind the last token that was read: white space, or what was cut."""
    if not text.strip():
        return escape(text)
    cut = f"\u2026 ({len(text) - MOST_UNREAD:,} more characters)" if len(text) > MOST_UNREAD else ""
    return f'<span class="unread" title="not read by the model">{escape(text[:MOST_UNREAD])}{cut}</span>'


def _marks(explanation: Explanation, view: View, other: str | None) -> list[str]:
    """The attributes of each token: its tint, and its numbers as a title."""
    columns = [explanation.labels.index(name) for name in (view.label, other) if name is not None]
    names = [named(explanation.labels[i]) for i in columns]
    kind = "difference" if view.against else "evidence"
    told = set(view.strongest(MOST_TITLES).tolist())
    rows = zip(
        _levels(view),
        view.values.tolist(),
        explanation.contributions[:, columns].tolist(),
        explanation.attention.tolist(),
        explanation.known.tolist(),
        strict=True,
    )
    marks = []
    for i, (level, value, added, attention, known) in enumerate(rows):
        kinds = [f"{'p' if level > 0 else 'n'}{abs(level)}"] * bool(level) + ["unknown"] * (not known)
        mark = f' class="{" ".join(kinds)}"' if kinds else ""
        if i in told:
            numbers = "; ".join(f"{name} {part:+.3f}" for name, part in zip(names, added, strict=True))
            title = f"{kind} {value:+.3f}; {numbers}; attention {attention:.3f}"
            mark += f' title="{escape(title + ("" if known else "; unknown to the model"))}"'
        marks.append(mark)
    return marks


def _legend(explanation: Explanation, view: View) -> str:
    against = f"for {_name(view.against)}" if view.against else "against it"
    unknown = '<span><b class="unknown">word</b> unknown to the model</span>' if explanation.unknown else ""
    return (
        f'<p class="legend"><span><b class="p7">word</b> speaks for {_name(view.label)}</span>'
        f'<span><b class="n7">word</b> speaks {against}</span>{unknown}</p>'
    )


def _tables(explanation: Explanation, view: View, other: str | None, top: int) -> str:
    count = len(view.values)
    order = view.strongest(top).tolist()
    found = _table(explanation, view, other, order)
    if len(order) == count:
        return found
    # A page of a long text would take megabytes otherwise; the strongest tell nearly all.
    every = sorted(view.strongest(MOST_TITLES).tolist())
    what = f"All {count:,} tokens" if len(every) == count else f"The {len(every):,} strongest of {count:,} tokens"
    return (
        f"{found}<details><summary>{what} in reading order</summary>{_table(explanation, view, other, every)}</details>"
    )


def _table(explanation: Explanation, view: View, other: str | None, order: list[int]) -> str:
    names = [view.label] + [other] * (other is not None)
    columns = [explanation.labels.index(name) for name in names if name is not None]
    strongest = float(np.abs(view.values).max(initial=0.0)) or 1.0
    kind = "difference" if view.against else "evidence"
    heads = "".join(f'<th scope="col">{_name(explanation.labels[i])}</th>' for i in columns)
    rows = [
        f'<tr><th scope="col">token</th><th scope="col" colspan="2">{kind}</th>{heads}'
        '<th scope="col">attention</th></tr>'
    ]
    added, text = explanation.contributions[:, columns], explanation.text
    for i in order:
        start, end = explanation.spans[i]
        value = float(view.values[i])
        known = bool(explanation.known[i])
        token = _name(text[start:end]) if known else f'<span class="unknown">{_name(text[start:end])}</span>'
        rows.append(
            f'<tr><th scope="row">{token}</th>{_bar(value / strongest)}{_cells([value, *added[i].tolist()])}'
            f"<td>{float(explanation.attention[i]):.3f}</td></tr>"
        )
    rest = np.ones(len(view.values), bool)
    rest[order] = False
    if rest.any():
        sums = [float(view.values[rest].sum()), *added[rest].sum(0).tolist()]
        rows.append(_sum_row(f"{int(rest.sum()):,} others", sums))
    rows.append(_sum_row("bias", [view.bias, *explanation.bias_values[columns].tolist()]))
    rows.append(_sum_row("= logit", [view.total, *explanation.logit_values[columns].tolist()], ' class="total"'))
    return f'<div class="wide"><table class="tokens">{"".join(rows)}</table></div>'


def _parts(table: PartTable, view: View) -> str:
    strongest = max((abs(row.value) for row in table.rows), default=0.0) or 1.0
    kind = "difference" if view.against else "evidence"
    rows = [f'<tr><th scope="col">part</th><th scope="col" colspan="2">{kind}</th><th scope="col">kind</th></tr>']
    rows += [
        f'<tr><th scope="row"><bdi>{escape(row.name)}</bdi></th>{_bar(row.value / strongest)}{_cells([row.value])}'
        f"<td>{row.kind}</td></tr>"
        for row in table.rows
    ]
    if table.others:
        rows.append(_sum_row(f"{table.others:,} others", [table.rest]))
    rows.append(_sum_row("= tokens", [table.total], ' class="total"'))
    return (
        "<details><summary>Words, pairs of words, and pieces of unknown words</summary>"
        f'<div class="wide"><table class="tokens">{"".join(rows)}</table></div>'
        f'<p class="note">Checked: {table.check}.</p></details>'
    )


def _bar(share: float, middle: int = 50) -> str:
    """A bar of this share of the room: from the middle to the right for, to the left against; from 0 always right."""
    width = (100 - middle) * min(1.0, abs(share))
    side = "left" if share >= 0 or not middle else "right"
    kind = "p" if share >= 0 else "n"
    return f'<td class="bar"><i class="{kind} {side}" style="{side}:{middle}%;width:{width:.1f}%"></i></td>'


def _cells(values: Iterable[float]) -> str:
    return "".join(f"<td>{value:+.3f}</td>" for value in values)


def _sum_row(name: str, values: Iterable[float], kind: str = ' class="sum"') -> str:
    return f'<tr{kind}><th scope="row">{name}</th><td></td>{_cells(values)}<td></td></tr>'


# What a model goes by


def summary_line(report: EvidenceReport) -> str:
    """Return how much a report rests on, in one line."""
    said = f"{report.texts:,} texts, {report.tokens:,} tokens"
    if report.labelled:
        said += f", {report.right / report.labelled:.2%} answered right"
        said += "" if report.labelled == report.texts else f" of {report.labelled:,} labelled"
    dropped = f" {report.dropped:,} rare words and pairs were dropped to bound memory." if report.dropped else ""
    return f"{said}.{dropped}"


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
    parts = [f"<h2>{_text(title)}</h2>", f"<p>{_text(summary_line(report))}</p>", _shortcuts(report)]
    for label in told_labels(report):
        sides = (
            (f"Words for {_name(label.label)}", label.words_for),
            ("Words against", label.words_against),
            (f"Pairs for {_name(label.label)}", label.pairs_for),
            ("Pairs against", label.pairs_against),
        )
        found = "".join(_findings(head, findings) for head, findings in sides)
        parts.append(
            f"<details open><summary><b>{_name(label.label)}</b> {label.answers:,} answers</summary>"
            f'<div class="wide"><table class="findings">{found}</table></div></details>'
        )
    if report.mirrored:
        parts.append(f"<p>{_text(mirror_line(report))}</p>")
    parts.append(
        '<p class="note">Evidence is what a word added for the label against all others, in logits, summed over all '
        "texts; the mean is that of one occurrence. Exact accounting of this model's answers, not a claim about "
        "causes.</p>"
    )
    return _fragment(parts)


def _shortcuts(report: EvidenceReport) -> str:
    if not report.shortcuts:
        return "<p>No shortcuts: no word alone decides more than a tenth of a label's answers.</p>"
    heads = '<th scope="col">word</th><th scope="col" class="left">label</th>'
    heads += "".join(f'<th scope="col">{head}</th>' for head in ("decides", "share", "wrong", "example"))
    rows = [
        f'<tr><th scope="row">{_name(s.text)}</th><td class="left">{_name(s.label)}</td>'
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
        f'<tr><th scope="row">{_name(f.text)}</th>{_bar(f.evidence / strongest, 0)}<td>{f.evidence:+,.1f}</td>'
        f"<td>{f.mean:+.3f}</td><td>{f.count:,}</td>{_example(f.example)}</tr>"
        for f in findings
    )


def _example(example: Example) -> str:
    before, meant, behind = (escape(one_line(part)) for part in marked(example))
    return f'<td class="example" dir="auto">{before}<mark>{meant}</mark>{behind}</td>'


# Looks

_PAGE_STYLE: Final = (
    "body{margin:0;background:#fff}.textcls{max-width:56rem;margin:0 auto!important;padding:2rem 1.25rem!important}"
    "@media(prefers-color-scheme:dark){body{background:#15171c}}"
)


def _tints() -> str:
    """The tint and the underline of each strength, for and against."""
    rules = []
    for level in range(1, LEVELS + 1):
        alpha, thickness = 0.05 + 0.05 * level, 1 if level < 4 else 2
        rules += [
            f".textcls .{sign}{level}{{background:rgb(var(--{sign})/{alpha:.2f});"
            f"text-decoration:underline {style} {thickness}px rgb(var(--{sign}))}}"
            for sign, style in (("p", "solid"), ("n", "wavy"))
        ]
    return "".join(rules)


# Its own ground and ink, since a notebook may be dark where the system is light.
_STYLE: Final = (
    ".textcls{--ink:#1c1e21;--faint:#626873;--line:#d9dce1;--ground:#fff;--track:#eceef1;--p:29 100 220;--n:209 84 0;"
    "color-scheme:light dark;background:var(--ground);color:var(--ink);padding:.75rem;"
    "font:15px/1.5 system-ui,-apple-system,'Segoe UI',Roboto,'Noto Sans',sans-serif;overflow-wrap:anywhere}"
    "@media(prefers-color-scheme:dark){.textcls{--ink:#e4e6ea;--faint:#9aa1ad;--line:#363a43;--ground:#15171c;"
    "--track:#262a32;--p:96 160 255;--n:255 146 60}}"
    ".textcls h2{font-size:1.35rem;margin:2rem 0 .5rem}.textcls h3{font-size:1.1rem;margin:1.5rem 0 .5rem}"
    ".textcls .text{white-space:pre-wrap;font-size:1.1em;line-height:2;border:1px solid var(--line);"
    "border-radius:6px;padding:.6rem .9rem}"
    ".textcls .text span,.textcls .legend b{border-radius:3px;padding:.1em 0;text-underline-offset:.25em;"
    "text-decoration-skip-ink:none}"
    ".textcls .unknown{outline:1.5px dotted var(--ink);outline-offset:1px;border-radius:2px}"
    ".textcls .unread{color:var(--faint);font-style:italic}"
    ".textcls .legend,.textcls .note{color:var(--faint);font-size:.87em;margin:.6rem 0}"
    ".textcls .legend span{margin-right:1.5em;white-space:nowrap}"
    ".textcls .legend b{color:var(--ink);font-weight:400;padding:.1em .25em;margin-right:.2em}"
    ".textcls .remark{border-left:3px solid rgb(var(--n));padding:.1rem .75rem;margin:.75rem 0}"
    ".textcls table{border-collapse:collapse;background:none;color:inherit;font-size:.93em;margin:0}"
    ".textcls th,.textcls td{border:0;padding:.16rem .7rem .16rem 0;text-align:right;background:none;"
    "font-variant-numeric:tabular-nums;white-space:nowrap}"
    ".textcls th{font-weight:400;text-align:left}.textcls th[scope=col]{color:var(--faint);text-align:right}"
    ".textcls th[scope=col]:first-child{text-align:left}"
    ".textcls tr:nth-child(odd),.textcls tr:nth-child(even){background:none}"
    ".textcls .scores{width:100%;max-width:34rem}.textcls .scores th{width:1%}.textcls .scores td:last-child{width:4em}"
    ".textcls .track i{display:block;height:.6em;min-width:1px;border-radius:3px;background:var(--faint);opacity:.55}"
    ".textcls .first .track i{background:rgb(var(--p));opacity:1}.textcls .first th,.textcls .first td{font-weight:600}"
    ".textcls .wide{overflow-x:auto;margin:.75rem -3px;padding:0 3px}.textcls .tokens{width:100%;max-width:48rem}"
    ".textcls .tokens th[scope=row]{width:1%;max-width:18rem;overflow-wrap:anywhere;white-space:normal;min-width:7rem}"
    ".textcls .bar{position:relative;min-width:9rem;padding:0}.textcls .tokens td{padding:.16rem 0 .16rem 1.1rem}"
    ".textcls .tokens th[scope=col]{padding-right:0;padding-left:1.1rem}"
    ".textcls .tokens th[scope=col]:first-child{padding-left:0}"
    ".textcls .bar::after{content:'';position:absolute;left:50%;top:0;bottom:0;border-left:1px solid var(--line)}"
    ".textcls .bar i{position:absolute;top:.42em;height:.75em}"
    ".textcls .bar .p{background:rgb(var(--p))}.textcls .bar .n{background:rgb(var(--n))}"
    ".textcls .bar .left{border-radius:0 3px 3px 0}.textcls .bar .right{border-radius:3px 0 0 3px}"
    ".textcls .findings .bar::after{left:0}"
    ".textcls .findings{width:100%}.textcls .findings .bar{min-width:6rem}.textcls .findings td{padding-left:.7rem}"
    ".textcls .findings .head th{padding-top:.9rem}.textcls .findings .bar{padding:0}"
    ".textcls .findings .left{text-align:left;padding-left:0}"
    ".textcls .findings .example,.textcls .findings th[scope=col]:last-child{text-align:start;padding-left:1.2rem}"
    ".textcls .example{max-width:28rem;overflow:hidden;text-overflow:ellipsis;color:var(--faint)}"
    ".textcls .example mark{background:var(--track);color:var(--ink);border-radius:3px;padding:0 .15em}"
    ".textcls .remark h3{margin:.5rem 0 .25rem}.textcls summary b{color:var(--ink);font-size:1.15em}"
    ".textcls .sum th,.textcls .sum td{color:var(--faint)}"
    ".textcls .total th,.textcls .total td{font-weight:600;border-top:1px solid var(--line)}"
    ".textcls details{margin:.5rem 0}.textcls summary{cursor:pointer;color:var(--faint);font-size:.9em}" + _tints()
)
