"""A report on a model for the terminal: its sentences, and the labels."""

from collections.abc import Iterator

from rich.text import Text

from textcls.display.report_lines import summary_lines
from textcls.display.terminal.console import Printable
from textcls.display.terminal.evaluation import label_table, path_report
from textcls.display.terminal.label_set_evaluation import label_table as label_set_table
from textcls.evaluation.label_set_metrics import LabelSetReport
from textcls.evaluation.reporting.model_report import ModelReport
from textcls.evaluation.reporting.one_label import OneLabelModelReport


def report_summary(found: ModelReport) -> Iterator[Printable]:
    """Yield what matters most."""
    for line in summary_lines(found):
        yield Text(line)
    yield Text()
    scores = found.scores
    yield from label_set_table(scores) if isinstance(scores, LabelSetReport) else label_table(scores)
    if isinstance(found, OneLabelModelReport) and found.paths is not None:
        yield from path_report(found.paths)
