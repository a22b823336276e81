"""Teach a model of prototypes a label from a few examples, without training; and take it back.

`scores` has the formula: cosines, attention over support rows, prototypes; `centres` makes a few support rows of many
vectors; `support` adds labels to a model file, and takes them away; `teach` makes a new file of examples, and a report.
"""

from textcls.model.teaching.teach import Taught, TaughtLabel, take_back, teach, write

__all__ = ["Taught", "TaughtLabel", "take_back", "teach", "write"]
