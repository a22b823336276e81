"""How notebooks show results: the page of a report, and otherwise what the commands print, in their colours."""

import io
from collections.abc import Iterable
from typing import Any, Final

from textcls.display.html.fragments import fragment
from textcls.display.html.global_explanation import global_explanation_fragment
from textcls.display.html.report import report_fragments
from textcls.display.terminal.comparison import comparison_report
from textcls.display.terminal.console import Printable, VisibleConsole, show
from textcls.display.terminal.evaluation import evaluation_report
from textcls.display.terminal.label_set_evaluation import label_set_evaluation_report
from textcls.display.terminal.model_info import model_table
from textcls.evaluation.comparison.compare import Comparison
from textcls.evaluation.evaluation import Evaluation
from textcls.evaluation.label_set_evaluation import LabelSetEvaluation
from textcls.evaluation.reporting.model_report import ModelReport
from textcls.explain.global_explanation.summary import GlobalExplanation
from textcls.model.classifier import Classifier

# The width, in columns, of what is printed.
WIDTH: Final = 110


def page_of(found: Any) -> str:
    """Return what a notebook shows of a result, as HTML.

    Raises:
        TypeError: notebooks do not show it.
    """
    if isinstance(found, ModelReport):
        return "\n".join(report_fragments(f"Report on {found.model.name}", found))
    if isinstance(found, GlobalExplanation):
        return global_explanation_fragment("What it relies on", found)
    return fragment([_printed(_lines(found))])


def _lines(found: Any) -> Iterable[Printable]:
    if isinstance(found, Classifier):
        return [model_table(found.path, found.info)]
    if isinstance(found, Evaluation):
        return evaluation_report(found, WIDTH)
    if isinstance(found, LabelSetEvaluation):
        return label_set_evaluation_report(found)
    if isinstance(found, Comparison):
        return comparison_report(found)
    raise TypeError(f"notebooks show no {type(found).__name__}")


def _printed(lines: Iterable[Printable]) -> str:
    console = VisibleConsole(record=True, file=io.StringIO(), width=WIDTH, legacy_windows=False)
    show(lines, console)
    return console.export_html(inline_styles=True, code_format="<pre>{code}</pre>")
