"""A plot of one answer: from the bias to the logit, by what each token added (a waterfall chart)."""

from typing import TYPE_CHECKING, Final

from textcls.display.plots.figures import AGAINST, FOR, NEUTRAL, axes_of, fitted, name_rows, room_for, row_name, styled
from textcls.display.text import percent, signed
from textcls.display.token_table import TokenRow, TokenTable, token_table
from textcls.errors import ConfigError
from textcls.model.explanation import Explanation

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from textcls.model.explanation import Attribution

SHOWN_TOKENS: Final = 12
# The most characters of the text in the title.
_TEXT: Final = 72


def plot_explanation(
    explanation: Explanation, label: str | None = None, against: str | None = None, *, top: int = SHOWN_TOKENS
) -> "Figure":
    """Return a plot of an answer, as a Matplotlib figure: `plot_explanation(answer.explanation).savefig("why.svg")`.

    It begins with the bias and ends with the logit of the label; between them, in reading order, what each of the
    strongest tokens added, and what all others did together.

    Args:
        explanation: that of the answer; `explanation.grouped("sentence")` shows a long text by its sentences.
        label: the label explained; by default the most probable.
        against: the label that it is compared with; by default all others.
        top: the number of tokens with a bar of their own.

    Raises:
        MissingExtraError: Matplotlib is not installed.
        ConfigError: there is no such label, both are the same, or `top` is negative.

    Examples:
        >>> answer = textcls.Classifier.load("tickets.onnx").predict("my card was charged twice", explain=True)
        >>> textcls.plot_explanation(answer.explanation).savefig("why.svg")
    """
    if not isinstance(explanation, Explanation):
        raise ConfigError(
            f"An explanation is needed, not {type(explanation).__name__}: that of an answer which was asked for with "
            "explain=True, as in plot_explanation(answer.explanation)."
        )
    if top < 0:
        raise ConfigError(f"top must be 0 or more, not {top}.")
    return plot_attribution(explanation, explanation.attribution(label, against), top)


def plot_attribution(explanation: Explanation, attribution: "Attribution", top: int = SHOWN_TOKENS) -> "Figure":
    """Return the plot of an attribution; the arguments are those of `plot_explanation`."""
    table = token_table(explanation, attribution, sorted(attribution.strongest(top).tolist()))
    names, values = _bars(table)
    names.append("logit" if attribution.against is None else "difference")
    with styled():
        figure, axes = axes_of(5.5 + room_for(names), 1.6 + 0.3 * len(names))
        place = 0.0
        for row, value in enumerate(values):
            colour = (FOR if value > 0 else AGAINST) if row else NEUTRAL
            axes.barh(row, value, left=place, height=0.7, color=colour)
            # To the beginning of the next.
            axes.plot([place + value] * 2, [row, row + 1], color=NEUTRAL, linewidth=0.8, zorder=0)
            place += value
        axes.barh(len(values), table.total[0], height=0.7, color=NEUTRAL)
        if table.models > 1:
            _whiskers(axes, table)
        _write_values(axes, table, values)
        name_rows(axes, names)
        axes.axvline(0, color=NEUTRAL, linewidth=0.8, zorder=0)
        axes.set_title(f"{_heading(explanation, attribution)}\n{fitted(explanation.text, _TEXT)}")
        ranges = f", mean and 95% intervals of {table.models} models" if table.models > 1 else ""
        axes.set_xlabel(f"{attribution.kind} in logits{ranges}")
    return figure


def _heading(explanation: Explanation, attribution: "Attribution") -> str:
    """Return what is explained: a label and its probability, or two labels compared with each other."""
    if attribution.against is not None:
        return f"{row_name(attribution.label)} and not {row_name(attribution.against)}"
    return f"{row_name(attribution.label)}, {percent(explanation.score(attribution.label))}"


def _bars(table: TokenTable) -> tuple[list[str], list[float]]:
    """Return the bars from the bias on: their names, and what each adds."""
    names, values = ["bias"], [table.bias[0]]
    names += [_name(row) for row in table.rows]
    values += [row.value for row in table.rows]
    if table.others:
        names.append(f"{table.others:,} other {table.unit}{'s' * (table.others != 1)}")
        values.append(table.rest[0])
    names += [row_name(name) for name, _ in table.cells]
    values += [added[0] for _, added in table.cells]
    return names, values


def _name(row: TokenRow) -> str:
    return row_name(row.name) if row.known else f"{row_name(row.name)} (unknown)"


def _whiskers(axes: "Axes", table: TokenTable) -> None:
    """Draw the range of the end of each bar over several models."""
    place = table.bias[0]
    for number, row in enumerate(table.rows, 1):
        axes.plot([place + row.low, place + row.high], [number] * 2, color="black", linewidth=1.2, marker="|")
        place += row.value


def _write_values(axes: "Axes", table: TokenTable, values: list[float]) -> None:
    """Write each value to the right of its bar and of its whisker, including that of the last bar."""
    place = 0.0
    highs = [table.bias[0], *(row.high for row in table.rows), *values[1 + len(table.rows) :]]
    for row, (value, high) in enumerate(zip(values, highs, strict=True)):
        _write_value(axes, row, place + max(0.0, value, high), value)
        place += value
    _write_value(axes, len(values), max(0.0, table.total[0]), table.total[0])
    # Otherwise bars end at the edge of the plot, and the numbers after them beyond it.
    axes.use_sticky_edges = False
    axes.margins(x=0.1)


def _write_value(axes: "Axes", row: int, end: float, value: float) -> None:
    axes.annotate(signed(value, 2), (end, row), (4, 0), textcoords="offset points", va="center", fontsize="small")
