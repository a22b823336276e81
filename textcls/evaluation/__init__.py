"""Measure how good a model is on labelled rows, and what it achieves if it may abstain.

metrics.py                accuracy, F1, calibration error, cross-entropy
intervals.py              confidence intervals of these figures
selective_prediction.py   the threshold below which it abstains: coverage and precision
evaluation.py             both, for a model on rows: `textcls.evaluate`
label_set_metrics.py      for several labels per text: F1, average precision, calibration, labels that are mixed up
label_set_intervals.py    confidence intervals of these figures
label_thresholds.py       the threshold of a label that reaches a precision or a recall
label_set_evaluation.py   both, for a model on rows
answers.py                the answers of the model to rows
"""
