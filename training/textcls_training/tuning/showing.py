"""The results of tuning, for a terminal and as a page."""

from collections.abc import Iterator, Sequence
from html import escape
from math import exp, log
from typing import Any, Final

from rich.bar import Bar
from rich.table import Table
from rich.text import Text

from textcls.api.tuning import TriedOptions, TuneReport
from textcls.display.html.fragments import bar, document, fragment, heads, shown
from textcls.display.html.fragments import table as html_table
from textcls.display.terminal.console import table_of
from textcls.display.text import percent, plural
from textcls.evaluation.comparison.paired import Difference
from textcls.evaluation.intervals import CONFIDENCE

BAR: Final = 24
# The defaults of options that are not numbers.
_USUAL: Final = {"bigrams": "yes", "class_weight": "none"}
# The size of a picture, in its own units.
_WIDTH, _HEIGHT, _MARGIN, _LEFT = 420, 150, 22, 52
_STYLE: Final = (
    ".textcls .tried{width:100%;max-width:32rem;height:auto}"
    ".textcls .tried circle{fill:var(--accent,#2f6fde);fill-opacity:.55}.textcls .tried .left{fill:var(--faint)}"
    ".textcls .tried .best{fill:none;stroke:var(--ink);stroke-width:2}"
    ".textcls .tried text{font-size:11px;fill:var(--faint)}.textcls .tried line{stroke:var(--line)}"
)


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


# As a page


def page(report: TuneReport, title: str, about: str) -> str:
    """Return everything as a self-contained page: nothing is loaded from elsewhere, and no script runs."""
    return document(title, tuning_fragment(report), about=about, heading=title)


def tuning_fragment(report: TuneReport) -> str:
    """Return figures and verdict, the options with what mattered, and a picture of each."""
    rows = (
        f'<tr><th scope="row">{name}</th>{"".join(f"<td>{cell}</td>" for cell in _figures(figure))}</tr>'
        for name, figure in report.figures.items()
    )
    parts = [f"<style>{_STYLE}</style>", f"<p><b>{shown(verdict(report))}</b></p>", f"<p>{shown(how(report))}</p>"]
    parts.append(html_table(heads("", "default", "tuned", "difference", "interval"), rows))
    parts.append(_options_table(report))
    parts += [_picture(report, name) for name in _by_importance(report)]
    parts.append(
        '<p class="note">What mattered: the share of the differences between proposals that an option explains '
        "(functional ANOVA). A dot is a proposal, by what it chose and what folds of the rows that the search knows "
        "said of it: too good of the best one, which is ringed. Grey ones were left early.</p>"
    )
    return fragment(parts)


def _options_table(report: TuneReport) -> str:
    largest = max(report.importances.values(), default=1.0) or 1.0
    rows = []
    for name in _by_importance(report):
        share = report.importances.get(name)
        drawn = "<td></td><td></td>" if share is None else f"{bar(share / largest, 0)}<td>{percent(share, 0)}</td>"
        tuned = escape(_shown(report.options.get(name, "")))
        rows.append(
            f'<tr><th scope="row">{name.replace("_", "-")}</th><td>{escape(usual(report, name))}</td><td>{tuned}</td>'
            f"{drawn}</tr>"
        )
    return html_table(heads("option", "default", "tuned") + heads("what mattered", columns=2), rows)


def _picture(report: TuneReport, name: str) -> str:
    """Return a picture of the scores of all proposals by their choice of one option."""
    tried = [one for one in report.tried if one.score is not None]
    if not tried:
        return ""
    places, marks = _places(report, name, tried)
    scores = [one.score or 0.0 for one in tried]
    low, high = min(scores), max(scores)
    down = [_MARGIN + (_HEIGHT - 2 * _MARGIN) * (high - score) / ((high - low) or 1) for score in scores]
    best = max(range(len(tried)), key=lambda i: (tried[i].state == "judged", scores[i], -i))
    dots = "".join(
        f'<circle class="{"left" if one.state == "left" else "whole"}" cx="{x:.1f}" cy="{y:.1f}" r="4">'
        f"<title>{escape(_title(one))}</title></circle>"
        for one, x, y in zip(tried, places, down, strict=True)
    )
    dots += f'<circle class="best" cx="{places[best]:.1f}" cy="{down[best]:.1f}" r="6.5"/>'
    axis = "".join(
        f'<text x="{x:.1f}" y="{_HEIGHT - 4}" text-anchor="middle">{escape(text)}</text>' for text, x in marks
    )
    axis += "".join(
        f'<text x="{_LEFT - 8}" y="{y + 4:.0f}" text-anchor="end">{percent(score)}</text>'
        f'<line x1="{_LEFT}" x2="{_WIDTH}" y1="{y:.0f}" y2="{y:.0f}"/>'
        for score, y in ((high, _MARGIN), (low, _HEIGHT - _MARGIN))
    )
    label = f"{report.measured} by {name.replace('_', '-')}"
    return (
        f"<h3>{name.replace('_', '-')}</h3>"
        f'<svg class="tried" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{label}">{axis}{dots}</svg>'
    )


def _places(
    report: TuneReport, name: str, tried: Sequence[TriedOptions]
) -> tuple[list[float], list[tuple[str, float]]]:
    """Return the horizontal position of each proposal, and the labels below."""
    room = _WIDTH - _LEFT - 2 * _MARGIN
    if all(name in one.multiples for one in tried):
        logs = [log(one.multiples[name]) for one in tried]
        low, high = min(*logs, 0.0), max(*logs, 0.0)
        place = {
            value: _LEFT + _MARGIN + room * (value - low) / ((high - low) or 1) for value in (*logs, low, high, 0.0)
        }
        # The label of an end close to the default would overlap its label.
        ends = [value for value in (low, high) if abs(value) > (high - low) / 4]
        marks = [(_shown(float(report.usual[name] * exp(value))), place[value]) for value in ends]
        return [place[value] for value in logs], [*marks, (f"{usual(report, name)} (default)", place[0.0])]
    values = sorted({_shown(one.options.get(name, usual(report, name))) for one in tried})
    step = room / max(1, len(values) - 1)
    stands = {value: _LEFT + _MARGIN + step * i for i, value in enumerate(values)}
    return [stands[_shown(one.options.get(name, usual(report, name)))] for one in tried], list(stands.items())


def _title(of: TriedOptions) -> str:
    chosen = ", ".join(f"{name.replace('_', '-')} {_shown(value)}" for name, value in of.options.items()) or "defaults"
    return f"{of.score or 0:.2%}: {chosen}"
