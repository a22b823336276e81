"""Plots for slides and papers, drawn by Matplotlib.

figures.py      a common style for all of them, and a plot as the content of a file
explanation.py  one answer: from the bias to the logit, token by token
columns.py      what columns beside the text add: curves and tables
evaluation.py   an evaluation: confusions, calibration, labels
"""
