"""Teach a model of prototypes a label from a few examples, without training, or take it back.

`scores` has the formula: cosines, attention over support rows, prototypes; `centres` reduces many vectors to a few
support rows; `support` adds labels to a model file or removes them; `teach` makes a new file and a report.
"""

from textcls.model.teaching.teach import Taught, TaughtLabel, take_back, teach, write

__all__ = ["Taught", "TaughtLabel", "take_back", "teach", "write"]
