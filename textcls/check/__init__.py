"""Look at labelled rows before they are trained on: counts, lengths, scripts, and what may be wrong with them.

survey.py     what is remembered of each row, in little memory
copies.py     rows of the same text, and what counts as a near copy
scripts.py    which scripts the texts are written in
findings.py   what may be wrong, with the rows and what to do
report.py     all of it together
"""

from textcls.check.findings import Finding, find
from textcls.check.report import Report, report
from textcls.check.survey import Survey

__all__ = ["Finding", "Report", "Survey", "find", "report"]
