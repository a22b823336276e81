"""The search for options that suit given rows: `textcls tune`.

space.py       what may be chosen, and what a choice means for given rows
search.py      proposals of Optuna for one set of rows, in batches, judged by folds of these rows
storage.py     the file that keeps what was measured, from which the same call goes on
run.py         searches side by side, and what rows that none of their choices has seen say in the end
api.py         from Python: `textcls.tune`, beside what was found, is in the package without training
showing.py     that for a terminal, and as a page
settings_file.py   that as a file which `textcls train --config` reads
"""
