"""A learning curve as text, as a table and as a plot."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from rich.table import Table
from rich.text import Text

from textcls.display.plots.figures import AGAINST, FOR, NEUTRAL, axes_of, styled
from textcls.display.text import percent, plural
from textcls.evaluation.intervals import CONFIDENCE
from textcls_training.learning_curve.run import LearningCurve

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_COLOURS: Final = (FOR, AGAINST, NEUTRAL)


def verdict(found: LearningCurve) -> str:
    """Return a sentence that says whether more rows would help."""
    name, (*_, last) = next(iter(found.figures().items()))
    said = (
        f"The last doubling of the rows brought {100 * last.difference:+.1f} points of {name} "
        f"({percent(CONFIDENCE, 0)} interval {100 * last.low:+.1f} to {100 * last.high:+.1f})"
    )
    if last.low <= 0:
        return f"{said}, which may be chance: more rows like these may bring nothing."
    return f"{said}; expect somewhat less of the next one."


def report(found: LearningCurve) -> Iterator[Table | Text]:
    """Yield a row for each model, and the verdict."""
    figures = found.figures()
    decides = next(iter(figures))
    table = Table("rows", box=None, pad_edge=False)
    table.columns[0].justify = "right"
    for name in (*figures, f"gain in {decides}", f"{percent(CONFIDENCE, 0)} interval"):
        table.add_column(name, justify="right")
    for i, rows in enumerate(found.rows):
        step = figures[decides][i]
        gain = (f"{100 * step.difference:+.2f}", f"{100 * step.low:+.2f} to {100 * step.high:+.2f}") if i else ("", "")
        table.add_row(f"{rows:,}", *(percent(values[i].after, 2) for values in figures.values()), *gain)
    yield Text(f"Judged by {plural(found.held_out, 'row')} that the models leave out.")
    yield table
    yield Text(verdict(found), style="bold")


def plot(found: LearningCurve) -> "Figure":
    """Draw the figures over the number of rows, on a logarithmic axis."""
    with styled():
        figure, axes = axes_of(5.5, 3.5)
        for colour, (name, values) in zip(_COLOURS, found.figures().items(), strict=False):
            axes.plot(found.rows, [100 * one.after for one in values], "o-", color=colour, markersize=4, label=name)
        axes.set_xscale("log", base=2)
        axes.set_xticks(found.rows, [f"{rows:,}" for rows in found.rows])
        axes.minorticks_off()
        axes.grid(axis="y", color=NEUTRAL, alpha=0.25)
        axes.set(xlabel="rows learned from", ylabel="percent", title="Learning curve")
        figure.legend(loc="outside lower center", ncols=len(_COLOURS), frameon=False)
        return figure
