"""All that labelled rows say of a model, in one object that pages, Markdown and JSON are made of.

report.py       texts and labels in, the report out: what `textcls report` calls
model_report.py what reports on all models hold
one_label.py    a report on a model of one label per text
  answers.py      what is kept of each row while it is answered and explained
  abstention.py   how many rows are answered, how many right, and what that costs, threshold by threshold
  errors.py       wrong answers by the words behind them
label_sets.py   a report on a model that may give several
  set_answers.py  what is kept of each row
  label_aims.py   what thresholds of labels reach
  set_errors.py   missed labels, and labels too many, by the words behind them
slices.py       kinds of rows on which it is weaker: short ones, of another script, with unknown words, of a source
tracking.py     the report as a run of MLflow
"""
