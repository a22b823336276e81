"""Scores for the terminal where a text may have several labels."""

from collections.abc import Iterator
from typing import Final

from rich.table import Table
from rich.text import Text

from textcls.display.text import percent, plural
from textcls.evaluation.label_set_metrics import LabelSetReport

# Of more labels the worst are told; so many.
MOST_LABELS: Final = 40
WORST_LABELS: Final = 20
MIXED_UP: Final = 10


def label_set_report(report: LabelSetReport) -> Iterator[Table | Text]:
    """Yield a report: scores, labels, and which of them are mixed up."""
    yield score_line(report)
    yield from label_table(report)
    if report.mixed_up:
        yield mixed_up_table(report)


def score_line(report: LabelSetReport) -> Text:
    """Return the summary of a report in one line."""
    return Text.assemble(
        f"{plural(report.rows, 'row')}   micro-F1 ",
        (percent(report.micro_f1, 2), "bold"),
        f"   macro-F1 {percent(report.macro_f1, 2)}",
        f"   average precision {percent(report.average_precision, 2)}",
        f"   all labels right {percent(report.exact, 2)}",
        f"   ECE a label {report.ece:.3f}",
    )


def label_table(report: LabelSetReport) -> Iterator[Table | Text]:
    """Yield threshold, precision, recall and F1 of each label; of many labels, of those of the lowest F1."""
    labels = report.labels
    if len(labels) > MOST_LABELS:
        labels = tuple(sorted((label for label in labels if label.rows), key=lambda label: label.f1)[:WORST_LABELS])
        yield Text(f"The {len(labels)} of {len(report.labels):,} labels with the lowest F1:")
    table = Table("label", box=None, pad_edge=False)
    for name in ("threshold", "precision", "recall", "F1", "avg. precision", "rows", "assigned"):
        table.add_column(name, justify="right")
    for label in labels:
        precision = "-" if label.average_precision is None else f"{label.average_precision:.3f}"
        scores = (f"{value:.3f}" for value in (label.threshold, label.precision, label.recall, label.f1))
        table.add_row(Text(label.label), *scores, precision, f"{label.rows:,}", f"{label.assigned:,}")
    yield table


def mixed_up_table(report: LabelSetReport) -> Table:
    """Return which labels rows have and were not assigned, and what they were assigned instead."""
    table = Table("has", "was assigned instead", box=None, pad_edge=False)
    table.add_column("rows", justify="right")
    for has, assigned, rows in report.mixed_up[:MIXED_UP]:
        table.add_row(Text(has), Text(assigned), f"{rows:,}")
    return table
