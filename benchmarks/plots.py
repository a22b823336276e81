"""Draw learning curves and the frontier as SVG, on white, so that they read on light and dark pages."""

from collections.abc import Sequence
from pathlib import Path
from statistics import mean
from typing import Any, Final

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullLocator

from common import OURS
from peers import PEERS

# Okabe and Ito's palette, told apart by colour-blind readers; textcls is black.
COLOURS: Final = dict(zip(PEERS, ("#0072b2", "#56b4e9", "#009e73", "#d55e00", "#e69f00", "#cc79a7"), strict=True)) | {
    OURS: "#000000"
}
STYLE: Final[dict[Any, Any]] = {
    "axes.spines.right": False,
    "axes.spines.top": False,
    "font.size": 9,
    "svg.hashsalt": "textcls",  # the same figures give the same bytes
}
PANEL: Final = (6.0, 3.8)  # inches
# Smallest distance of two labels, as a share of the height of a panel.
GAP: Final = 0.055


def colour(model: str) -> str:
    """Return the colour of a model; all sizes of textcls have one."""
    return COLOURS[OURS if model.startswith(OURS) else model]


def spread(places: Sequence[float], gap: float) -> list[float]:
    """Move `places` apart until neighbours are at least `gap` away from each other, in their order, as one heap each.

    Args:
        places: where labels would like to stand.
        gap: smallest distance of two of them.
    """
    order = sorted(range(len(places)), key=places.__getitem__)
    heaps: list[tuple[float, list[int]]] = []  # centre, members from below
    for i in order:
        centre, members = places[i], [i]
        while heaps and centre - heaps[-1][0] < gap * (len(members) + len(heaps[-1][1])) / 2:
            below, lower = heaps.pop()
            centre = (below * len(lower) + centre * len(members)) / (len(lower) + len(members))
            members = lower + members
        heaps.append((centre, members))
    moved = [0.0] * len(places)
    for centre, members in heaps:
        for place, i in enumerate(members):
            moved[i] = centre + gap * (place - (len(members) - 1) / 2)
    return moved


def draw_curves(results: dict[str, dict[str, dict[int, list[float]]]], path: Path) -> None:
    """Draw accuracy against the number of training rows, a panel a data set, a line a model, to the file at `path`.

    Args:
        results: accuracies in percent by data set, model and number of rows, a list over the subsets.
        path: the SVG file to write.
    """
    with mpl.rc_context(STYLE):
        figure, panels = _panels(len(results), 1)
        for axes, (name, models) in zip(panels, results.items(), strict=True):
            ends = []
            for model, curve in models.items():
                sizes = sorted(curve)
                means = [mean(curve[size]) for size in sizes]
                width = 2.2 if model == OURS else 1.2
                axes.plot(sizes, means, color=colour(model), linewidth=width, marker="o", markersize=width + 1)
                ends.append((model, sizes[-1], means[-1]))
            _rows_axis(axes, sorted({size for curve in models.values() for size in curve}))
            axes.set(title=name, ylabel="test accuracy (%)")
            _labels(axes, ends)
        _save(figure, path)


def draw_frontier(results: dict[str, dict[str, dict[str, float]]], path: Path) -> None:
    """Draw accuracy against megabytes and against microseconds, a row of panels a data set, to the file at `path`.

    Args:
        results: figures by data set and model.
        path: the SVG file to write.
    """
    costs = {"mb": "saved model (MB)", "alone_us": "one text alone (microseconds)"}
    with mpl.rc_context(STYLE):
        figure, panels = _panels(len(results), len(costs))
        each = [(name, models, cost) for name, models in results.items() for cost in costs]
        for axes, (name, models, cost) in zip(panels, each, strict=True):
            points = [(model, row[cost], row["accuracy"]) for model, row in models.items()]
            ours = sorted((x, y) for model, x, y in points if model.startswith(OURS))
            axes.plot([x for x, _ in ours], [y for _, y in ours], color=colour(OURS), linewidth=1)
            for model, x, y in points:
                axes.plot(x, y, color=colour(model), marker="o", linestyle="none")
            axes.set(title=name, xlabel=costs[cost], ylabel="test accuracy (%)", xscale="log")
            axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
            axes.xaxis.set_minor_formatter("")
            _labels(axes, points)
        _save(figure, path)


def _panels(rows: int, columns: int) -> tuple[Figure, list[Axes]]:
    figure = Figure(figsize=(PANEL[0] * columns, PANEL[1] * rows), layout="constrained")
    return figure, list(figure.subplots(rows, columns, squeeze=False).flat)


def _rows_axis(axes: Axes, sizes: Sequence[int]) -> None:
    """Mark the numbers of rows that were trained on, but none too close to the last one, which is all of them."""
    axes.set(xscale="log", xlabel="training rows")
    marks = [size for size in sizes[:-1] if size <= sizes[-1] / 1.6] + [sizes[-1]]
    axes.set_xticks(marks, [f"{size:,}" for size in marks])
    axes.xaxis.set_minor_locator(NullLocator())


def _labels(axes: Axes, points: Sequence[tuple[str, float, float]]) -> None:
    """Name each of `points` (model, x, y) in its colour in the right margin, with a thin line to it."""
    axes.autoscale_view()
    to_share = axes.transAxes.inverted()
    shares = [to_share.transform(axes.transData.transform((x, y))) for _, x, y in points]
    for (model, x, y), at in zip(points, spread([float(share[1]) for share in shares], GAP), strict=True):
        axes.annotate(
            model, xy=(x, y), xycoords="data", xytext=(1.04, at), textcoords="axes fraction", color=colour(model),
            va="center", fontweight="bold" if model.startswith(OURS) else "normal",
            arrowprops={"arrowstyle": "-", "color": colour(model), "linewidth": 0.5, "alpha": 0.5, "relpos": (0, 0.5)},
        )  # fmt: skip


def _save(figure: Figure, path: Path) -> None:
    figure.savefig(path, format="svg", facecolor="white", metadata={"Date": None})
