"""A report on a model in Markdown."""

from collections.abc import Sequence
from typing import Final

from textcls.display.markdown.tables import escaped, name, table
from textcls.display.remarks import possible_line, reliance_phrase, shortcut_lines
from textcls.display.report_lines import (
    AIMS,
    CONFUSIONS,
    LABEL_AIMS,
    LEVELS,
    aims,
    aims_notes,
    chosen_note,
    instead_of,
    interval,
    label_aims,
    levels,
    levels_notes,
    right_head,
    summary_lines,
    worst_first,
)
from textcls.display.text import percent
from textcls.evaluation.intervals import CONFIDENCE
from textcls.evaluation.reporting.label_sets import LabelSetModelReport
from textcls.evaluation.reporting.model_report import ModelReport
from textcls.evaluation.reporting.one_label import OneLabelModelReport
from textcls.evaluation.reporting.set_errors import LabelErrorGroup

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
        *_own(found),
        ("Kinds of rows", _slices(found)),
        ("What it relies on", _reasons(found)),
        ("Shortcuts", _shortcuts(found)),
    ):
        if content:
            lines += ["", f"## {heading}", "", *content]
    return lines


def _own(found: ModelReport) -> list[tuple[str, list[str]]]:
    """Return the sections that a report of the other kind has not, or not so."""
    if isinstance(found, LabelSetModelReport):
        return [
            ("Labels", _set_labels(found)),
            ("Labels taken for each other", _mixed_up(found)),
            ("Probabilities", _reliability(found, ["probability", "has the label", _INTERVAL, "labels"])),
            ("What thresholds reach", _label_aims(found)),
            ("Words behind labels too many", _label_errors(found.too_many.groups, "speaks for ", "missed instead ")),
            ("Words behind missed labels", _label_errors(found.missed.groups, "speaks against ", "assigned instead ")),
        ]
    if isinstance(found, OneLabelModelReport):
        return [
            ("Labels", _labels(found)),
            ("Levels", _levels(found)),
            ("Confusions", _confusions(found)),
            ("Confidence", _reliability(found, ["score", "answered right", _INTERVAL, "rows"])),
            ("What to leave to people", _targets(found)),
            ("Words behind errors", _errors(found)),
        ]
    raise TypeError(f"no Markdown shows a {type(found).__name__}")


# One label a text


def _labels(found: OneLabelModelReport) -> list[str]:
    rows = [
        [name(label.label), f1, between, percent(label.precision), recall, f"{label.rows:,}"]
        for label, (f1, between, recall) in worst_first(found.scores.labels, found.label_f1)
    ]
    return table(["label", "F1", _INTERVAL, "precision", "recall", "rows"], rows)


def _levels(found: OneLabelModelReport) -> list[str]:
    if found.paths is None:
        return []
    return [*table(LEVELS, levels(found.paths)), "", escaped(" ".join(levels_notes(found.paths)))]


def _confusions(found: OneLabelModelReport) -> list[str]:
    rows = [[name(right), name(answer), f"{count:,}"] for right, answer, count in found.confusions[:CONFUSIONS]]
    return table(["right", "answered ", "rows"], rows) if rows else []


def _targets(found: OneLabelModelReport) -> list[str]:
    of = found.abstention.costs
    costs = f"A wrong answer costs {of.error:g}, a row left to people {of.abstention:g}."
    return [*table(AIMS, aims(found.abstention)), "", f"{costs} {chosen_note(found.abstention)}"]


def _errors(found: OneLabelModelReport) -> list[str]:
    rows = [
        [name(group.word), name(group.answered), f"{group.errors:,}", f"{group.right:,}", _counts(group.of)]
        for group in found.errors
    ]
    return table(["word", "leads to ", "wrongly", "rightly", "which are "], rows) if rows else []


def _counts(of: Sequence[tuple[str, int]]) -> str:
    return ", ".join(f"{name(label)} {count:,}" for label, count in of)


# Several labels a text


def _set_labels(found: LabelSetModelReport) -> list[str]:
    rows = [
        [
            name(label.label),
            f1,
            between,
            percent(label.precision),
            recall,
            f"{label.threshold:.3g}",
            f"{label.ece:.3f}",
            f"{label.rows:,}",
            f"{label.assigned:,}",
        ]
        for label, (f1, between, recall) in worst_first(found.scores.labels, found.label_f1)
    ]
    return table(["label", "F1", _INTERVAL, "precision", "recall", "threshold", "ECE", "rows", "assigned"], rows)


def _mixed_up(found: LabelSetModelReport) -> list[str]:
    rows = [[name(has), name(given), f"{count:,}"] for has, given, count in found.scores.mixed_up[:CONFUSIONS]]
    return table(["has", "was assigned instead ", "rows"], rows) if rows else []


def _label_aims(found: LabelSetModelReport) -> list[str]:
    return [*table(LABEL_AIMS, label_aims(found.aims)), "", escaped(" ".join(aims_notes(found.aims)))]


def _label_errors(found: Sequence[LabelErrorGroup], does: str, instead: str) -> list[str]:
    rows = [
        [
            name(group.word),
            name(group.label),
            f"{group.errors:,}",
            f"{group.right:,}",
            instead_of(group, name),
        ]
        for group in found
    ]
    return table(["word", does, "wrongly", "rightly", instead], rows) if rows else []


# All


def _reliability(found: ModelReport, heads: Sequence[str]) -> list[str]:
    rows = [
        [percent(each.confidence), percent(each.share.value), interval(each.share), f"{each.rows:,}"]
        for each in found.scores.reliability
    ]
    return table(heads, rows)


def _slices(found: ModelReport) -> list[str]:
    rows = [
        [
            name(one.kind),
            name(one.name),
            percent(one.accuracy.value),
            interval(one.accuracy),
            percent(one.others),
            *(["" if one.micro_f1 is None else percent(one.micro_f1)] if one.several else []),
            f"{one.rows:,}",
            f"weaker, p = {one.p_value:.1g}" if one.weak else "",
        ]
        for one in found.slices
    ]
    f1 = ["micro-F1"] if isinstance(found, LabelSetModelReport) else []
    heads = ["by", "rows ", right_head(found), _INTERVAL, "all others", *f1, "how many", " "]
    return table(heads, rows) if rows else []


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
    shortcuts = [] if audit is None else audit.shortcuts
    rows = [[name(one.text), name(one.label), f"{one.texts:,}", escaped(reliance_phrase(one))] for one in shortcuts]
    shown = [*table(["shortcut", "label ", "texts", "what it does "], rows), ""] if rows else []
    lines = [*shortcut_lines(audit), possible_line(audit)]
    return [*shown, *(escaped(line) for line in lines if line)]
