"""A report on a model as a page for managers and engineers: what matters in sentences, then all of it."""

from html import escape

from textcls.display.html import charts
from textcls.display.html.fragments import bar, fragment, name, shown
from textcls.display.html.global_explanation import global_explanation_fragment
from textcls.display.html.label_set_report import label_set_parts
from textcls.display.html.one_label_report import one_label_parts
from textcls.display.html.report_parts import STYLE, Parts, boxes, table
from textcls.display.report_lines import interval, no_weak_line, right_head, summary_lines
from textcls.display.text import percent
from textcls.evaluation.intervals import CONFIDENCE
from textcls.evaluation.reporting.label_sets import LabelSetModelReport
from textcls.evaluation.reporting.model_report import ModelReport
from textcls.evaluation.reporting.one_label import OneLabelModelReport
from textcls.evaluation.reporting.slices import Slice


def report_fragments(title: str, found: ModelReport) -> list[str]:
    """Return the parts of the page."""
    own = _parts(found)
    sections = {
        "labels": "Labels",
        "confidence": own.confidence_heading,
        "errors": "Errors",
        "slices": "Kinds of rows",
        "reasons": "What it relies on",
    }

    def heading(section: str) -> str:
        return f'<h2 id="{section}">{escape(sections[section])}</h2>'

    links = "".join(f'<a href="#{id_}">{escape(text)}</a>' for id_, text in sections.items())
    lines = "".join(f"<li>{shown(line)}</li>" for line in summary_lines(found))
    trained = f"trained on {found.model.info.training.get('rows', 0):,}"
    parts = [
        f"<style>{STYLE}{charts.STYLE}</style><h2>{shown(title)}</h2>",
        boxes([*own.figures, (f"{found.rows:,}", "rows", trained)]),
        f'<ul class="summary">{lines}</ul>',
        f'<nav class="note">{links}</nav>',
        heading("labels"),
        *own.labels,
        heading("confidence"),
        *own.confidence,
        heading("errors"),
        *own.errors,
        heading("slices"),
        _slices(found),
        '<a id="reasons"></a>',
    ]
    return [fragment(parts), global_explanation_fragment(sections["reasons"], found.evidence)]


def _parts(found: ModelReport) -> Parts:
    if isinstance(found, LabelSetModelReport):
        return label_set_parts(found)
    if isinstance(found, OneLabelModelReport):
        return one_label_parts(found)
    raise TypeError(f"no page shows a {type(found).__name__}")


def _slices(found: ModelReport) -> str:
    if not found.slices:
        return "<p>There are too few rows to tell kinds of them apart.</p>"
    several = any(one.several for one in found.slices)
    rows = [
        f'<tr{" class=weak" if one.weak else ""}><th scope="row">{name(one.kind)}</th>'
        f'<td class="said">{name(one.name)}</td>'
        f"{bar(one.accuracy.value, 0)}<td>{percent(one.accuracy.value)}</td><td>{interval(one.accuracy)}</td>"
        f"<td>{percent(one.others)}</td>{_micro_f1(one) if several else ''}<td>{one.rows:,}</td>"
        f'<td class="said">{_verdict(one)}</td></tr>'
        for one in found.slices
    ]
    heads = [
        ("by", ""),
        ("rows", "said"),
        ("", ""),
        (right_head(found), ""),
        (f"{percent(CONFIDENCE, 0)} interval", ""),
    ]
    heads += [("all others", ""), *([("micro-F1", "number")] if several else []), ("how many", ""), ("", "said")]
    none = "" if found.weak_slices else f"<p>{escape(no_weak_line(found))}</p>"
    note = "Weaker means by more than chance: Fisher's exact test against all other rows, with Holm's correction."
    return (
        none
        + table(heads, rows, "findings kinds")
        + f'<p class="note">{escape(note)} Scripts are told by letters; languages are not.</p>'
    )


def _micro_f1(one: Slice) -> str:
    return f"<td>{'' if one.micro_f1 is None else percent(one.micro_f1)}</td>"


def _verdict(one: Slice) -> str:
    return "weaker" if one.weak else ""
