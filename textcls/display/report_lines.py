"""The sentences of a report, the same on pages, in Markdown and in the terminal."""

from collections.abc import Callable, Sequence
from typing import Final, TypeVar

from textcls.display.remarks import shortcut_lines
from textcls.display.text import named, percent, plural, top_k_sentence
from textcls.evaluation.intervals import CONFIDENCE, Estimate, share
from textcls.evaluation.label_paths import PathEvaluation
from textcls.evaluation.label_set_evaluation import FEW_ROWS, few_rows_sentence
from textcls.evaluation.label_set_metrics import LabelSetLabelReport
from textcls.evaluation.label_thresholds import resting_sentence, threshold_rows
from textcls.evaluation.metrics import LabelReport
from textcls.evaluation.reporting.abstention import Abstention
from textcls.evaluation.reporting.label_aims import LabelAims, LabelPoint
from textcls.evaluation.reporting.label_sets import LabelSetModelReport
from textcls.evaluation.reporting.model_report import ModelReport
from textcls.evaluation.reporting.one_label import OneLabelModelReport
from textcls.evaluation.reporting.set_errors import LabelErrorGroup
from textcls.evaluation.reporting.slices import LEAST_ROWS, LENGTH, SCRIPT, UNKNOWN, Slice
from textcls.evaluation.unknown_labels import names_of, never_assigned_sentence, unknown_labels_sentence

# From this share of the rows on, it is reported as all of them.
_ALL: Final = 0.95
# This many confused pairs and weak kinds of rows are in the summary.
SHOWN: Final = 3
# This many pairs of confused labels are shown on a page.
CONFUSIONS: Final = 20
# This many labels are named that occur instead of one.
INSTEAD: Final = 3
AIMS: Final = ("aim", "threshold", "answered", "of these right", f"{percent(CONFIDENCE, 0)} interval", "cost a row")
LEVELS: Final = ("level", "nodes", "accuracy", "by label", "sure to here", "of these right")
LEVEL_POINTS: Final = ("level", "threshold", "rows answered", "right", "at least")
LABEL_AIMS: Final = (
    "thresholds",
    "reached by",
    "precision",
    "recall",
    "micro-F1",
    "all labels right",
    "labels a row",
    "rows without one",
)
# With fewer answers a precision is a matter of luck.
LEAST_ANSWERED: Final = 20

Label = TypeVar("Label", LabelReport, LabelSetLabelReport)


def learned_lines(share: float, model: str = "the model") -> list[str]:
    """Return which share of the rows a model has learned from; nothing if there are none."""
    if not share:
        return []
    rows = "These are rows" if share >= _ALL else f"About {percent(share, 0)} of these rows are some"
    return [
        f"{rows} that {model} has learned from: it answers them better than new ones. Take others to judge it; "
        "`textcls inspect` says how it did on held-out rows."
    ]


def interval(found: Estimate) -> str:
    """Return the interval of a figure: 66.6% to 72.7%."""
    return f"{percent(found.low)} to {percent(found.high)}"


def worst_first(labels: Sequence[Label], f1: Sequence[Estimate]) -> list[tuple[Label, tuple[str, str, str]]]:
    """Return the labels, those with the lowest F1 first, each with its F1, the F1's interval and the recall as cells.

    Labels that no row has come last, with empty cells: nothing is known about them.

    Args:
        labels: the labels of a report.
        f1: the F1 of each.
    """
    order = sorted(zip(labels, f1, strict=True), key=lambda pair: (not pair[0].rows, pair[0].f1))
    return [
        (label, (percent(label.f1), interval(found), percent(label.recall)) if label.rows else ("", "", ""))
        for label, found in order
    ]


def aims(found: Abstention) -> list[tuple[str, ...]]:
    """Return the effects of thresholds that reach something: rows of a table whose heads are `AIMS`."""
    points = [] if found.own is None else [("the model's own", found.own)]
    points += [(f"{percent(target, 0)} right", point) for target, point in found.targets]
    points += [("lowest cost", found.cheapest), ("all answered", found.all_answered)]
    rows = list[tuple[str, ...]]()
    for what, point in points:
        right = share(point.right, point.accepted)
        reached = (percent(right.value), interval(right)) if point.accepted else ("", "")
        answered = f"{point.threshold:.9g}", percent(point.coverage)
        rows.append((what, *answered, *reached, f"{found.costs.of(point):.2f}"))
    return rows


def chosen_note(found: Abstention) -> str:
    """Say which of the thresholds of `aims` were chosen on these rows."""
    which = "Thresholds" if found.own is None else "The other thresholds"
    return f"{which} were chosen on these rows: check one on others before you rely on it."


def levels(found: PathEvaluation) -> list[tuple[str, ...]]:
    """Return how good answers are at each level of a tree: rows of a table whose heads are `LEVELS`."""
    return [
        (
            f"{level.level}",
            f"{level.nodes:,}",
            percent(level.accuracy, 2),
            percent(level.accuracy_of_labels, 2),
            f"{level.stopped:,}",
            percent(level.stopped_right / level.stopped) if level.stopped else "",
        )
        for level in found.levels
    ]


def level_points(found: PathEvaluation) -> list[tuple[str, ...]]:
    """Return what thresholds of levels promise: rows of a table whose heads are `LEVEL_POINTS`."""
    return [
        (f"{level.level}", "none")
        if (point := level.point) is None
        else (
            f"{level.level}",
            f"{point.threshold:.9g}",
            f"{point.accepted:,}",
            percent(point.precision or 0, 2),
            percent(point.lower_bound(), 2),
        )
        for level in found.levels
    ]


def levels_notes(found: PathEvaluation) -> list[str]:
    """Return the hierarchical figures, and what the columns of `levels` mean."""
    unsure = f"{plural(found.unsure, 'row')} {'has' if found.unsure == 1 else 'have'} none"
    return [
        f"Hierarchical F1 {percent(found.f1, 2)}, precision {percent(found.precision, 2)}, recall "
        f"{percent(found.recall, 2)}.",
        "accuracy: of the most probable node, whose labels are added up; by label: of the node above the answer.",
        f"sure: the deepest node of a probability of at least {found.threshold:g}; {unsure}.",
    ]


def label_aims(found: LabelAims) -> list[tuple[str, ...]]:
    """Return the effects of the thresholds of labels: rows of a table whose heads are `LABEL_AIMS`."""
    rows = [("the model's own", "", *_label_point(found.own)), ("50% for all", "", *_label_point(found.half))]
    for point in found.goals:
        if point.goal is not None:
            what = f"for {percent(point.goal.share, 0)} {point.goal.measure} of each"
            rows.append((what, f"{found.reached(point):,} of {found.labels:,}", *_label_point(point)))
    return rows


def _label_point(point: LabelPoint) -> tuple[str, ...]:
    reached = ("" if value is None else percent(value) for value in (point.precision, point.recall))
    return *reached, percent(point.micro_f1), percent(point.exact), f"{point.labels_a_row:.2f}", percent(point.without)


def aims_notes(found: LabelAims) -> list[str]:
    """Return which labels are not counted as reaching a target, and on which rows thresholds were chosen."""
    few = next((point.few for point in found.goals), ())
    notes = [f"{few_rows_sentence(few)} What these reach is a matter of luck, and not counted."] if few else []
    notes += [
        f"No threshold reaches a {point.goal.measure} of {percent(point.goal.share, 0)} for "
        f"{names_of(point.unreached)}: assigned from a probability of {percent(point.goal.promised, 0)} up."
        for point in found.goals
        if point.goal is not None and point.unreached
    ]
    notes.append(
        "Thresholds for a precision or a recall of each label were chosen on these rows: check them on others before "
        "you rely on them."
    )
    return notes


def right_head(found: ModelReport) -> str:
    """Return the column head for the share of rows that are answered correctly."""
    return "all labels right" if isinstance(found, LabelSetModelReport) else "accuracy"


def summary_lines(found: ModelReport) -> list[str]:
    """Return what matters most, in one or two sentences each."""
    if isinstance(found, LabelSetModelReport):
        lines = _label_set_lines(found)
    elif isinstance(found, OneLabelModelReport):
        lines = _one_label_lines(found)
    else:
        raise TypeError(f"no sentences tell of a {type(found).__name__}")
    lines += [weak_line(one) for one in found.weak_slices[:SHOWN]] or [no_weak_line(found)]
    lines.append(_shortcuts(found))
    return [*learned_lines(found.learned), *filter(None, lines)]


# One label a text


def _one_label_lines(found: OneLabelModelReport) -> list[str]:
    return [
        _accuracy(found),
        top_k_sentence(found.scores.top_k_accuracy, len(found.scores.labels)),
        _unknown_labels(found),
        _calibration(found),
        _own_threshold(found.abstention),
        *_targets(found.abstention),
        cost_line(found.abstention),
        *_confusions(found),
    ]


def _accuracy(found: OneLabelModelReport) -> str:
    return (
        f"It answers {percent(found.accuracy.value)} of {plural(found.rows, 'row')} right ({interval(found.accuracy)} "
        f"with {percent(CONFIDENCE, 0)} confidence); macro-F1 {percent(found.macro_f1.value)} "
        f"({interval(found.macro_f1)})."
    )


def _unknown_labels(found: OneLabelModelReport) -> str:
    return unknown_labels_sentence(found.unknown_labels, found.model.info.labels) if found.unknown_labels else ""


def _calibration(found: OneLabelModelReport) -> str:
    ece = found.scores.ece
    mean = sum(each.rows * each.confidence for each in found.scores.reliability) / max(1, found.rows)
    gap = mean - found.accuracy.value
    inside = found.accuracy.low <= mean <= found.accuracy.high
    says = "within chance" if inside else "it is too sure of itself" if gap > 0 else "it is too modest"
    if found.rows < LEAST_ROWS:
        says = "there are too few rows to tell more"
    return (
        f"Its scores promise {percent(mean)}, {100 * abs(gap):.1f} points {'more' if gap > 0 else 'less'} than it "
        f"reaches: {says}. Calibration error (ECE) {ece:.3f}."
    )


def _own_threshold(found: Abstention) -> str:
    if found.own is None:
        return ""
    below = f"Below its own threshold of {found.own.threshold:.9g} it abstains: it answers"
    if not found.own.accepted:
        return f"{below} none of these rows."
    right = share(found.own.right, found.own.accepted)
    return (
        f"{below} {percent(found.own.coverage)} of the rows, {percent(right.value)} of them right ({interval(right)})."
    )


def _targets(found: Abstention) -> list[str]:
    """Return the sentences on the target precisions that need a threshold, and leave enough rows to report on."""
    by_threshold = {point.threshold: (target, point) for target, point in found.targets}
    return [
        f"To be right in {percent(target, 0)} of its answers, it answers {percent(point.coverage)} of the rows, those "
        f"of a score from {point.threshold:.9g} up, and leaves the others to people."
        for target, point in by_threshold.values()
        if LEAST_ANSWERED <= point.accepted < point.rows
    ]


def cost_line(found: Abstention) -> str:
    """Return the cheapest threshold, under the assumed costs."""
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
        f"{assumed}, a threshold of {best.threshold:.9g} is cheapest: {costs.of(best):.2f} a row, against "
        f"{everything:.2f} to answer all and {nothing:.2f} to answer nothing."
    )


def _confusions(found: OneLabelModelReport) -> list[str]:
    pairs = found.confusions[:SHOWN]
    if not pairs:
        return []
    shown = ", ".join(f"{named(right)} answered as {named(answer)} ({rows:,})" for right, answer, rows in pairs)
    return [f"Most often mixed up: {shown}."]


# Several labels a text


def _label_set_lines(found: LabelSetModelReport) -> list[str]:
    return [
        _f1(found),
        never_assigned_sentence(found.unknown_labels, found.model.info.labels) if found.unknown_labels else "",
        _too_many_and_missed(found),
        _promised(found),
        resting_sentence(threshold_rows(found.model.info) or {}) or "",
        *_precise(found.aims),
        _taken_for_each_other(found),
        *(_behind(group, "for") for group in found.too_many.groups[:1]),
        *(_behind(group, "against") for group in found.missed.groups[:1]),
    ]


def _f1(found: LabelSetModelReport) -> str:
    return (
        f"Micro-F1 {percent(found.micro_f1.value)} on {plural(found.rows, 'row')} ({interval(found.micro_f1)} with "
        f"{percent(CONFIDENCE, 0)} confidence); macro-F1 {percent(found.macro_f1.value)} ({interval(found.macro_f1)}); "
        f"{percent(found.accuracy.value)} of the rows have all labels right and no other ({interval(found.accuracy)})."
    )


def _too_many_and_missed(found: LabelSetModelReport) -> str:
    own = found.aims.own
    assigned = f"It assigns {own.labels_a_row:.2f} labels a row, and rows have {found.labels_a_row:.2f}."
    if own.precision is None or own.recall is None:
        return assigned
    return f"{assigned} Of those that it assigns {percent(own.precision)} are right; it finds {percent(own.recall)}."


def _promised(found: LabelSetModelReport) -> str:
    gap = found.promised
    inside = gap.low <= 0 <= gap.high
    says = "within chance" if inside else "they are too high" if gap.value > 0 else "they are too low"
    if found.rows < LEAST_ROWS:
        says = "there are too few rows to tell more"
    known = sum(label.rows for label in found.scores.labels if label.label not in found.unknown_labels)
    have, of_those = known / found.rows, " of those that it knows" if found.unknown_labels else ""
    return (
        f"Its probabilities promise {have + gap.value:.2f} labels a row, {abs(gap.value):.2f} "
        f"{'more' if gap.value > 0 else 'less'} than rows have{of_those}: "
        f"{says}. Calibration error (ECE) of a label {found.scores.ece:.3f}."
    )


def _precise(found: LabelAims) -> list[str]:
    """Return the sentence on the highest precision that thresholds were chosen for, and how many labels reach it."""
    points = [(p.goal.share, p) for p in found.goals if p.goal is not None and p.goal.measure == "precision"]
    return [_with_thresholds(found.reached(point), found.labels, share, point) for share, point in points[-1:]]


def _with_thresholds(reached: int, labels: int, aim: float, point: LabelPoint) -> str:
    if not reached or point.precision is None or point.recall is None:
        return f"No label that {FEW_ROWS} rows or more have reaches a precision of {percent(aim, 0)} by any threshold."
    only = f", which {reached:,} of {plural(labels, 'label')} reach on {FEW_ROWS} rows or more" * (reached < labels)
    return (
        f"With thresholds for a precision of {percent(aim, 0)} of each label{only}, {percent(point.precision)} of the "
        f"labels that it assigns are right, and it finds {percent(point.recall)}."
    )


def _taken_for_each_other(found: LabelSetModelReport) -> str:
    pairs = found.scores.mixed_up[:SHOWN]
    shown = ", ".join(f"{named(has)} where it assigned {named(assigned)} ({rows:,})" for has, assigned, rows in pairs)
    return f"Most often missed for another: {shown}." if pairs else ""


def _behind(group: LabelErrorGroup, side: str) -> str:
    wrong = "too many" if side == "for" else "missed"
    return (
        f"{named(group.label)} is {wrong} in {plural(group.errors, 'row')} in which {named(group.word)!r} speaks most "
        f"{side} it, as it does rightly in {group.right:,}."
    )


def instead_of(group: LabelErrorGroup, name: Callable[[str], str]) -> str:
    """Return which labels rows have, or were assigned, instead of those that were missed, or superfluous.

    Args:
        group: the group of errors.
        name: returns the display form of a label.
    """
    others = group.instead[INSTEAD:]
    shown = [f"{name(label)} {rows:,}" for label, rows in group.instead[:INSTEAD]]
    shown += [f"{plural(len(others), 'other')} {sum(rows for _, rows in others):,}"] if others else []
    return ", ".join([*shown, f"none {group.none:,}"] if group.none else shown)


# Kinds of rows


def slice_name(one: Slice) -> str:
    """Return a phrase for the rows of a slice, for use within a sentence."""
    if one.kind == LENGTH:
        return f"texts of {one.name}"
    if one.kind == SCRIPT:
        return f"texts in {one.name} script" if one.name != "no letters" else "texts without letters"
    if one.kind == UNKNOWN:
        return "texts without unknown words" if one.name == "none" else f"texts of which {one.name} is unknown to it"
    return f"rows with {named(one.kind)} {named(one.name)}"


def weak_line(one: Slice) -> str:
    """Return the sentence that a model is weaker on a slice."""
    return (
        f"Weaker on {slice_name(one)}: {percent(one.accuracy.value)} of {plural(one.rows, 'row')}"
        f"{' with all labels right' if one.several else ''}, against {percent(one.others)} of the others."
    )


def no_weak_line(found: ModelReport) -> str:
    """Return the sentence that no slice is weaker, with the number of slices examined."""
    if not found.slices:
        return ""
    return f"None of {plural(len(found.slices), 'kind')} of rows is answered worse than the others by more than chance."


def _shortcuts(found: ModelReport) -> str:
    return " ".join([*found.evidence.told_by, _shortcut(found)])


def _shortcut(found: ModelReport) -> str:
    audit = found.evidence.audit
    if audit is None or not audit.could_find:
        return shortcut_lines(audit)[0]
    if not audit.shortcuts:
        none = "No shortcut was found"
        if not audit.possible:
            return f"{none}."
        likeliest, count = audit.possible[0], len(audit.possible)
        more = "" if count == 1 else f", and {count - 1:,} more"
        return (
            f"{none}; {named(likeliest.text)} for {named(likeliest.label)} may be one, or part of what is said{more}."
        )
    first = audit.shortcuts[0]
    count = len(audit.shortcuts)
    return f"{plural(count, 'shortcut')} found; the most frequent: {named(first.text)} for {named(first.label)}."
