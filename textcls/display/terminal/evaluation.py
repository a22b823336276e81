"""Scores, confusions and coverage for the terminal."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from rich.cells import cell_len
from rich.table import Table
from rich.text import Text

from textcls.display.report_lines import (
    LEVEL_POINTS,
    LEVELS,
    interval,
    learned_lines,
    level_points,
    levels,
    levels_notes,
)
from textcls.display.terminal.console import table_of
from textcls.display.terminal.worst_labels import worst
from textcls.display.text import named, percent, plural, top_k_sentence
from textcls.evaluation.evaluation import Evaluation
from textcls.evaluation.intervals import share
from textcls.evaluation.label_paths import PathEvaluation
from textcls.evaluation.metrics import ClassificationReport
from textcls.evaluation.selective_prediction import CONFIDENCE, OperatingPoint
from textcls.evaluation.unknown_labels import unknown_labels_sentence

WORST_CONFUSIONS: Final = 10
# The width of the widest confusion matrix, in columns, even if lines are not wrapped, as in a pipe.
WIDEST: Final = 200
# With fewer rows the possible effect of chance on the accuracy is reported.
FEW_ROWS: Final = 100


def learned_warning(part: float, model: str = "the model") -> Iterator[Text]:
    """Yield that a model has learned from some of the rows, if it has."""
    for line in learned_lines(part, model):
        yield Text(line, style="yellow")


def evaluation_report(evaluation: Evaluation, width: int) -> Iterator[Table | Text]:
    """Yield an evaluation in lines of `width`: scores, labels, confusions; then coverage and precision, if reached."""
    report = evaluation.report
    yield score_line(report)
    yield from learned_warning(evaluation.learned)
    yield from top_k_line(report)
    yield from label_table(report)
    confusions = confusion_table(report, width)
    if confusions is not None:
        yield confusions
    if evaluation.paths is not None:
        yield from path_report(evaluation.paths)
    if evaluation.unknown_labels:
        known = [label.label for label in report.labels if label.label not in evaluation.unknown_labels]
        yield Text(unknown_labels_sentence(evaluation.unknown_labels, known))
    if evaluation.operating_point is not None and evaluation.reached:
        yield operating_point_line(evaluation.operating_point)
        if evaluation.target_precision is not None:
            yield Text(
                "The threshold was chosen on these rows for a precision of "
                f"{percent(evaluation.target_precision, 2)}: check it on other rows before relying on it."
            )


def score_line(report: ClassificationReport) -> Text:
    """Return the summary of a report in one line."""
    loss, few = report.cross_entropy, report.rows < FEW_ROWS
    return Text.assemble(
        f"{plural(report.rows, 'row')}   accuracy ",
        (percent(report.accuracy, 2), "bold"),
        f" ({interval(share(round(report.accuracy * report.rows), report.rows))})" if few else "",
        f"   macro-F1 {percent(report.macro_f1, 2)}",
        "" if loss is None else f"   cross-entropy {loss:.3f} (perplexity {report.perplexity:.2f})",
        f"   ECE {report.ece:.3f}",
    )


def top_k_line(report: ClassificationReport) -> Iterator[Text]:
    """Yield how often the right label is among the best few, if these are few among all."""
    if sentence := top_k_sentence(report.top_k_accuracy, len(report.labels)):
        yield Text(sentence)


def operating_point_line(point: OperatingPoint) -> Text:
    """Return in one line how many rows a threshold lets the model answer, and how many of these correctly."""
    line = Text.assemble(
        f"At threshold {point.threshold:.9g} it answers {point.accepted:,} of {point.rows:,} rows: coverage ",
        (percent(point.coverage, 2), "bold"),
    )
    if point.precision is None:
        return line.append(", so there is no precision.")
    bound = f" (with {percent(CONFIDENCE, 0)} confidence at least {percent(point.lower_bound(), 2)})"
    return line.append(", precision ").append(percent(point.precision, 2), "bold").append(bound + ".")


def path_report(found: PathEvaluation) -> Iterator[Table | Text]:
    """Yield how good the answers are at each level of a tree, and down to which depth they are sure."""
    yield Text()
    yield _plain_table(LEVELS, levels(found))
    figures, *meanings = levels_notes(found)
    yield Text(figures)
    yield from (Text(line, style="dim") for line in meanings)
    if found.target_precision is not None:
        yield Text(f"\nFor nodes that are right in {percent(found.target_precision, 2)}, level by level:")
        yield _plain_table(LEVEL_POINTS, level_points(found))


def _plain_table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> Table:
    table = table_of(heads[:1], heads[1:])
    for row in rows:
        table.add_row(*row)
    return table


def label_table(report: ClassificationReport) -> Iterator[Table | Text]:
    """Yield precision, recall and F1 of each label; if there are many, of those with the lowest F1."""
    lines, labels = worst(report.labels)
    yield from lines
    table = table_of(["label"], ["precision", "recall", "F1", "rows"])
    # Rows say nothing about a label that none of them has.
    for label in sorted(labels, key=lambda label: not label.rows):
        scores = [percent(score, 1) if label.rows else "" for score in (label.precision, label.recall, label.f1)]
        table.add_row(Text(named(label.label)), *scores, f"{label.rows:,}")
    yield table


def confusion_table(report: ClassificationReport, width: int) -> Table | None:
    """Return the confusion matrix; if it is wider than `width` or `WIDEST`, the confusions that occur most, if any."""
    names = [named(label.label) for label in report.labels]
    heads = ["right \\ answered", *names]
    if max(map(cell_len, heads)) + sum(2 + max(4, cell_len(name)) for name in names) > min(width, WIDEST):
        return _worst_confusions(report)
    table = table_of([heads[0]], names)
    for name, row in zip(names, report.confusion, strict=True):
        table.add_row(Text(name), *(f"{n:,}" if n else "." for n in row))
    return table


def _worst_confusions(report: ClassificationReport) -> Table | None:
    worst = report.confusions[:WORST_CONFUSIONS]
    if not worst:
        return None
    table = Table(
        "right", "answered", "rows", box=None, pad_edge=False, title="most frequent confusions", title_justify="left"
    )
    for right, answered, rows in worst:
        table.add_row(Text(named(right)), Text(named(answered)), f"{rows:,}")
    return table
