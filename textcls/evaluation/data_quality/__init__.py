"""Data quality of labelled rows before training: counts, lengths, scripts, and what may be wrong with them.

survey.py           what is remembered of each row, in little memory
duplicates.py       rows with the same text, and what counts as a near copy
scripts.py          which scripts the texts are written in
finding.py          an object for one thing that may be wrong, with its rows and what to do
findings.py         all findings
label_findings.py   findings about the labels
joint_labels.py     cells that look like several labels in one
report.py           everything together
"""
