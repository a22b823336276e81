"""A report as the content of a file: a page, Markdown, a model card or JSON."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from textcls.data.memory import Readable
from textcls.data.source import name_of
from textcls.display.html.fragments import document, made_of_version
from textcls.display.html.report import report_fragments
from textcls.display.markdown.card import model_card
from textcls.display.markdown.report import report_markdown
from textcls.display.plain_data import json_line
from textcls.evaluation.reporting.model_report import ModelReport

FORMATS: Final = ("html", "markdown", "card", "json")
# The reports that are kept beside a model, by file name.
BESIDE: Final = {"report.html": "html", "README.md": "card", "report.json": "json"}


def report_file(kind: str, model: Path, data: Sequence[Readable], found: ModelReport, name: str = "") -> str:
    """Return the content of the file.

    Args:
        kind: one of `FORMATS`.
        model: the file of the model.
        data: the rows that the report is about.
        found: the report.
        name: the name of the model; by default that of its file.
    """
    name = name or model.stem
    title, rows = f"Report on {name}", " and ".join(map(name_of, data))
    about = f"{made_of_version(model.name, found.model.version)}, on {rows}"
    if kind == "html":
        return document(title, *report_fragments(title, found), about=about)
    if kind == "markdown":
        return report_markdown(title, found, about)
    if kind == "card":
        return model_card(name, found, " and ".join(Path(name_of(one)).stem for one in data))
    return json_line(found.as_json()) + "\n"
