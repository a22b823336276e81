"""An ablation as one HTML page: the table and plots; nothing is loaded from anywhere, no script runs."""

from collections.abc import Callable, Sequence
from html import escape
from typing import TYPE_CHECKING, Any, Final

from textcls_torch.studies.ablation.cells import AblationState
from textcls_torch.studies.ablation.measure import FAITHFULNESS
from textcls_torch.studies.ablation.report import COLUMNS, NOTES, AblationRow, headline, rows_of, table
from textcls_torch.studies.explanations import plots
from textcls_torch.studies.explanations.page import document, figure
from textcls_torch.studies.explanations.plots import INK, PALETTE, svg
from textcls_torch.studies.explanations.report import TITLES

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LINES: Final = ("-", "--", ":", "-.")
_DISTANCES: Final = (
    "Distances are (p - q) M (p - q): below zero where the metric is, which nothing forbids. Metrics and distances are "
    "coloured around zero, blue below it."
)


def require() -> None:
    """Find out before the work whether a page can be made.

    Raises:
        MissingExtraError: matplotlib is not installed.
    """
    plots.require("ablate")


def render(state: AblationState) -> str:
    """Return the page."""
    rows = rows_of(state)
    head = "".join(f"<th>{escape(name)}</th>" for name in COLUMNS)
    body = "".join("<tr>" + "".join(f"<td>{escape(c)}</td>" for c in cells) + "</tr>" for cells in table(state))
    title = f"Ablation on {state.about['data']}"
    parts = [f"<h1>{escape(title)}</h1>", f"<p>{escape(headline(state))}</p>"]
    parts += [f'<div class="wide"><table><tr>{head}</tr>{body}</table></div>', f"<p class='soft'>{escape(NOTES)}</p>"]
    if rows:
        parts += ["<h2>Plots</h2>", *_plots(rows)]
    parts += _pictures(state)
    return document(title, parts)


def _plots(rows: Sequence[AblationRow]) -> list[str]:
    return [
        figure(_accuracy(rows), "Accuracy of each seed, and their mean."),
        figure(_cost(rows), "What accuracy costs: a text of this set, alone, with its contributions."),
        figure(_lengths(rows), "A text by its number of tokens, alone, with its contributions."),
        figure(_faithfulness(rows), "How faithful the contributions are; arrows say which way is better."),
    ]


def _accuracy(rows: Sequence[AblationRow]) -> str:
    def draw(axes: "Sequence[Axes]") -> None:
        (ax,) = axes
        for place, row in enumerate(rows):
            values = [run["accuracy"] for run in row.runs]
            ax.plot([min(values), max(values)], [place, place], color=INK, linewidth=1)
            ax.plot(values, [place] * len(values), "o", color=PALETTE[1], markersize=4)
            ax.plot([sum(values) / len(values)], [place], "|", color=PALETTE[0], markersize=14, markeredgewidth=2.4)
        _names(ax, rows)
        ax.set_xlabel("accuracy, %")

    return svg(draw, 1, 0.8 + 0.24 * len(rows), "accuracy")


def _cost(rows: Sequence[AblationRow]) -> str:
    def draw(axes: "Sequence[Axes]") -> None:
        (ax,) = axes
        for i, row in enumerate(rows):
            at = row.least("alone_us"), row.mean("accuracy") or 0.0
            ax.scatter([at[0]], [at[1]], s=30, color=PALETTE[i % len(PALETTE)])
            up = 5 if i % 2 == 0 else -11
            ax.annotate(row.name, at, xytext=(4, up), textcoords="offset points", fontsize=7)
        ax.set_xscale("log")
        ax.xaxis.set_major_formatter("{x:,g}")
        ax.xaxis.set_minor_formatter("{x:,g}")
        ax.margins(0.12)
        ax.set_xlabel("microseconds a text")
        ax.set_ylabel("accuracy, %")

    return svg(draw, 1, 4.2, "cost")


def _lengths(rows: Sequence[AblationRow]) -> str:
    def draw(axes: "Sequence[Axes]") -> None:
        (ax,) = axes
        for i, row in enumerate(rows):
            found = row.lengths()
            colour, line = PALETTE[i % len(PALETTE)], LINES[i // len(PALETTE) % len(LINES)]
            ax.plot(list(found), list(found.values()), line, marker="o", markersize=2.5, color=colour, label=row.name)
        ax.set_xscale("log", base=2)
        ax.set_yscale("log")
        lengths = list(rows[0].lengths())
        ax.set_xticks(lengths, [f"{n:,}" for n in lengths])
        ax.set_xlabel("tokens")
        ax.set_ylabel("microseconds a text")
        ax.figure.legend(loc="outside right center", fontsize=7)

    return svg(draw, 1, max(3.6, 0.2 * len(rows)), "lengths")


def _faithfulness(rows: Sequence[AblationRow]) -> str:
    def draw(axes: "Sequence[Axes]") -> None:
        for ax, name in zip(axes, FAITHFULNESS, strict=True):
            ax.barh(range(len(rows)), [row.mean(name) or 0.0 for row in rows], color=PALETTE[0], height=0.7)
            _names(ax, rows, shown=ax is axes[0])
            ax.axvline(0, color=INK, linewidth=0.6)
            ax.set_title(TITLES[name], fontsize=10)

    return svg(draw, len(FAITHFULNESS), 0.8 + 0.24 * len(rows), "faithfulness")


def _names(ax: "Axes", rows: Sequence[AblationRow], shown: bool = True) -> None:
    ax.set_yticks(range(len(rows)), [row.name if shown else "" for row in rows])
    ax.invert_yaxis()


def _pictures(state: AblationState) -> list[str]:
    found: list[str] = []
    for cell, figures in state.figures.items():
        pictures = figures.get("pictures")
        if pictures:
            name = f"picture-{len(found)}"
            found.append(f"<h2>What {escape(str(cell))} has learned</h2><p class='soft'>{_DISTANCES}</p>")
            found.append(figure(_matrices(pictures["metrics"], [], "metric", name), "The metric of each head."))
            for i, text in enumerate(pictures["texts"]):
                for kind in ("scores", "distances"):
                    caption = (
                        f"{kind.capitalize()} of each head: a row a token, a column the token it is compared with."
                    )
                    drawn = _matrices(text[kind], text["tokens"], kind, f"{name}-{i}-{kind}")
                    found.append(figure(drawn, caption))
    return found


def _matrices(matrices: Sequence[Sequence[Sequence[float]]], tokens: Sequence[str], kind: str, name: str) -> str:
    """Draw the matrix of each head as a field of coloured squares, which no picture in another format is part of."""
    drawn: Callable[[Any], dict[str, Any]] = _probabilities if kind == "scores" else _around_zero

    def draw(axes: "Sequence[Axes]") -> None:
        for head, (ax, matrix) in enumerate(zip(axes, matrices, strict=True)):
            field = ax.pcolormesh(matrix, **drawn(matrix))
            ax.figure.colorbar(field, ax=ax, shrink=0.7)
            ax.invert_yaxis()
            ax.set_aspect("equal")
            ax.set_title(f"{kind}, head {head + 1}", fontsize=9)
            places = [place + 0.5 for place in range(len(tokens))]
            ax.set_xticks(places, list(tokens), rotation=90, fontsize=7, parse_math=False)
            ax.set_yticks(places, list(tokens), fontsize=7, parse_math=False)

    return svg(draw, len(matrices), 3.4 if len(matrices) > 1 else 4.2, name)


def _probabilities(_matrix: Any) -> dict[str, Any]:
    return {"cmap": _colours("Blues"), "vmin": 0}


def _around_zero(matrix: Any) -> dict[str, Any]:
    largest = max((abs(value) for row in matrix for value in row), default=1.0) or 1.0
    return {"cmap": _colours("RdBu_r"), "vmin": -largest, "vmax": largest}


def _colours(name: str) -> Any:
    """Few steps of a scale: of 50 and more matplotlib makes a picture in another format, which no page may load."""
    from matplotlib import colormaps

    return colormaps[name].resampled(41)
