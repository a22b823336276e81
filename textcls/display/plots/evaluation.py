"""Plots of an evaluation: what is taken for what, whether probabilities hold, how good each label is."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from textcls.display.plots.figures import AGAINST, FOR, NEUTRAL, axes_of, name_rows, styled
from textcls.display.text import named, plural
from textcls.evaluation.evaluation import Evaluation
from textcls.evaluation.label_set_evaluation import LabelSetEvaluation
from textcls.evaluation.label_set_metrics import LabelSetLabelReport
from textcls.evaluation.metrics import ClassificationReport, LabelReport, ReliabilityBin

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Of more labels the confusions are a list instead of a matrix, and the labels those of the lowest F1.
MATRIX: Final = 20
LISTED: Final = 30


def plot_evaluation(evaluation: Evaluation | LabelSetEvaluation) -> "dict[str, Figure]":
    """Return plots of an evaluation, by their names: `confusions`, `calibration` and `labels`.

    They are Matplotlib figures: `plot_evaluation(found)["confusions"].savefig("confusions.svg")`. Where nothing is
    confused there is no plot of it beyond a matrix.

    Args:
        evaluation: what `textcls.evaluate` returns.

    Raises:
        MissingExtraError: Matplotlib is not installed.
    """
    report = evaluation.report
    with styled():
        found = {"calibration": _calibration(report.reliability), "labels": _labels(report.labels)}
        if isinstance(report, ClassificationReport):
            if len(report.labels) <= MATRIX:
                return found | {"confusions": _matrix(report)}
            confused, kind = report.confusions, ("right", "answered")
        else:
            confused, kind = report.mixed_up, ("has", "was assigned")
        return found | ({"confusions": _confused(confused[:MATRIX], kind)} if confused else {})


def _matrix(report: ClassificationReport) -> "Figure":
    counts = np.array(report.confusion)
    share = counts / np.maximum(counts.sum(1, keepdims=True), 1)
    names = [named(label.label) for label in report.labels]
    side = 2.6 + 0.42 * len(names)
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


def _confused(pairs: Sequence[tuple[str, str, int]], kind: tuple[str, str]) -> "Figure":
    figure, axes = axes_of(7.5, 1.2 + 0.26 * len(pairs))
    bars = axes.barh(range(len(pairs)), [rows for _, _, rows in pairs], color=AGAINST, height=0.7)
    axes.bar_label(bars, padding=3, fontsize="small")
    name_rows(axes, [f"{named(first)} \u2192 {named(second)}" for first, second, _ in pairs])
    axes.set(xlabel="rows", title=f"Most frequent confusions: {kind[0]} \u2192 {kind[1]}")
    return figure


def _calibration(bins: Sequence[ReliabilityBin]) -> "Figure":
    figure, axes = axes_of(4.5, 4.5)
    axes.plot([0, 1], [0, 1], color=NEUTRAL, linestyle="--", linewidth=0.8)
    shares = [one.share for one in bins]
    places, values = [one.confidence for one in bins], [share.value for share in shares]
    # Rounding must not turn a whisker round.
    whiskers = [
        [max(0.0, share.value - share.low) for share in shares],
        [max(0.0, share.high - share.value) for share in shares],
    ]
    axes.errorbar(places, values, yerr=whiskers, fmt="o-", color=FOR, linewidth=1, capsize=2, markersize=4)
    axes.set(xlim=(0, 1), ylim=(0, 1), xlabel="probability", ylabel="of these right", title="Calibration")
    axes.set_aspect("equal")
    return figure


def _labels(labels: Sequence[LabelReport | LabelSetLabelReport]) -> "Figure":
    listed = sorted((label for label in labels if label.rows), key=lambda label: label.f1)[:LISTED]
    figure, axes = axes_of(6.5, 1.3 + 0.26 * len(listed))
    marks = (("precision", AGAINST, "<"), ("recall", NEUTRAL, ">"), ("f1", FOR, "o"))
    for measure, colour, mark in marks:
        name = "F1" if measure == "f1" else measure
        axes.plot([getattr(one, measure) for one in listed], range(len(listed)), mark, color=colour, label=name)
    name_rows(axes, [f"{named(one.label)} ({one.rows:,})" for one in listed])
    axes.grid(axis="y", color=NEUTRAL, alpha=0.25)
    lowest = f"The {len(listed)} labels of the lowest F1" if len(listed) < len(labels) else "Labels by F1"
    axes.set(xlim=(-0.02, 1.02), title=f"{lowest} (rows)")
    figure.legend(loc="outside lower center", ncols=len(marks), frameon=False)
    return figure
