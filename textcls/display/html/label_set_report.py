"""The parts of a report page that are specific to a model that may give a text several labels."""

from collections.abc import Sequence
from typing import Final

from textcls.display.html import charts
from textcls.display.html.charts import Axes, Point
from textcls.display.html.fragments import bar, name, shown
from textcls.display.html.global_explanation import example
from textcls.display.html.report_parts import Parts, folded, plain_table, quoted, reliability, table
from textcls.display.report_lines import (
    CONFUSIONS,
    LABEL_AIMS,
    aims_notes,
    instead_of,
    interval,
    label_aims,
    worst_first,
)
from textcls.display.text import percent
from textcls.evaluation.intervals import CONFIDENCE
from textcls.evaluation.reporting.label_aims import LabelAims, LabelPoint
from textcls.evaluation.reporting.label_sets import LabelSetModelReport
from textcls.evaluation.reporting.set_errors import LabelErrorGroup, LabelErrors, SureLabelError

_INTERVAL: Final = f"{percent(CONFIDENCE, 0)} interval"


def label_set_parts(found: LabelSetModelReport) -> Parts:
    """Return these parts."""
    return Parts(
        figures=_figures(found),
        labels=[_labels(found), _mixed_up(found)],
        confidence_heading="Probabilities and thresholds",
        confidence=[f'<div class="charts">{_reliability(found)}{_curve(found.aims)}</div>', _aims(found.aims)],
        errors=[_too_many(found.too_many), _missed(found.missed)],
    )


def _figures(found: LabelSetModelReport) -> list[tuple[str, str, str]]:
    return [
        (percent(found.micro_f1.value), "micro-F1", interval(found.micro_f1)),
        (percent(found.macro_f1.value), "macro-F1", interval(found.macro_f1)),
        (percent(found.accuracy.value), "rows with all labels right", interval(found.accuracy)),
        (f"{found.scores.ece:.3f}", "calibration error a label", "0 is perfect"),
        (f"{found.aims.own.labels_a_row:.2f}", "labels assigned a row", f"rows have {found.labels_a_row:.2f}"),
    ]


def _labels(found: LabelSetModelReport) -> str:
    labels = found.scores.labels
    rows = [
        f'<tr><th scope="row">{name(label.label)}</th>{bar(label.f1, 0)}<td>{f1}</td><td>{between}</td>'
        f"<td>{percent(label.precision)}</td><td>{recall}</td>"
        f"<td>{label.threshold:.3g}</td><td>{label.ece:.3f}</td><td>{label.rows:,}</td><td>{label.assigned:,}</td></tr>"
        for label, (f1, between, recall) in worst_first(labels, found.label_f1)
    ]
    heads = [("label", ""), ("", ""), ("F1", ""), (_INTERVAL, "")]
    heads += [(text, "number") for text in ("precision", "recall", "threshold", "ECE", "rows", "assigned")]
    return folded(heads, rows, sum(not label.rows for label in labels))


def _mixed_up(found: LabelSetModelReport) -> str:
    rows = [
        f'<tr><th scope="row">{name(has)}</th><td class="said">{name(assigned)}</td><td>{count:,}</td></tr>'
        for has, assigned, count in found.scores.mixed_up[:CONFUSIONS]
    ]
    heads = [("has", ""), ("was assigned instead", "said"), ("rows", "number")]
    return "<h3>Labels taken for each other</h3>" + table(heads, rows) if rows else ""


# Probabilities and thresholds


def _reliability(found: LabelSetModelReport) -> str:
    caption = (
        "The probabilities of all labels of all rows, and how many of these labels the rows have. On the line, "
        "probabilities are what they promise."
    )
    return reliability(found.scores.reliability, Axes("probability", "has the label"), caption, "label", "are there")


def _curve(found: LabelAims) -> str:
    axes = Axes("recall of all labels", "precision of all labels")
    points = [
        Point(point.recall, point.precision)
        for point in found.curve
        if point.recall is not None and point.precision is not None
    ]
    marked = [_mark("the model's thresholds", found.own)]
    marked += [_mark(f"for {percent(p.goal.share, 0)} {p.goal.measure}", p) for p in found.goals if p.goal is not None]
    own, *goals = ([point] if point is not None else [] for point in marked)
    dots = charts.dots(axes, own, "mark"), charts.dots(axes, [point for goal in goals for point in goal])
    caption = (
        "The line is one threshold for all labels, the marked point the model's own thresholds, the others those below "
        "that were chosen for a precision or a recall of each label, which some labels may not reach."
    )
    return charts.figure("What do thresholds reach?", caption, axes, charts.curve(axes, points), *dots)


def _mark(what: str, point: LabelPoint) -> Point | None:
    if point.precision is None or point.recall is None:
        return None
    title = f"{what}: precision {percent(point.precision)}, recall {percent(point.recall)}"
    return Point(point.recall, point.precision, size=5, title=title)


def _aims(found: LabelAims) -> str:
    return plain_table(LABEL_AIMS, label_aims(found)) + "".join(
        f'<p class="note">{shown(note)}</p>' for note in aims_notes(found)
    )


# Errors


def _too_many(found: LabelErrors) -> str:
    return (
        f"<h3>Labels too many</h3><p>{found.count:,} labels in {found.rows:,} rows were assigned that the rows do not "
        'have.</p><p class="note">The word that speaks most for the label, how often it does so wrongly and rightly, '
        "and which labels of these rows were missed.</p>"
        + _groups(found.groups, "speaks for", "missed instead")
        + _surest(found.surest, "Surest labels too many", "because of")
    )


def _missed(found: LabelErrors) -> str:
    return (
        f"<h3>Missed labels</h3><p>{found.count:,} labels in {found.rows:,} rows were not assigned.</p>"
        '<p class="note">The word that speaks most against the label, how often it does so wrongly and rightly, and '
        "which labels these rows were wrongly assigned.</p>"
        + _groups(found.groups, "speaks against", "assigned instead")
        + _surest(found.surest, "Surest missed labels", "against it")
    )


def _groups(found: Sequence[LabelErrorGroup], does: str, instead: str) -> str:
    if not found:
        return "<p>No word stands behind several of them.</p>"
    rows = [
        f'<tr><th scope="row">{name(group.word)}</th><td class="said">{name(group.label)}</td>'
        f'<td>{group.errors:,}</td><td>{group.right:,}</td><td class="several">'
        + instead_of(group, name)
        + f"</td>{example(group.examples[0])}</tr>"
        for group in found
    ]
    heads = [("word", ""), (does, "said"), ("wrongly", ""), ("rightly", ""), (instead, "said"), ("example", "")]
    return table(heads, rows)


def _surest(found: Sequence[SureLabelError], title: str, words: str) -> str:
    if not found:
        return ""
    rows = [
        f"<tr><td>{percent(error.probability)}</td><td class='said'>{name(error.label)}</td>"
        f'<td class="several">{_names(error.labels)}</td><td class="several">{_names(error.words)}</td>'
        f"{quoted(error.text, error.place)}</tr>"
        for error in found
    ]
    heads = [("score", ""), ("label", "said"), ("the row has", "said"), (words, "said"), ("text", "said")]
    note = "Where the model is sure and the row says otherwise, one of the two is wrong: look at the labels first."
    return f'<h3>{title}</h3><p class="note">{note}</p>' + table(heads, rows)


def _names(found: Sequence[str]) -> str:
    return ", ".join(map(name, found))
