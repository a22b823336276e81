"""A plot of one answer: from the bias to the logit, by what each token added (a waterfall chart)."""

from typing import TYPE_CHECKING, Final

from textcls.display.plots.figures import AGAINST, FOR, NEUTRAL, axes_of, name_rows, styled
from textcls.display.text import named, percent, short, signed
from textcls.display.token_table import TokenRow, TokenTable, token_table
from textcls.model.explanation import Explanation

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from textcls.model.explanation import Attribution

SHOWN_TOKENS: Final = 12
# Characters of the text in the title.
_TEXT: Final = 90


def plot_explanation(
    explanation: Explanation, label: str | None = None, against: str | None = None, *, top: int = SHOWN_TOKENS
) -> "Figure":
    """Return a plot of an answer, as a Matplotlib figure: `plot_explanation(answer.explanation).savefig("why.svg")`.

    It begins with the bias and ends with the logit of the label; between them, in reading order, what each of the
    strongest tokens added, and what all others did together.

    Args:
        explanation: of the answer; `explanation.grouped("sentence")` shows a long text by its sentences.
        label: the label explained; by default the most probable.
        against: the one label it is held against; by default all others.
        top: so many tokens have a bar of their own.

    Raises:
        MissingExtraError: Matplotlib is not installed.
        ConfigError: there is no such label, both are the same, or `top` is negative.
    """
    return plot_attribution(explanation, explanation.attribution(label, against), top)


def plot_attribution(explanation: Explanation, attribution: "Attribution", top: int = SHOWN_TOKENS) -> "Figure":
    """Return the plot of an attribution; the arguments are those of `plot_explanation`."""
    table = token_table(explanation, attribution, sorted(attribution.strongest(top).tolist()))
    names, values = _bars(table)
    with styled():
        figure, axes = axes_of(7.5, 1.6 + 0.3 * (len(values) + 1))
        place = 0.0
        for row, value in enumerate(values):
            colour = (FOR if value > 0 else AGAINST) if row else NEUTRAL
            axes.barh(row, value, left=place, height=0.7, color=colour)
            # To where the next begins.
            axes.plot([place + value] * 2, [row, row + 1], color=NEUTRAL, linewidth=0.8, zorder=0)
            place += value
        axes.barh(len(values), table.total[0], height=0.7, color=NEUTRAL)
        if table.models > 1:
            _whiskers(axes, table)
        _write_values(axes, [*values, table.total[0]])
        name_rows(axes, [*names, "logit"])
        axes.axvline(0, color=NEUTRAL, linewidth=0.8)
        probability = percent(float(explanation.probability_values[explanation.labels.index(attribution.label)]))
        rest = "" if attribution.against is None else f" and not {named(attribution.against)}"
        axes.set_title(f"{named(attribution.label)}{rest}, {probability}\n{short(explanation.text, _TEXT)}")
        axes.set_xlabel(f"{attribution.kind} in logits")
    return figure


def _bars(table: TokenTable) -> tuple[list[str], list[float]]:
    """Return the bars from the bias on: their names, and what each adds."""
    names, values = ["bias"], [table.bias[0]]
    names += [_name(row) for row in table.rows]
    values += [row.value for row in table.rows]
    if table.others:
        names.append(f"{table.others:,} other {table.unit}{'s' * (table.others != 1)}")
        values.append(table.rest[0])
    return names, values


def _name(row: TokenRow) -> str:
    return row.name if row.known else f"{row.name} (unknown)"


def _whiskers(axes: "Axes", table: TokenTable) -> None:
    """Draw over which range the end of each bar lies in several models."""
    place = table.bias[0]
    for number, row in enumerate(table.rows, 1):
        axes.plot([place + row.low, place + row.high], [number] * 2, color="black", linewidth=1.2, marker="|")
        place += row.value


def _write_values(axes: "Axes", values: list[float]) -> None:
    """Write each value behind the end of its bar that lies to the right."""
    place = 0.0
    for row, value in enumerate(values):
        start = 0.0 if row == len(values) - 1 else place
        end = max(start, start + value)
        axes.annotate(signed(value, 2), (end, row), (4, 0), textcoords="offset points", va="center", fontsize="small")
        place += value
    # Bars else end where the plot does, and numbers behind them beyond it.
    axes.use_sticky_edges = False
    axes.margins(x=0.1)
