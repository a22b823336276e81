"""Labelled rows, and what may be wrong with them, for the terminal."""

from collections.abc import Iterator
from typing import Final

from rich.table import Table
from rich.text import Text

from textcls.data_quality.report import DataQualityReport
from textcls.display.text import percent, plural

# Scripts with less of the letters than this are left to --json.
LEAST_SHARE: Final = 0.001


def data_quality_report(report: DataQualityReport) -> Iterator[Table | Text]:
    """Yield what labelled rows are like, and what may be wrong with them."""
    several = ""
    if report.without_label is not None:
        several = f", {report.labels_a_row:.2f} labels a row, {plural(report.without_label, 'row')} without a label"
    yield Text(f"{plural(report.rows, 'row')}, {plural(len(report.labels), 'label')}{several}")
    lengths = ", ".join(f"{_quantile(share)} {number:,}" for share, number in report.tokens.items())
    yield Text(f"tokens of a text: {lengths}")
    scripts = ", ".join(f"{name} {percent(share)}" for name, share in report.scripts.items() if share >= LEAST_SHARE)
    yield Text(f"scripts: {scripts or 'no letters'}")
    yield Text()
    table = Table("label", box=None, pad_edge=False)
    for name in ("rows", "share"):
        table.add_column(name, justify="right")
    for label, rows in report.labels.items():
        table.add_row(Text(label), f"{rows:,}", percent(rows / report.rows))
    yield table
    yield Text()
    if not report.findings:
        yield Text("No problems found.")
    for finding in report.findings:
        yield Text.assemble(("! ", "yellow"), str(finding))


def _quantile(share: float) -> str:
    return {0.0: "shortest", 0.5: "median", 1.0: "longest"}.get(share, percent(share, 0))
