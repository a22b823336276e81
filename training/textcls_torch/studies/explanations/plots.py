"""Plots of a measurement as SVG to stand in a page: no outside reference, the page's own font and text colour."""

import io
import re
import warnings
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final

from textcls.errors import MissingExtraError
from textcls_torch.studies.explanations.benchmark import OWN
from textcls_torch.studies.explanations.bootstrap import Estimate
from textcls_torch.studies.explanations.report import TITLES
from textcls_torch.studies.explanations.results import BenchmarkResult, MethodResult

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WIDTH: Final = 9.0
# Stands for the colour of the page's text until the drawing is done.
INK: Final = "#010203"
# Readable on white and on near black; the model's own contributions have the first.
PALETTE: Final = ("#2f7de1", "#6db1ff", "#8b8b8b", "#d97b29", "#c2453f", "#3a9d5d", "#9a6fd0", "#b8960c", "#1aa3a3")
# Typed by matplotlib as a literal of all its settings.
_STYLE: Final[dict[Any, Any]] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "textcls",
    "font.size": 9,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.titlecolor": INK,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
}


def require(extra: str = "explain") -> None:
    """Find out before the work whether plots can be drawn.

    Raises:
        MissingExtraError: matplotlib, which `extra` brings, is not installed.
    """
    if find_spec("matplotlib") is None:
        raise MissingExtraError("The page", "matplotlib", extra)


def bars(result: BenchmarkResult, group: str, figures: Sequence[str], name: str) -> str:
    """Draw each figure of a group in a panel of its own: a bar and its interval a method."""
    methods = result.methods

    def draw(axes: "Sequence[Axes]") -> None:
        for ax, figure in zip(axes, figures, strict=True):
            found = [method.figures[group][figure] for method in methods]
            places = range(len(methods))
            ax.barh(
                places, [one.value or 0.0 for one in found], color=[_colour(result, m) for m in methods], height=0.7
            )
            for place, one in zip(places, found, strict=True):
                _interval(ax, place, one)
            ax.axvline(0, color=INK, linewidth=0.6)
            ax.set_yticks(list(places), [method.name for method in methods] if ax is axes[0] else [""] * len(methods))
            ax.invert_yaxis()
            ax.set_title(TITLES[figure], fontsize=10)

    return svg(draw, len(figures), 0.6 + 0.27 * len(methods), name)


def _interval(ax: "Axes", place: int, found: Estimate) -> None:
    if found.low is not None and found.high is not None:
        ax.plot([found.low, found.high], [place, place], color=INK, linewidth=1.1)


def curves(result: BenchmarkResult, removal: str, name: str) -> str:
    """Draw the mean of comprehensiveness and of sufficiency over the share of tokens."""
    percent = [100 * share for share in result.shares]

    def draw(axes: "Sequence[Axes]") -> None:
        for ax, figure in zip(axes, ("comprehensiveness", "sufficiency"), strict=True):
            for method in reversed(result.methods):
                width = 2.4 if method.name == OWN else 1.2
                line = method.curves[removal][figure]
                ax.plot(percent, line, "o-", markersize=3, linewidth=width, color=_colour(result, method))
            ax.set_title(TITLES[figure], fontsize=10)
            ax.set_xlabel("tokens, %")
        names = [method.name for method in reversed(result.methods)]
        axes[0].figure.legend(axes[0].lines[::-1], names[::-1], loc="outside right center", fontsize=8)

    return svg(draw, 2, 3.4, name)


def cost(result: BenchmarkResult, removal: str, name: str) -> str:
    """Draw comprehensiveness over the time that an explanation takes."""

    def draw(axes: "Sequence[Axes]") -> None:
        (ax,) = axes
        for method in result.methods:
            found = method.figures[removal]["comprehensiveness"]
            if found.value is None:
                continue
            size = 60 if method.name == OWN else 30
            ax.scatter([method.milliseconds], [found.value], s=size, color=_colour(result, method))
            at = (method.milliseconds, found.value)
            # Neighbours in the list are often neighbours here: one name goes up, the next one down.
            up = 6 if result.methods.index(method) % 2 == 0 else -12
            ax.annotate(method.name, at, xytext=(4, up), textcoords="offset points", fontsize=8)
        ax.set_xscale("log")
        ax.margins(0.12)
        ax.set_xlabel("milliseconds a text, one thread")
        ax.set_ylabel(TITLES["comprehensiveness"])

    return svg(draw, 1, 3.4, name)


def _colour(result: BenchmarkResult, method: MethodResult) -> str:
    return PALETTE[result.methods.index(method) % len(PALETTE)]


def svg(draw: "Callable[[Sequence[Axes]], None]", panels: int, height: float, name: str) -> str:
    """Draw side by side and return one <svg> element whose ids begin with `name`."""
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context(_STYLE):
        figure = Figure(figsize=(WIDTH, height), layout="constrained")
        draw(list(figure.subplots(1, panels, squeeze=False)[0]))
        buffer = io.StringIO()
        nothing = dict.fromkeys(("Creator", "Date", "Format", "Type"))
        with warnings.catch_warnings():
            # The letters are the page's, which has more of them than the font that matplotlib measures by.
            warnings.filterwarnings("ignore", r"Glyph \d+ .* missing from font")
            figure.savefig(buffer, format="svg", transparent=True, metadata=nothing)
    drawn = buffer.getvalue()
    drawn = drawn[drawn.index("<svg") :].replace(INK, "currentColor")
    return re.sub(r'( id="|url\(#|href="#)', rf"\g<1>{name}-", drawn)
