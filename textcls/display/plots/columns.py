"""A plot of what columns beside the text add: a number's curve, a category's values, for the labels that move most."""

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from textcls.display.plots.figures import NEUTRAL, name_rows, room_for, row_name, styled
from textcls.display.text import MISSING, plural
from textcls.errors import ConfigError
from textcls.explain.columns import ColumnEffect

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# If there are more, those that move an answer most.
MOST_PARTS: Final = 12
SHOWN_LABELS: Final = 5
SHOWN_VALUES: Final = 12


def plot_columns(effects: Sequence[ColumnEffect], labels: Sequence[str]) -> "Figure":
    """Return a plot of effects, one below the other.

    Args:
        effects: the effects of the columns of a model (`textcls.explain.columns.column_effects`).
        labels: the labels of the model.

    Raises:
        ConfigError: no column adds anything.
        MissingExtraError: Matplotlib is not installed.
    """
    speaking = sorted((one for one in effects if one.largest), key=lambda one: -one.largest)
    shown = [one for one in effects if one in speaking[:MOST_PARTS]]
    if not shown:
        raise ConfigError("The model reads no columns beside the text; there is nothing to draw.")
    heights = [2.6 if one.kind == "curve" else 1.2 + 0.26 * len(one.strongest_values(SHOWN_VALUES)) for one in shown]
    with styled():
        from matplotlib.figure import Figure

        names = [_name(one, value) for one in shown for value in one.strongest_values(SHOWN_VALUES)]
        figure = Figure((6.5 + room_for(names), sum(heights)), layout="constrained")
        found = figure.subplots(len(shown), squeeze=False, gridspec_kw={"height_ratios": heights})
        for axes, one in zip(found[:, 0], shown, strict=True):
            _draw(axes, one, labels)
        if len(speaking) > len(shown):
            figure.suptitle(f"The {len(shown)} that move answers most, of {plural(len(speaking), 'part')}")
    return figure


def _draw(axes: "Axes", effect: ColumnEffect, labels: Sequence[str]) -> None:
    values = effect.strongest_values(SHOWN_VALUES)
    for label in effect.strongest_labels(SHOWN_LABELS):
        added = effect.added[values, label].tolist()
        if effect.kind == "curve":
            # The missing value comes last, and is on no line.
            places: Any = [_place(effect.values[value]) for value in values[:-1]]
            axes.plot(places, added[:-1], label=row_name(labels[label]))
        else:
            axes.plot(added, range(len(values)), "o", label=row_name(labels[label]))
    if effect.kind == "curve":
        axes.set_ylabel("added to the logit")
        axes.axhline(0, color=NEUTRAL, linewidth=0.8, zorder=0)
        axes.tick_params(axis="x", rotation=20)
    else:
        name_rows(axes, [_name(effect, value) for value in values])
        axes.set_xlabel("added to the logit")
        axes.axvline(0, color=NEUTRAL, linewidth=0.8, zorder=0)
    axes.set_title(row_name(effect.name))
    axes.legend(loc="center left", bbox_to_anchor=(1, 0.5), frameon=False, fontsize="small")


def _name(effect: ColumnEffect, value: int) -> str:
    return row_name(effect.values[value] or MISSING)


def _place(value: str) -> float | datetime:
    """Return the position of a point of a curve: a number, or a moment."""
    try:
        return float(value)
    except ValueError:
        return datetime.fromisoformat(value)
