"""A report on a model in Markdown."""

from collections.abc import Sequence
from typing import Final

from textcls.display.markdown.tables import escaped, name, table
from textcls.display.remarks import reliance_phrase, shortcut_lines
from textcls.display.report_lines import AIMS, CONFUSIONS, aims, interval, summary_lines
from textcls.display.text import percent
from textcls.evaluation.intervals import CONFIDENCE, share
from textcls.reporting.report import ModelReport

WORDS: Final = 8
_INTERVAL: Final = f"{percent(CONFIDENCE, 0)} interval"


def report_markdown(title: str, found: ModelReport, about: str = "") -> str:
    """Return the report as a document of its own.

    Args:
        title: its heading.
        found: the report.
        about: of which file it is, and when it was made; empty for nothing.
    """
    return "\n".join([f"# {escaped(title)}", "", *([escaped(about), ""] if about else []), *sections(found)]) + "\n"


def sections(found: ModelReport) -> list[str]:
    """Return the lines of all sections, with headings of the second level."""
    lines = [f"- {escaped(line)}" for line in summary_lines(found)]
    for heading, content in (
        ("Labels", _labels(found)),
        ("Confusions", _confusions(found)),
        ("Confidence", _reliability(found)),
        ("What to leave to people", _targets(found)),
        ("Words behind errors", _errors(found)),
        ("Kinds of rows", _slices(found)),
        ("What it goes by", _reasons(found)),
        ("Shortcuts", _shortcuts(found)),
    ):
        if content:
            lines += ["", f"## {heading}", "", *content]
    return lines


def _labels(found: ModelReport) -> list[str]:
    pairs = sorted(zip(found.scores.labels, found.label_f1, strict=True), key=lambda pair: pair[0].f1)
    rows = [
        [
            name(label.label),
            percent(label.f1),
            interval(f1),
            percent(label.precision),
            percent(label.recall),
            f"{label.rows:,}",
        ]
        for label, f1 in pairs
    ]
    return table(["label", "F1", _INTERVAL, "precision", "recall", "rows"], rows)


def _confusions(found: ModelReport) -> list[str]:
    rows = [[name(right), name(answer), f"{count:,}"] for right, answer, count in found.confusions[:CONFUSIONS]]
    return table(["right", "answered ", "rows"], rows) if rows else []


def _reliability(found: ModelReport) -> list[str]:
    rows = []
    for each in found.reliability:
        right = share(each.right, each.rows)
        rows.append([percent(each.confidence), percent(right.value), interval(right), f"{each.rows:,}"])
    return table(["score", "answered right", _INTERVAL, "rows"], rows)


def _targets(found: ModelReport) -> list[str]:
    of = found.abstention.costs
    costs = f"A wrong answer costs {of.error:g}, a row left to people {of.abstention:g}."
    return [*table(AIMS, aims(found.abstention)), "", f"{costs} Thresholds were chosen on these rows."]


def _errors(found: ModelReport) -> list[str]:
    rows = [
        [name(group.word), name(group.answered), f"{group.errors:,}", f"{group.right:,}", _counts(group.of)]
        for group in found.errors
    ]
    return table(["word", "leads to ", "wrongly", "rightly", "which are "], rows) if rows else []


def _counts(of: Sequence[tuple[str, int]]) -> str:
    return ", ".join(f"{name(label)} {count:,}" for label, count in of)


def _slices(found: ModelReport) -> list[str]:
    rows = [
        [
            name(one.kind),
            name(one.name),
            percent(one.accuracy.value),
            interval(one.accuracy),
            percent(one.others),
            f"{one.rows:,}",
            f"weaker, p = {one.p_value:.1g}" if one.weak else "",
        ]
        for one in found.slices
    ]
    return table(["by", "rows ", "accuracy", _INTERVAL, "all others", "how many", " "], rows) if rows else []


def _reasons(found: ModelReport) -> list[str]:
    rows = [
        [name(label.label), f"{label.answers:,}", *(_words(terms) for terms in (label.words_for, label.words_against))]
        for label in found.evidence.labels
    ]
    return table(["label", "answers", "words for it ", "words against it "], rows)


def _words(terms: Sequence[object]) -> str:
    return ", ".join(name(str(getattr(term, "text", term))) for term in terms[:WORDS])


def _shortcuts(found: ModelReport) -> list[str]:
    audit = found.evidence.audit
    if audit is None:
        return []
    rows = [
        [name(one.text), name(one.label), f"{one.texts:,}", escaped(reliance_phrase(one))] for one in audit.shortcuts
    ]
    shown = [*table(["shortcut", "label ", "texts", "what it does "], rows), ""] if rows else []
    return [*shown, *(escaped(line) for line in shortcut_lines(audit))]
