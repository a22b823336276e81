"""The parts of a report page that are specific to a model with one label per text."""

from collections.abc import Sequence
from html import escape
from typing import Final

from textcls.display.html import charts
from textcls.display.html.charts import Axes, Point
from textcls.display.html.fragments import bar, name
from textcls.display.html.global_explanation import example
from textcls.display.html.report_parts import Parts, folded, plain_table, quoted, reliability, table
from textcls.display.report_lines import (
    AIMS,
    CONFUSIONS,
    LEVELS,
    aims,
    chosen_note,
    cost_line,
    interval,
    levels,
    levels_notes,
    worst_first,
)
from textcls.display.text import named, percent
from textcls.evaluation.intervals import CONFIDENCE, share
from textcls.evaluation.reporting.abstention import Abstention
from textcls.evaluation.reporting.errors import ErrorGroup, SureError
from textcls.evaluation.reporting.one_label import OneLabelModelReport

# With more labels the confusions are a list instead of a matrix, with this many of them.
MATRIX: Final = 20


def one_label_parts(found: OneLabelModelReport) -> Parts:
    """Return these parts."""
    drawn = f"{_reliability(found)}{_coverage(found.abstention)}{_costs(found.abstention)}"
    return Parts(
        figures=_figures(found),
        labels=[_labels(found), _levels(found), _confusions(found)],
        confidence_heading="Confidence, and what to leave to people",
        confidence=[f'<div class="charts">{drawn}</div>', _targets(found.abstention)],
        errors=[_groups(found.errors), _surest(found.surest_errors)],
    )


def _figures(found: OneLabelModelReport) -> list[tuple[str, str, str]]:
    cheapest = found.abstention.cheapest
    return [
        (percent(found.accuracy.value), "accuracy", interval(found.accuracy)),
        (percent(found.macro_f1.value), "macro-F1", interval(found.macro_f1)),
        (f"{found.scores.ece:.3f}", "calibration error", "0 is perfect"),
        (percent(cheapest.coverage), "answered at the lowest cost", f"threshold {cheapest.threshold:.9g}"),
    ]


def _labels(found: OneLabelModelReport) -> str:
    labels = found.scores.labels
    rows = [
        f'<tr><th scope="row">{name(label.label)}</th>{bar(label.f1, 0)}<td>{f1}</td><td>{between}</td>'
        f"<td>{percent(label.precision)}</td><td>{recall}</td><td>{label.rows:,}</td></tr>"
        for label, (f1, between, recall) in worst_first(labels, found.label_f1)
    ]
    heads = [("label", ""), ("", ""), ("F1", ""), (f"{percent(CONFIDENCE, 0)} interval", "")]
    heads += [(text, "number") for text in ("precision", "recall", "rows")]
    return folded(heads, rows, sum(not label.rows for label in labels))


def _levels(found: OneLabelModelReport) -> str:
    if found.paths is None:
        return ""
    notes = "<br>".join(map(escape, levels_notes(found.paths)))
    return f'<h3>Levels</h3>{plain_table(LEVELS, levels(found.paths))}<p class="note">{notes}</p>'


def _confusions(found: OneLabelModelReport) -> str:
    names = [label.label for label in found.scores.labels]
    if len(names) > MATRIX:
        rows = [
            f'<tr><th scope="row">{name(right)}</th><td class="said">{name(answer)}</td><td>{count:,}</td></tr>'
            for right, answer, count in found.confusions[:CONFUSIONS]
        ]
        return "<h3>Most frequent confusions</h3>" + table(
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
    return "<h3>Confusions</h3>" + table(heads, rows, "matrix")


# Confidence


def _reliability(found: OneLabelModelReport) -> str:
    caption = "Answers of about the same score, and how many are right. On the line, scores are what they promise."
    return reliability(found.scores.reliability, Axes("score", "answered right"), caption, "row", "right")


def _coverage(found: Abstention) -> str:
    points = []
    for point in found.points:
        if point.accepted:
            right = share(point.right, point.accepted)
            title = f"threshold {point.threshold:.9g}: {percent(point.coverage)} answered, {percent(right.value)} right"
            points.append(Point(point.coverage, right.value, right.low, right.high, 2, title))
    bottom = 0.2 * int(5 * min((point.low or 0.0 for point in points), default=0.0))
    axes = Axes("rows answered, the surest first", "of these right", y_range=(bottom, 1.0))
    caption = "The fewer rows it answers, the more often it is right."
    return charts.figure("What if it may abstain?", caption, axes, charts.curve(axes, points))


def _costs(found: Abstention) -> str:
    of = found.costs.of
    points = [
        Point(point.threshold, of(point), title=f"threshold {point.threshold:.9g}: {of(point):.2f} a row")
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
    return f'{plain_table(AIMS, aims(found))}<p class="note">{chosen_note(found)}</p>'


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
        "where the answer is wrong, over all others where it is right.</p>" + table(heads, rows)
    )


def _surest(found: Sequence[SureError]) -> str:
    if not found:
        return "<p>No answer is wrong.</p>"
    rows = [
        f"<tr><td>{percent(error.confidence)}</td><td class='said'>{name(error.answered)}</td>"
        f'<td class="said">{name(error.right)}</td><td class="several">{", ".join(map(name, error.words))}</td>'
        f"{quoted(error.text, error.place)}</tr>"
        for error in found
    ]
    heads = [("score", ""), ("answered", "said"), ("label", "said"), ("because of", "said"), ("text", "said")]
    return (
        '<h3>Surest errors</h3><p class="note">Where the model is sure and the label says otherwise, one of the two is '
        "wrong: look at the labels first.</p>" + table(heads, rows)
    )
