"""Plots for slides and papers, drawn by Matplotlib.

figures.py      one look for all of them, and a plot as the content of a file
explanation.py  one answer: from the bias to the logit, token by token
evaluation.py   an evaluation: confusions, calibration, labels
"""
