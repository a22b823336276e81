"""How good a model is on labelled rows, and what it promises where it may abstain.

metrics.py                accuracy, F1, calibration error, cross-entropy
selective_prediction.py   the threshold below which it abstains: coverage and precision
evaluation.py             both, of a model on rows: `textcls.evaluate`
"""
