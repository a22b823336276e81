"""The results of tuning, for a terminal."""

from collections.abc import Iterator
from typing import Any, Final

from rich.bar import Bar
from rich.table import Table
from rich.text import Text

from textcls.api.tuning import TuneReport
from textcls.display.terminal.console import table_of
from textcls.display.text import percent, plural
from textcls.evaluation.comparison.paired import Difference
from textcls.evaluation.intervals import CONFIDENCE

BAR: Final = 24
# The defaults of options that are not numbers.
_USUAL: Final = {"bigrams": "yes", "class_weight": "auto"}


def verdict(report: TuneReport) -> str:
    """Return the sentence that says which options to train with, and why."""
    gain = report.gain
    if not report.options:
        return "Nothing that was tried did better than the defaults: keep them."
    interval = f"{100 * gain.low:+.2f} to {100 * gain.high:+.2f} points of {report.measured}"
    if report.is_better:
        return f"Better than the defaults: {interval} on rows that the choice has not seen."
    if gain.is_sure:
        return f"Worse than the defaults on rows that the choice has not seen ({interval}): keep the defaults."
    return f"Not better than the defaults beyond chance ({interval}): keep the defaults."


def how(report: TuneReport) -> str:
    """Return the sentence that says how this was found."""
    searches = report.rounds + (report.rounds > 1)
    states = [one.state for one in report.tried]
    left = f", {states.count('left'):,} of them left early" if "left" in states else ""
    failed = f", {states.count('failed'):,} could not be trained" if "failed" in states else ""
    held = "a fifth of the rows" if report.rounds == 1 else f"each of {report.rounds} parts of the rows"
    return (
        f"{plural(searches, 'search')[:-1] + 'es' if searches > 1 else '1 search'} of {plural(len(states), 'proposal')}"
        f"{left}{failed}, by {report.folds} folds; {held} was held out to judge a choice made without it."
    )


# For a terminal


def tuning_report(report: TuneReport) -> Iterator[Table | Text]:
    """Yield figures and verdict, the options, and what mattered."""
    yield Text(how(report))
    heads = ["default", "tuned", "difference", f"{percent(CONFIDENCE, 0)} interval"]
    table = table_of([plural(report.judged_rows, "unseen row")], heads)
    for name, figure in report.figures.items():
        table.add_row(name, *_figures(figure))
    yield table
    yield Text(verdict(report), style="bold" if report.is_better else "yellow")
    yield Text()
    yield _options(report)


def _figures(of: Difference) -> tuple[str, str, str, str]:
    points = f"{100 * of.difference:+.2f}"
    return percent(of.before, 2), percent(of.after, 2), points, f"{100 * of.low:+.2f} to {100 * of.high:+.2f}"


def _options(report: TuneReport) -> Table:
    table = table_of(["option"], ["default", "tuned"])
    table.add_column("what mattered" if report.importances else "")
    table.add_column(justify="right")
    largest = max(report.importances.values(), default=1.0) or 1.0
    for name in _by_importance(report):
        share = report.importances.get(name)
        drawn = ("", "") if share is None else (Bar(largest, 0, share, width=BAR), percent(share, 0))
        table.add_row(name.replace("_", "-"), usual(report, name), _shown(report.options.get(name, "")), *drawn)
    return table


def _by_importance(report: TuneReport) -> list[str]:
    tried = (name for one in report.tried for name in (*one.options, *one.multiples))
    names = {*report.options, *report.importances, *tried}
    return sorted(names, key=lambda name: (-report.importances.get(name, 0), name))


def usual(report: TuneReport, name: str) -> str:
    """Return the default of an option in readable form."""
    return _shown(report.usual[name]) if name in report.usual else _USUAL.get(name, "auto")


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.3g}" if isinstance(value, float) else str(value)
