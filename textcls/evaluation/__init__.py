"""How good a model is on labelled rows, and what it promises where it may abstain.

metrics.py                accuracy, F1, calibration error, cross-entropy
intervals.py              between which values these lie
selective_prediction.py   the threshold below which it abstains: coverage and precision
evaluation.py             both, of a model on rows: `textcls.evaluate`
label_set_metrics.py      of several labels a text: F1, average precision, calibration, labels that are mixed up
label_set_intervals.py    between which values these lie
label_thresholds.py       the threshold of a label that reaches a precision or a recall
label_set_evaluation.py   both, of a model on rows
answers.py                what the model answers to rows
"""
