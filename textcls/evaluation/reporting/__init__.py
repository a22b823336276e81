"""Report everything that labelled rows show about a model, as one object that HTML, Markdown and JSON are made from.

report.py       texts and labels in, the report out: what `textcls report` runs
model_report.py what reports on all models contain
one_label.py    a report on a model with one label per text
  answers.py      what is kept of each row while it is answered and explained
    abstention.py   how many rows are answered, how many correctly, and what that costs, threshold by threshold
  errors.py       wrong answers by the words behind them
label_sets.py   a report on a model that may give several labels
  set_answers.py  what is kept of each row
    label_aims.py   what the thresholds of labels reach
    set_errors.py   missed and superfluous labels by the words behind them
slices.py       kinds of rows on which it is weaker: short ones, of another script, with unknown words, of a source
tracking.py     the report as an MLflow run
"""
