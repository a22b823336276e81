"""Data quality: labelled rows before they are trained on: counts, lengths, scripts, and what may be wrong with them.

survey.py       what is remembered of each row, in little memory
duplicates.py   rows of the same text, and what counts as a near copy
scripts.py      which scripts the texts are written in
findings.py     what may be wrong, with the rows and what to do
report.py       all of it together
"""
