"""What a report says in sentences, on pages, in Markdown and in the terminal alike."""

from typing import Final

from textcls.display.text import named, percent, plural
from textcls.evaluation.intervals import CONFIDENCE, Estimate, share
from textcls.evaluation.unknown_labels import unknown_labels_sentence
from textcls.reporting.abstention import Abstention
from textcls.reporting.report import ModelReport
from textcls.reporting.slices import LENGTH, SCRIPT, UNKNOWN, Slice

# So many mixed-up pairs and weak kinds of rows stand in the summary.
TOLD: Final = 3
# So many pairs of labels that were taken for each other stand on a page.
CONFUSIONS: Final = 20
AIMS: Final = ("aim", "threshold", "answered", "of these right", f"{percent(CONFIDENCE, 0)} interval", "cost a row")
# Of fewer answers a precision is a matter of luck.
LEAST_ANSWERED: Final = 20


def interval(found: Estimate, digits: int = 1) -> str:
    """Return between which values a figure lies: 66.6% to 72.7%."""
    return f"{percent(found.low, digits)} to {percent(found.high, digits)}"


def aims(found: Abstention) -> list[tuple[str, ...]]:
    """Return what thresholds do that reach something: rows of a table whose heads are `AIMS`."""
    points = [(f"{percent(target, 0)} right", point) for target, point in found.targets]
    points += [("lowest cost", found.cheapest), ("all answered", found.all_answered)]
    rows = list[tuple[str, ...]]()
    for what, point in points:
        right = share(point.right, point.accepted)
        reached = (percent(right.value), interval(right)) if point.accepted else ("", "")
        answered = f"{point.threshold:.3g}", percent(point.coverage)
        rows.append((what, *answered, *reached, f"{found.costs.of(point):.2f}"))
    return rows


def summary_lines(found: ModelReport) -> list[str]:
    """Return what matters most, a sentence or two each."""
    lines = [
        _accuracy(found),
        _unknown_labels(found),
        _calibration(found),
        *_targets(found.abstention),
        cost_line(found.abstention),
    ]
    lines += _confusions(found)
    lines += [weak_line(one) for one in found.weak_slices[:TOLD]] or [no_weak_line(found)]
    lines.append(_shortcuts(found))
    return [line for line in lines if line]


def _accuracy(found: ModelReport) -> str:
    return (
        f"It answers {percent(found.accuracy.value)} of {plural(found.rows, 'row')} right ({interval(found.accuracy)} "
        f"with {percent(CONFIDENCE, 0)} confidence); macro-F1 {percent(found.macro_f1.value)} "
        f"({interval(found.macro_f1)})."
    )


def _unknown_labels(found: ModelReport) -> str:
    return unknown_labels_sentence(found.unknown_labels, found.model.info.labels) if found.unknown_labels else ""


def _calibration(found: ModelReport) -> str:
    ece = found.scores.ece
    mean = sum(each.rows * each.confidence for each in found.reliability) / max(1, found.rows)
    gap = mean - found.accuracy.value
    inside = found.accuracy.low <= mean <= found.accuracy.high
    says = "within chance" if inside else "it is too sure of itself" if gap > 0 else "it is too modest"
    return (
        f"Its scores promise {percent(mean)}, {100 * abs(gap):.1f} points {'more' if gap > 0 else 'less'} than it "
        f"reaches: {says}. Calibration error (ECE) {ece:.3f}."
    )


def _targets(found: Abstention) -> list[str]:
    """Return the sentences of the targets of precision that need a threshold, and leave rows enough to tell of."""
    by_threshold = {point.threshold: (target, point) for target, point in found.targets}
    return [
        f"To be right in {percent(target, 0)} of its answers, it answers {percent(point.coverage)} of the rows, those "
        f"of a score from {point.threshold:.3g} up, and leaves the others to people."
        for target, point in by_threshold.values()
        if LEAST_ANSWERED <= point.accepted < point.rows
    ]


def cost_line(found: Abstention) -> str:
    """Return what is cheapest, under the costs that were assumed."""
    costs, best = found.costs, found.cheapest
    assumed = f"If a wrong answer costs {costs.error:g} and a row that is left to people {costs.abstention:g}"
    everything, nothing = costs.of(found.all_answered), costs.abstention
    if not best.accepted:
        return (
            f"{assumed}, it is cheapest to answer nothing: {nothing:.2f} a row, against {everything:.2f} to answer all."
        )
    if best.accepted == best.rows:
        return (
            f"{assumed}, it is cheapest to answer all: {everything:.2f} a row, against {nothing:.2f} to answer nothing."
        )
    return (
        f"{assumed}, a threshold of {best.threshold:.3g} is cheapest: {costs.of(best):.2f} a row, against "
        f"{everything:.2f} to answer all and {nothing:.2f} to answer nothing."
    )


def _confusions(found: ModelReport) -> list[str]:
    pairs = found.confusions[:TOLD]
    if not pairs:
        return []
    told = ", ".join(f"{named(right)} answered as {named(answer)} ({rows:,})" for right, answer, rows in pairs)
    return [f"Most often mixed up: {told}."]


def slice_name(one: Slice) -> str:
    """Return which rows a slice is, within a sentence."""
    if one.kind == LENGTH:
        return f"texts of {one.name}"
    if one.kind == SCRIPT:
        return f"texts in {one.name} script" if one.name != "no letters" else "texts without letters"
    if one.kind == UNKNOWN:
        return "texts without unknown words" if one.name == "none" else f"texts of which {one.name} is unknown to it"
    return f"rows with {named(one.kind)} {named(one.name)}"


def weak_line(one: Slice) -> str:
    """Return that a model is weaker on a slice."""
    return (
        f"Weaker on {slice_name(one)}: {percent(one.accuracy.value)} of {plural(one.rows, 'row')}, against "
        f"{percent(one.others)} of the others."
    )


def no_weak_line(found: ModelReport) -> str:
    """Return that no slice is weaker, and how many were looked at."""
    if not found.slices:
        return ""
    return f"None of {plural(len(found.slices), 'kind')} of rows is answered worse than the others by more than chance."


def _shortcuts(found: ModelReport) -> str:
    audit = found.evidence.audit
    if audit is None or not audit.could_find:
        return ""
    if not audit.shortcuts:
        return "No shortcut was found."
    first = audit.shortcuts[0]
    count = len(audit.shortcuts)
    return f"{plural(count, 'shortcut')} found; the most frequent: {named(first.text)} for {named(first.label)}."
