"""Data quality: labelled rows before they are trained on: counts, lengths, scripts, and what may be wrong with them.

survey.py           what is remembered of each row, in little memory
duplicates.py       rows of the same text, and what counts as a near copy
scripts.py          which scripts the texts are written in
finding.py          what may be wrong, with the rows and what to do, as an object
findings.py         all of them
label_findings.py   those of the labels
joint_labels.py     cells that look like several labels in one
report.py           all of it together
"""
