"""Scores for the terminal if a text may have several labels."""

from collections.abc import Iterator
from typing import Final

from rich.table import Table
from rich.text import Text

from textcls.display.terminal.console import table_of
from textcls.display.terminal.evaluation import learned_warning
from textcls.display.terminal.worst_labels import worst
from textcls.display.text import named, percent, plural
from textcls.evaluation.label_set_evaluation import LabelSetEvaluation, few_rows_sentence
from textcls.evaluation.label_set_metrics import LabelSetReport
from textcls.evaluation.unknown_labels import names_of, never_assigned_sentence

MIXED_UP: Final = 10


def label_set_evaluation_report(evaluation: LabelSetEvaluation) -> Iterator[Table | Text]:
    """Yield an evaluation: scores, labels at their thresholds, which are mixed up, and how thresholds were chosen."""
    yield from label_set_report(evaluation.report)
    yield from learned_warning(evaluation.learned)
    if evaluation.unknown_labels:
        known = [label.label for label in evaluation.report.labels if label.label not in evaluation.unknown_labels]
        yield Text(never_assigned_sentence(evaluation.unknown_labels, known))
    goal = evaluation.goal
    if goal is None:
        return
    if evaluation.few:
        yield Text(few_rows_sentence(evaluation.few), style="yellow")
    if evaluation.unreached:
        yield Text(
            f"No threshold reaches it for {names_of(evaluation.unreached)}: assigned from a probability of "
            f"{percent(goal.promised, None)} on.",
            style="yellow",
        )
    yield Text(
        f"The thresholds were chosen on these rows for a {goal.measure} of {percent(goal.share, None)} of each "
        "label: check them on other rows before relying on them."
    )


def label_set_report(report: LabelSetReport) -> Iterator[Table | Text]:
    """Yield a report: scores, labels, and which of them are mixed up."""
    yield score_line(report)
    yield other_scores_line(report)
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


def other_scores_line(report: LabelSetReport) -> Text:
    """Return in one line the scores that are needed less often."""
    loss = report.cross_entropy
    return Text(
        f"F1 a row {percent(report.samples_f1, 2)}   ranking loss {percent(report.ranking_loss, 2)}"
        + ("" if loss is None else f"   cross-entropy a row {loss:.3f}")
    )


def label_table(report: LabelSetReport) -> Iterator[Table | Text]:
    """Yield threshold, precision, recall and F1 of each label; if there are many, of those with the lowest F1."""
    lines, labels = worst(report.labels)
    yield from lines
    heads = ["threshold", "precision", "recall", "F1", "avg. precision", "ECE", "rows", "assigned"]
    table = table_of(["label"], heads)
    # Rows say nothing about the recall of a label that none of them has.
    for label in sorted(labels, key=lambda label: not label.rows):
        precision = "-" if label.average_precision is None else percent(label.average_precision, 1)
        scores = (percent(value, 1) for value in (label.threshold, label.precision, label.recall, label.f1))
        table.add_row(
            Text(named(label.label)),
            *scores,
            precision,
            f"{label.ece:.3f}",
            f"{label.rows:,}",
            f"{label.assigned:,}",
        )
    yield table


def mixed_up_table(report: LabelSetReport) -> Table:
    """Return which labels rows have and were not assigned, and what they were assigned instead."""
    table = table_of(["has", "was assigned instead"], ["rows"])
    for has, assigned, rows in report.mixed_up[:MIXED_UP]:
        table.add_row(Text(named(has)), Text(named(assigned)), f"{rows:,}")
    return table
