"""The search for options that suit the given rows: `textcls tune`.

space.py       what may be chosen, and what a choice means for the given rows
search.py      proposals by Optuna for one set of rows, in batches, judged on folds of these rows
storage.py     the file of measurements, from which the same call continues
run.py         parallel searches, and the final judgement on rows that none of their choices has seen
api.py         the Python interface; `textcls.tune` and its results are in the package without training
showing.py     the results for a terminal, and as a page
settings_file.py   the results as a file which `textcls train --config` reads
"""
