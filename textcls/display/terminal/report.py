"""A report on a model for the terminal: its sentences, and the labels."""

from collections.abc import Iterator

from rich.text import Text

from textcls.display.report_lines import summary_lines
from textcls.display.terminal.console import Printable
from textcls.display.terminal.evaluation import label_table
from textcls.reporting.report import ModelReport


def report_summary(found: ModelReport) -> Iterator[Printable]:
    """Yield what matters most."""
    for line in summary_lines(found):
        yield Text(line)
    yield Text()
    yield from label_table(found.scores)
