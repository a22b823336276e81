"""Labelled rows, and what may be wrong with them, for the terminal."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from rich.table import Table
from rich.text import Text

from textcls.data.renaming import spelt_alike
from textcls.display.terminal.console import table_of
from textcls.display.terminal.worst_labels import MOST_LABELS, WORST_LABELS
from textcls.display.text import named, percent, plural, short
from textcls.evaluation.data_quality.label_audit import LabelAudit, SuspectRow
from textcls.evaluation.data_quality.report import DataQualityReport

# Scripts with a smaller share of the letters are left to --json.
LEAST_SHARE: Final = 0.001
# The number of suspects that are shown, and of characters of their texts.
SUSPECTS, CHARACTERS = 20, 100


def label_count(labels: Iterable[str]) -> str:
    """Return how many labels there are, and how many differ by more than their spelling if these are fewer."""
    names = list(labels)
    variants = len(spelt_alike(names))
    alike = f" ({len(names) - variants:,} that differ by more than case and spaces)" if variants else ""
    return f"{plural(len(names), 'label')}{alike}"


def data_quality_report(report: DataQualityReport) -> Iterator[Table | Text]:
    """Yield the properties of labelled rows, and what may be wrong with them."""
    several = ""
    if report.without_label is not None:
        several = f", {report.labels_a_row:.2f} labels a row, {plural(report.without_label, 'row')} without a label"
    yield Text(f"{plural(report.rows, 'row')}, {label_count(report.labels)}{several}")
    lengths = ", ".join(f"{_quantile(share)} {number:,}" for share, number in report.tokens.items())
    yield Text(f"tokens of a text: {lengths}")
    scripts = ", ".join(f"{name} {percent(share)}" for name, share in report.scripts.items() if share >= LEAST_SHARE)
    yield Text(f"scripts: {scripts or 'no letters'}")
    yield Text()
    yield _label_table(report)
    yield Text()
    if not report.findings:
        yield Text("No problems found.")
    for finding in report.findings:
        yield Text.assemble(("! ", "yellow"), str(finding))


def _label_table(report: DataQualityReport) -> Table:
    """Return a table of labels; if there are very many, of the most frequent and the rarest."""
    table = table_of(["label"], ["rows", "share"])
    labels = list(report.labels.items())
    left_out = len(labels) - WORST_LABELS if len(labels) > MOST_LABELS else 0
    ends = WORST_LABELS // 2 if left_out else len(labels)
    for i, (label, rows) in enumerate(labels[:ends] + labels[ends + left_out :]):
        if left_out and i == ends:
            table.add_row(Text(f"({left_out:,} more: --json has all)", style="dim"))
        table.add_row(Text(named(label)), f"{rows:,}", percent(rows / report.rows))
    return table


def label_audit_report(audit: LabelAudit, places: Sequence[str]) -> Iterator[Table | Text]:
    """Yield the rows with a label that is probably wrong, the most certain first, with the place of each."""
    yield Text()
    if not audit.suspects:
        yield Text(f"No label of {plural(audit.judged, 'row')} is doubted by models that have not seen the row.")
        return
    share = percent(len(audit.suspects) / max(1, audit.judged))
    several = not isinstance(audit.suspects[0].label, str)
    wrong = f"{max(1, round(audit.expected)):,} of {audit.judged:,} {'label sets' if several else 'labels'}"
    yield Text(f"About {wrong} look wrong to models that have not seen the row.")
    what = "have a wrong label, or lack one" if several else "have a wrong label"
    yield Text(f"{plural(len(audit.suspects), 'row')} ({share}) may {what}; the surest first:")
    table = Table("row", "label", "may be", "chances", "because of", "text", box=None, pad_edge=False)
    for one, place in zip(audit.suspects[:SUSPECTS], places, strict=False):
        chances = f"{percent(one.probability, 0)} to {percent(one.probability_suggested, 0)}"
        words = ", ".join(one.words) + (" (so labelled elsewhere)" if one.copies else "")
        table.add_row(*map(Text, (place, *_own_and_suggested(one), chances, words, short(one.text, CHARACTERS))))
    yield table
    if len(audit.suspects) > SUSPECTS:
        yield Text(f"{len(audit.suspects) - SUSPECTS:,} more: --suspects FILE writes all of them.", style="dim")
    if audit.judged < audit.rows:
        yield Text(f"{plural(audit.rows - audit.judged, 'row')} could not be judged: no other row has the label.")


def _own_and_suggested(one: SuspectRow) -> tuple[str, str]:
    """Return the labels of a row and the suggested ones; with several labels, those to be added and removed."""
    if isinstance(one.label, str) or isinstance(one.suggested, str):
        return named(str(one.label)), named(str(one.suggested))
    added = [f"+ {named(label)}" for label in one.suggested if label not in one.label]
    gone = [f"- {named(label)}" for label in one.label if label not in one.suggested]
    return ", ".join(map(named, one.label)) or "(none)", ", ".join([*added, *gone])


def _quantile(share: float) -> str:
    return {0.0: "shortest", 0.5: "median", 1.0: "longest"}.get(share, percent(share, 0))
