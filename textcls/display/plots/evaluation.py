"""Plots of an evaluation: which labels are confused, whether probabilities are right, how good each label is."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from textcls.display.plots.figures import AGAINST, FOR, NEUTRAL, axes_of, name_rows, room_for, row_name, styled
from textcls.display.text import plural
from textcls.errors import ConfigError
from textcls.evaluation.evaluation import Evaluation
from textcls.evaluation.label_set_evaluation import LabelSetEvaluation
from textcls.evaluation.label_set_metrics import LabelSetLabelReport, LabelSetReport
from textcls.evaluation.metrics import ClassificationReport, LabelReport, ReliabilityBin

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# With more labels the confusions are a list instead of a matrix, and the labels are those with the lowest F1.
MATRIX: Final = 20
LISTED: Final = 30
# The limits of an axis at which a mark at 0 or 1 is drawn whole.
_SHARES: Final = (-0.02, 1.02)


def plot_evaluation(evaluation: Evaluation | LabelSetEvaluation) -> "dict[str, Figure]":
    """Return plots of an evaluation, by their names: `confusions`, `calibration` and `labels`.

    They are Matplotlib figures: `plot_evaluation(found)["confusions"].savefig("confusions.svg")`. With several labels
    per text, and beyond a matrix, the confusions are the most frequent pairs.

    Args:
        evaluation: the result of `textcls.evaluate`.

    Raises:
        ConfigError: it is something else.
        MissingExtraError: Matplotlib is not installed.

    Examples:
        >>> found = textcls.evaluate(textcls.Classifier.load("tickets.onnx"), zip(*textcls.read("tickets.csv")))
        >>> sorted(textcls.plot_evaluation(found))
        ['calibration', 'confusions', 'labels']
    """
    if not isinstance(evaluation, Evaluation | LabelSetEvaluation):
        raise ConfigError(f"A {type(evaluation).__name__} cannot be drawn: pass what textcls.evaluate returns.")
    report = evaluation.report
    with styled():
        return {
            "confusions": _confusions(report),
            "calibration": _calibration(report.reliability),
            "labels": _labels(report.labels),
        }


def _confusions(report: ClassificationReport | LabelSetReport) -> "Figure":
    if not isinstance(report, ClassificationReport):
        return _pairs(report.mixed_up, "has \u2192 was assigned instead")
    return _matrix(report) if len(report.labels) <= MATRIX else _pairs(report.confusions, "right \u2192 answered")


def _matrix(report: ClassificationReport) -> "Figure":
    counts = np.array(report.confusion)
    share = counts / np.maximum(counts.sum(1, keepdims=True), 1)
    names = [row_name(label.label) for label in report.labels]
    side = 2.6 + 0.42 * len(names) + room_for(names)
    figure, axes = axes_of(side, side)
    axes.imshow(share, cmap="Blues", vmin=0, vmax=1)
    for row, column in zip(*counts.nonzero(), strict=True):
        colour = "white" if share[row, column] > 0.5 else "black"
        axes.text(column, row, f"{counts[row, column]:,}", ha="center", va="center", color=colour, fontsize="small")
    axes.set_xticks(range(len(names)), names, rotation=45, ha="right", rotation_mode="anchor")
    axes.set_yticks(range(len(names)), names)
    axes.tick_params(length=0)
    axes.set(
        xlabel="answered", ylabel="right", title=f"{report.accuracy:.1%} of {plural(report.rows, 'row')} are right"
    )
    return figure


def _pairs(pairs: Sequence[tuple[str, str, int]], kind: str) -> "Figure":
    """List the most frequent pairs of labels in which one is answered instead of the other."""
    shown = pairs[:MATRIX]
    names = [f"{row_name(first)} \u2192 {row_name(second)}" for first, second, _ in shown]
    figure, axes = axes_of(4.5 + room_for(names), 1.2 + 0.26 * len(shown))
    bars = axes.barh(range(len(shown)), [rows for _, _, rows in shown], color=AGAINST, height=0.7)
    axes.bar_label(bars, padding=3, fontsize="small")
    name_rows(axes, names)
    axes.margins(x=0.1)
    axes.locator_params("x", integer=True)
    title = f"Most frequent confusions: {kind}" if shown else "No label is answered in the place of another"
    axes.set(xlabel="rows", title=title)
    return figure


def _calibration(bins: Sequence[ReliabilityBin]) -> "Figure":
    figure, axes = axes_of(4.5, 4.5)
    axes.plot([0, 1], [0, 1], color=NEUTRAL, linestyle="--", linewidth=0.8)
    shares = [one.share for one in bins]
    places, values = [one.confidence for one in bins], [share.value for share in shares]
    # Rounding must not make the length of a whisker negative.
    whiskers = [
        [max(0.0, share.value - share.low) for share in shares],
        [max(0.0, share.high - share.value) for share in shares],
    ]
    axes.errorbar(places, values, yerr=whiskers, fmt="o-", color=FOR, linewidth=1, capsize=2, markersize=4)
    axes.set(xlim=_SHARES, ylim=_SHARES, xlabel="probability", ylabel="of these right", title="Calibration")
    axes.set_aspect("equal")
    return figure


def _labels(labels: Sequence[LabelReport | LabelSetLabelReport]) -> "Figure":
    listed = sorted((label for label in labels if label.rows), key=lambda label: label.f1)[:LISTED]
    names = [f"{row_name(one.label)} ({one.rows:,})" for one in listed]
    figure, axes = axes_of(4.5 + room_for(names), 1.3 + 0.26 * len(listed))
    marks = (("precision", AGAINST, "<"), ("recall", NEUTRAL, ">"), ("f1", FOR, "o"))
    for measure, colour, mark in marks:
        name = "F1" if measure == "f1" else measure
        axes.plot([getattr(one, measure) for one in listed], range(len(listed)), mark, color=colour, label=name)
    name_rows(axes, names)
    axes.grid(axis="y", color=NEUTRAL, alpha=0.25)
    lowest = f"The {LISTED} labels of the lowest F1" if len(listed) == LISTED else "Labels by F1"
    axes.set(xlim=_SHARES, title=f"{lowest} (rows)")
    figure.legend(loc="outside lower center", ncols=len(marks), frameon=False)
    return figure
