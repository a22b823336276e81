"""Tables and coloured texts for the terminal, made with rich.

console.py              where commands print
explanation.py          an answer and its explanation
global_explanation.py   what a model relies on over many texts
evaluation.py           scores, confusions, coverage
data_quality.py         labelled rows and what may be wrong with them
model_info.py           the metadata of a model file
progress.py             the progress of a long task
"""
