"""The tables of a measurement, for the terminal and for the page."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from rich.console import Console
from rich.table import Table
from rich.text import Text

from textcls.display.terminal.console import AGAINST, FOR
from textcls_torch.studies.explanations.bootstrap import Estimate
from textcls_torch.studies.explanations.faithfulness import SMALLEST_CHANGE
from textcls_torch.studies.explanations.results import BenchmarkResult, MethodResult

# figure -> its name in a table; an arrow says which way is better
TITLES: Final = {
    "comprehensiveness": "comprehensiveness ↑",
    "sufficiency": "sufficiency ↓",
    "loo_tau": "tau with leave-one-out ↑",
    "relative_comprehensiveness": "comprehensiveness / change ↑",
    "relative_sufficiency": "sufficiency / change ↓",
    "ferret_comprehensiveness": "comprehensiveness (ferret) ↑",
    "ferret_sufficiency": "sufficiency (ferret) ↓",
    "auprc": "AUPRC ↑",
    "auprc_phrase": "AUPRC by phrase ↑",
    "auprc_sentence": "AUPRC by sentence ↑",
    "token_f1": "token F1 ↑",
    "character_f1": "character F1 ↑",
    "iou_f1": "IOU F1 ↑",
    "iou_f1_merged": "IOU F1, neighbours merged ↑",
    "typo": "tau after a typo ↑",
    "synonym": "tau after a synonym ↑",
    "duplicate": "tau, text twice ↑",
    "other_model": "tau with the other model ↑",
    "shuffled_labels": "tau with shuffled labels",
    "random_weights": "tau with random weights",
}
GROUPS: Final = {
    "delete": "Faithfulness, tokens deleted",
    "mask": "Faithfulness, tokens masked",
    "plausibility": "Agreement with people",
    "robustness": "Robustness",
    "sanity": "Agreement with models that have learned nothing: should be near 0",
}
NONE: Final = "-"
_STYLES: Final = {"better": FOR, "worse": AGAINST, "not worse": "dim", None: "dim"}
# An attention whose comprehensiveness is a smaller share of that of the contributions is no explanation.
LEAST_FAITHFUL: Final = 0.7


class Grid(NamedTuple):
    """A table: its columns, and per row a name and the cells."""

    title: str
    columns: Sequence[str]
    rows: Sequence[tuple[str, Sequence[str]]]


def number(found: Estimate) -> str:
    """Return the figure and half the width of its interval, `0.318 ± 0.021`; a dash where it is not defined."""
    if found.value is None:
        return NONE
    if found.low is None or found.high is None:
        return f"{found.value:.3f}"
    return f"{found.value:.3f} ± {(found.high - found.low) / 2:.3f}"


def grids(result: BenchmarkResult) -> list[Grid]:
    """Return a table of the cost, and one for each group of figures that was measured."""
    cost = [(method.name, (f"{method.calls:,.0f}", f"{method.milliseconds:,.2f}")) for method in result.methods]
    found = [Grid("Cost of one explanation", ("model calls", "ms"), cost)]
    for group, title in GROUPS.items():
        figures = [name for name in TITLES if name in result.methods[0].figures.get(group, {})]
        if figures:
            rows = [(method.name, _cells(method, group, figures)) for method in result.methods]
            found.append(Grid(title, [TITLES[name] for name in figures], rows))
    return found


def _cells(method: MethodResult, group: str, figures: Sequence[str]) -> list[str]:
    return [number(method.figures[group][name]) for name in figures]


def comparison_grids(result: BenchmarkResult) -> list[Grid]:
    """Return, for each group, the verdict on the contributions against every other method."""
    found = []
    for group, title in GROUPS.items():
        rows = [one for one in result.comparisons if one.group == group]
        figures = [name for name in TITLES if any(one.figure == name for one in rows)]
        verdicts = {(one.other, one.figure): one.verdict or NONE for one in rows}
        others = dict.fromkeys(one.other for one in rows)
        if figures:
            body = [(other, [verdicts[other, name] for name in figures]) for other in others]
            found.append(Grid(f"{title}: contributions against ...", [TITLES[name] for name in figures], body))
    return found


def notes(result: BenchmarkResult) -> list[str]:
    """Return what has to be said of the figures, a sentence each."""
    found = [
        f"{result.texts:,} texts of {result.tokens:.1f} tokens in the mean, seed {result.seed}; ± is half of a 95 % "
        "bootstrap interval."
    ]
    if result.skipped:
        found.append(f"{result.skipped:,} texts without a token were left out.")
    found += [f"{name} is left out: {reason}." for name, reason in result.left_out.items()]
    used = result.methods[0].figures[result.removals[0]]["relative_comprehensiveness"].count
    found.append(
        f"Ratios to the change from the empty to the whole text are means over the {used:,} texts whose change is more "
        f"than {SMALLEST_CHANGE}."
    )
    if result.rationales is not None:
        counts = result.rationales
        found.append(
            f"Rationales: {counts.used:,} texts used; left out {counts.unmarked:,} without a marked token, "
            f"{counts.unaligned:,} that could not be aligned, {counts.unknown_label:,} of a label that the model does "
            f"not know; of {counts.inexact:,} used ones the text is not the tokens joined by spaces."
        )
    if result.changed:
        changes = ", ".join(f"{name.replace('_', ' ')} {count:,}" for name, count in result.changed.items())
        found.append(f"Robustness was measured on so many texts: {changes}.")
    return [*found, *_sanity_note(result), *_attention_warning(result)]


def _sanity_note(result: BenchmarkResult) -> list[str]:
    """Return what models that have learned nothing tell of the contributions, if they were asked."""
    own = next((m.figures.get("sanity", {}) for m in result.methods if m.name == "contributions"), {})
    taus = [own[name].value for name in ("shuffled_labels", "random_weights") if name in own]
    if not taus or any(tau is None for tau in taus):
        return []
    return [
        f"Sanity: the contributions agree with those of a model of shuffled labels with tau {taus[0]:.2f}, and with "
        f"those of one of random weights with {taus[1]:.2f}: near 0 they tell of this model, near 1 of the text alone."
    ]


def _attention_warning(result: BenchmarkResult) -> list[str]:
    """Return a warning if the attention tells far less than the contributions of what the answer rests on."""
    removal = result.removals[0]
    values = {method.name: method.figures[removal]["comprehensiveness"].value for method in result.methods}
    own, attention = values.get("contributions"), values.get("attention")
    if own is None or attention is None or attention >= LEAST_FAITHFUL * own:
        return []
    return [
        f"Do not show this model's attention as a reason: its comprehensiveness is {attention:.2f}, that of the "
        f"contributions {own:.2f}."
    ]


def print_report(console: Console, result: BenchmarkResult) -> None:
    """Print the tables and notes."""
    for grid in grids(result):
        console.print(_rich_table(grid))
    for grid in comparison_grids(result):
        console.print(_rich_table(grid))
    for note in notes(result):
        console.print(Text(note, style="dim"))


def _rich_table(grid: Grid) -> Table:
    table = Table("method", box=None, pad_edge=False, title=grid.title, title_justify="left")
    for column in grid.columns:
        table.add_column(Text(column), justify="right")
    for name, cells in grid.rows:
        table.add_row(Text(name), *(Text(cell, style=_STYLES.get(cell, "")) for cell in cells))
    return table
