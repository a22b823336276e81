"""A report on a model as a page that a manager and an engineer both read: what matters in sentences, then all of it."""

from collections.abc import Iterable, Sequence
from html import escape
from typing import Final

from textcls.display.html import charts
from textcls.display.html.charts import Axes, Point
from textcls.display.html.fragments import bar, fragment, isolated, name, shown
from textcls.display.html.global_explanation import example, global_explanation_fragment
from textcls.display.report_lines import AIMS, CONFUSIONS, aims, cost_line, interval, no_weak_line, summary_lines
from textcls.display.text import named, percent, plural, short
from textcls.evaluation.intervals import CONFIDENCE, share
from textcls.reporting.abstention import Abstention
from textcls.reporting.errors import ErrorGroup, SureError
from textcls.reporting.report import ModelReport
from textcls.reporting.slices import Slice

# Of more labels the confusions are a list instead of a matrix, and of these so many are shown.
MATRIX: Final = 20
# So many labels, those of the lowest F1, stand before the others are folded away.
SHOWN_LABELS: Final = 25
# Characters of a text.
CHARACTERS: Final = 240

_STYLE: Final = (
    ".textcls .summary li{margin:.35rem 0}.textcls .matrix td{text-align:right;padding:.2rem .5rem}"
    ".textcls .matrix th[scope=col]{text-align:right;padding:.2rem .5rem}"
    ".textcls .figures{display:flex;flex-wrap:wrap;gap:.75rem;margin:1rem 0}"
    ".textcls .figures div{border:1px solid var(--line);border-radius:6px;padding:.6rem 1rem;flex:1 1 7.5rem}"
    ".textcls .figures b{display:block;font-size:1.6rem;line-height:1.2}.textcls .figures small{color:var(--faint)}"
    ".textcls .weak th,.textcls .weak td{font-weight:600}.textcls nav a{margin-right:1em;color:inherit}"
    ".textcls .quoted{white-space:normal;text-align:start;min-width:16rem;max-width:34rem}"
    ".textcls table.findings th[scope=col].number{text-align:right}"
    ".textcls .said,.textcls th[scope=col].said{text-align:start}.textcls th[scope=col].said{padding-left:.7rem}"
    ".textcls .kinds .bar{min-width:4rem}"
    ".textcls .several{text-align:start;white-space:normal;min-width:9rem}"
)
_SECTIONS: Final = {
    "labels": "Labels",
    "confidence": "Confidence, and what to leave to people",
    "errors": "Errors",
    "slices": "Kinds of rows",
    "reasons": "What it goes by",
}


def report_fragments(title: str, found: ModelReport) -> list[str]:
    """Return the parts of the page."""
    links = "".join(f'<a href="#{id_}">{escape(text)}</a>' for id_, text in _SECTIONS.items())
    lines = "".join(f"<li>{shown(line)}</li>" for line in summary_lines(found))
    parts = [
        f"<style>{_STYLE}{charts.STYLE}</style><h2>{shown(title)}</h2>",
        _figures(found),
        f'<ul class="summary">{lines}</ul>',
        f'<nav class="note">{links}</nav>',
        _heading("labels"),
        _labels(found),
        _confusions(found),
        _heading("confidence"),
        f'<div class="charts">{_reliability(found)}{_coverage(found.abstention)}{_costs(found.abstention)}</div>',
        _targets(found.abstention),
        _heading("errors"),
        _groups(found.errors),
        _surest(found.surest_errors),
        _heading("slices"),
        _slices(found),
        '<a id="reasons"></a>',
    ]
    return [fragment(parts), global_explanation_fragment(_SECTIONS["reasons"], found.evidence)]


def _heading(section: str) -> str:
    return f'<h2 id="{section}">{escape(_SECTIONS[section])}</h2>'


def _table(heads: Sequence[tuple[str, str]], rows: Iterable[str], kind: str = "findings") -> str:
    """Return a table; of each head its text and its class."""
    head = "".join(f'<th scope="col" class="{kind}">{escape(text)}</th>' for text, kind in heads)
    return f'<div class="wide"><table class="{kind}"><tr>{head}</tr>{"".join(rows)}</table></div>'


# Figures


def _figures(found: ModelReport) -> str:
    cheapest, training = found.abstention.cheapest, found.model.info.training
    boxes = [
        (percent(found.accuracy.value), "accuracy", interval(found.accuracy)),
        (percent(found.macro_f1.value), "macro-F1", interval(found.macro_f1)),
        (f"{found.scores.ece:.3f}", "calibration error", "0 is perfect"),
        (percent(cheapest.coverage), "answered at the lowest cost", f"threshold {cheapest.threshold:.3g}"),
        (f"{found.rows:,}", "rows", f"trained on {training.get('rows', 0):,}"),
    ]
    return (
        '<div class="figures">'
        + "".join(
            f"<div><b>{escape(value)}</b>{escape(what)}<br><small>{escape(more)}</small></div>"
            for value, what, more in boxes
        )
        + "</div>"
    )


def _labels(found: ModelReport) -> str:
    labels = zip(found.scores.labels, found.label_f1, strict=True)
    rows = [
        f'<tr><th scope="row">{name(label.label)}</th>{bar(label.f1, 0)}<td>{percent(label.f1)}</td>'
        f"<td>{interval(f1)}</td><td>{percent(label.precision)}</td><td>{percent(label.recall)}</td><td>{label.rows:,}</td></tr>"
        for label, f1 in sorted(labels, key=lambda pair: pair[0].f1)
    ]
    heads = [("label", ""), ("", ""), ("F1", ""), (f"{percent(CONFIDENCE, 0)} interval", "")]
    heads += [(text, "number") for text in ("precision", "recall", "rows")]
    shown = _table(heads, rows[:SHOWN_LABELS])
    if len(rows) <= SHOWN_LABELS:
        return shown
    more = f"<summary>{len(rows) - SHOWN_LABELS:,} more labels, of higher F1</summary>"
    return f"{shown}<details>{more}{_table(heads, rows[SHOWN_LABELS:])}</details>"


def _confusions(found: ModelReport) -> str:
    names = [label.label for label in found.scores.labels]
    if len(names) > MATRIX:
        rows = [
            f'<tr><th scope="row">{name(right)}</th><td class="said">{name(answer)}</td><td>{count:,}</td></tr>'
            for right, answer, count in found.confusions[:CONFUSIONS]
        ]
        return "<h3>Most frequent confusions</h3>" + _table(
            [("right", ""), ("answered", "said"), ("rows", "number")], rows
        )
    rows = []
    for right, counts in zip(names, found.scores.confusion, strict=True):
        total = max(1, sum(counts))
        cells = "".join(
            f'<td style="background:rgb(var(--{"p" if answer == right else "n"})/{count / total:.2f})">'
            f"{count or ''}</td>"
            for answer, count in zip(names, counts, strict=True)
        )
        rows.append(f'<tr><th scope="row">{name(right)}</th>{cells}</tr>')
    heads = [("right \\ answered", ""), *((named(text), "") for text in names)]
    return "<h3>Confusions</h3>" + _table(heads, rows, "matrix")


# Confidence


def _reliability(found: ModelReport) -> str:
    axes = Axes("score", "answered right")
    largest = max(each.rows for each in found.reliability)
    points = []
    for each in found.reliability:
        right = share(each.right, each.rows)
        said = f"score {percent(each.confidence)}: {percent(right.value)} of {plural(each.rows, 'row')} right"
        points.append(
            Point(each.confidence, right.value, right.low, right.high, 2 + 5 * (each.rows / largest) ** 0.5, said)
        )
    caption = "Answers of about the same score, and how many are right. On the line, scores are what they promise."
    return charts.figure("Can its scores be trusted?", caption, axes, charts.diagonal(axes), charts.dots(axes, points))


def _coverage(found: Abstention) -> str:
    points = []
    for point in found.points:
        if point.accepted:
            right = share(point.right, point.accepted)
            said = f"threshold {point.threshold:.3g}: {percent(point.coverage)} answered, {percent(right.value)} right"
            points.append(Point(point.coverage, right.value, right.low, right.high, 2, said))
    bottom = 0.2 * int(5 * min((point.low or 0.0 for point in points), default=0.0))
    axes = Axes("rows answered, the surest first", "of these right", y_range=(bottom, 1.0))
    caption = "The fewer rows it answers, the more often it is right."
    return charts.figure("What if it may abstain?", caption, axes, charts.curve(axes, points))


def _costs(found: Abstention) -> str:
    of = found.costs.of
    points = [
        Point(point.threshold, of(point), title=f"threshold {point.threshold:.3g}: {of(point):.2f} a row")
        for point in reversed(found.points)
    ]
    top = max(*(point.y for point in points), found.costs.abstention, 1e-9) * 1.05
    axes = Axes("threshold", "cost a row", y_range=(0.0, top), y_shares=False, x_shares=False)
    best = Point(found.cheapest.threshold, of(found.cheapest), size=5, title=f"{of(found.cheapest):.2f} a row")
    drawn = charts.curve(axes, points), charts.level(axes, found.costs.abstention), charts.dots(axes, [best], "mark")
    return charts.figure(
        "What does it cost?", f"{cost_line(found)} The dashed line is to answer nothing.", axes, *drawn
    )


def _targets(found: Abstention) -> str:
    rows = [
        f'<tr><th scope="row">{escape(what)}</th>' + "".join(f"<td>{escape(cell)}</td>" for cell in cells) + "</tr>"
        for what, *cells in aims(found)
    ]
    note = "Thresholds were chosen on these rows: check one on others before you rely on it."
    return _table([(head, "number" if i else "") for i, head in enumerate(AIMS)], rows) + f'<p class="note">{note}</p>'


# Errors


def _groups(found: Sequence[ErrorGroup]) -> str:
    if not found:
        return "<p>No word stands behind several errors.</p>"
    rows = [
        f'<tr><th scope="row">{name(group.word)}</th><td class="said">{name(group.answered)}</td>'
        f'<td>{group.errors:,}</td><td>{group.right:,}</td><td class="several">'
        + ", ".join(f"{name(label)} {count:,}" for label, count in group.of)
        + f"</td>{example(group.examples[0])}</tr>"
        for group in found
    ]
    heads = [
        ("word", ""),
        ("leads to", "said"),
        ("wrongly", ""),
        ("rightly", ""),
        ("which are", "said"),
        ("example", ""),
    ]
    return (
        '<h3>Words behind errors</h3><p class="note">The word that speaks most for the answer: over the right label '
        "where the answer is wrong, over all others where it is right.</p>" + _table(heads, rows)
    )


def _surest(found: Sequence[SureError]) -> str:
    if not found:
        return "<p>No answer is wrong.</p>"
    rows = [
        f"<tr><td>{percent(error.confidence)}</td><td class='said'>{name(error.answered)}</td>"
        f'<td class="said">{name(error.right)}</td><td class="several">{", ".join(map(name, error.words))}</td>'
        f'<td class="quoted" dir="auto">{isolated(short(error.text, CHARACTERS))}</td></tr>'
        for error in found
    ]
    heads = [("score", ""), ("answered", "said"), ("label", "said"), ("because of", "said"), ("text", "said")]
    return (
        '<h3>Surest errors</h3><p class="note">Where the model is sure and the label says otherwise, one of the two is '
        "wrong: look at the labels first.</p>" + _table(heads, rows)
    )


# Kinds of rows


def _slices(found: ModelReport) -> str:
    if not found.slices:
        return "<p>There are too few rows to tell kinds of them apart.</p>"
    rows = [
        f'<tr{" class=weak" if one.weak else ""}><th scope="row">{name(one.kind)}</th>'
        f'<td class="said">{name(one.name)}</td>'
        f"{bar(one.accuracy.value, 0)}<td>{percent(one.accuracy.value)}</td><td>{interval(one.accuracy)}</td>"
        f'<td>{percent(one.others)}</td><td>{one.rows:,}</td><td class="said">{_verdict(one)}</td></tr>'
        for one in found.slices
    ]
    heads = [("by", ""), ("rows", "said"), ("", ""), ("accuracy", ""), (f"{percent(CONFIDENCE, 0)} interval", "")]
    heads += [("all others", ""), ("how many", ""), ("", "said")]
    none = "" if found.weak_slices else f"<p>{escape(no_weak_line(found))}</p>"
    note = "Weaker means by more than chance: Fisher's exact test against all other rows, with Holm's correction."
    return (
        none
        + _table(heads, rows, "findings kinds")
        + f'<p class="note">{escape(note)} Scripts are told by letters; languages are not.</p>'
    )


def _verdict(one: Slice) -> str:
    return "weaker" if one.weak else ""
