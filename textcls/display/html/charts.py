"""Draw curves and points in a square of two shares, as pictures that need nothing but the page that contains them."""

from collections.abc import Sequence
from html import escape
from typing import Final, NamedTuple

# In the chart's own units: the whole picture, and the space left of and below the square.
WIDTH: Final = 420
HEIGHT: Final = 280
LEFT: Final = 58
BELOW: Final = 40
TOP: Final = 12
RIGHT: Final = 20
_TICKS: Final = 5

STYLE: Final = (
    ".textcls .charts{display:flex;flex-wrap:wrap;gap:1rem}"
    ".textcls figure{margin:.5rem 0;flex:1 1 21rem;max-width:27rem}"
    ".textcls figcaption{color:var(--faint);font-size:.87em}.textcls .chart{width:100%;height:auto}"
    ".textcls .chart text{font-size:12px;fill:var(--faint)}.textcls .chart line{stroke:var(--line)}"
    ".textcls .chart .curve{fill:none;stroke:rgb(var(--p));stroke-width:2}"
    ".textcls .chart .band{fill:rgb(var(--p)/.15);stroke:none}"
    ".textcls .chart .ideal{stroke:var(--faint);stroke-dasharray:4 4}"
    ".textcls .chart circle{fill:rgb(var(--p))}.textcls .chart .mark{fill:rgb(var(--n))}"
    ".textcls .chart .whisker{stroke:rgb(var(--p))}"
)


class Point(NamedTuple):
    """A point of a chart, between two values if it has them; `size` is its radius, `title` its tooltip."""

    x: float
    y: float
    low: float | None = None
    high: float | None = None
    size: float = 3.0
    title: str = ""


class Axes(NamedTuple):
    """The axes of a chart: their names, the values at their ends, and whether these are shares, shown in percent."""

    x: str
    y: str
    x_range: tuple[float, float] = (0.0, 1.0)
    y_range: tuple[float, float] = (0.0, 1.0)
    x_shares: bool = True
    y_shares: bool = True


def figure(title: str, caption: str, axes: Axes, *drawn: str) -> str:
    """Return a chart with its caption; `drawn` are what `curve`, `dots`, `diagonal` and `level` return."""
    return (
        f'<figure><h3>{escape(title)}</h3><svg class="chart" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        f'aria-label="{escape(title)}">{_grid(axes)}{"".join(drawn)}</svg><figcaption>{escape(caption)}</figcaption></figure>'
    )


def curve(axes: Axes, points: Sequence[Point]) -> str:
    """Return a line through points, over a band between their lower and upper values if all have them."""
    line = " ".join(f"{_x(axes, p.x):.1f},{_y(axes, p.y):.1f}" for p in points)
    band = ""
    if points and all(p.low is not None and p.high is not None for p in points):
        upper = [f"{_x(axes, p.x):.1f},{_y(axes, p.high or 0.0):.1f}" for p in points]
        lower = [f"{_x(axes, p.x):.1f},{_y(axes, p.low or 0.0):.1f}" for p in reversed(points)]
        band = f'<polygon class="band" points="{" ".join([*upper, *lower])}"/>'
    return f'{band}<polyline class="curve" points="{line}"/>'


def dots(axes: Axes, points: Sequence[Point], kind: str = "") -> str:
    """Return points, each with a line from its lower to its upper value if it has them."""
    found = []
    for p in points:
        x = f"{_x(axes, p.x):.1f}"
        if p.low is not None and p.high is not None:
            found.append(
                f'<line class="whisker" x1="{x}" x2="{x}" y1="{_y(axes, p.low):.1f}" y2="{_y(axes, p.high):.1f}"/>'
            )
        found.append(
            f'<circle class="{kind}" cx="{x}" cy="{_y(axes, p.y):.1f}" r="{p.size:.1f}">'
            f"<title>{escape(p.title)}</title></circle>"
        )
    return "".join(found)


def diagonal(axes: Axes) -> str:
    """Return the line on which both shares are equal."""
    return _line(axes, (axes.x_range[0], axes.y_range[0]), (axes.x_range[1], axes.y_range[1]), "ideal")


def level(axes: Axes, y: float) -> str:
    """Return a line at a height."""
    return _line(axes, (axes.x_range[0], y), (axes.x_range[1], y), "ideal")


def _line(axes: Axes, start: tuple[float, float], end: tuple[float, float], kind: str) -> str:
    return (
        f'<line class="{kind}" x1="{_x(axes, start[0]):.1f}" y1="{_y(axes, start[1]):.1f}" x2="{_x(axes, end[0]):.1f}" '
        f'y2="{_y(axes, end[1]):.1f}"/>'
    )


def _grid(axes: Axes) -> str:
    found = []
    for i in range(_TICKS + 1):
        x = axes.x_range[0] + (axes.x_range[1] - axes.x_range[0]) * i / _TICKS
        y = axes.y_range[0] + (axes.y_range[1] - axes.y_range[0]) * i / _TICKS
        found.append(_line(axes, (x, axes.y_range[0]), (x, axes.y_range[1]), ""))
        found.append(_line(axes, (axes.x_range[0], y), (axes.x_range[1], y), ""))
        found.append(
            f'<text x="{_x(axes, x):.1f}" y="{HEIGHT - BELOW + 16}" text-anchor="middle">'
            f"{_tick(x, axes.x_shares)}</text>"
        )
        found.append(
            f'<text x="{LEFT - 6}" y="{_y(axes, y) + 4:.1f}" text-anchor="end">{_tick(y, axes.y_shares)}</text>'
        )
    middle = (TOP + HEIGHT - BELOW) / 2
    found.append(
        f'<text x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 6}" text-anchor="middle">{escape(axes.x)}</text>'
    )
    found.append(
        f'<text x="11" y="{middle}" text-anchor="middle" transform="rotate(-90 11 {middle})">{escape(axes.y)}</text>'
    )
    return "".join(found)


def _tick(value: float, share: bool) -> str:
    return f"{100 * value:.0f}%" if share else f"{value:.3g}"


def _x(axes: Axes, value: float) -> float:
    low, high = axes.x_range
    return LEFT + (value - low) / (high - low) * (WIDTH - LEFT - RIGHT)


def _y(axes: Axes, value: float) -> float:
    low, high = axes.y_range
    return HEIGHT - BELOW - (value - low) / (high - low) * (HEIGHT - BELOW - TOP)
