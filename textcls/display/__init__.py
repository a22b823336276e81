"""How answers, explanations and reports are shown: the same content in a terminal, as HTML and as JSON.

text.py          texts, names and numbers in readable form
token_table.py   the tables under an explanation, as data: terminal and HTML list the same numbers
remarks.py       the sentences beside them
report_lines.py  the sentences of a report on a model
plain_data.py    what --json prints
notebook.py      how notebooks show results
terminal/        tables and coloured texts, made with rich; progress
markdown/        reports and model cards
html/            fragments for notebooks and pages; the page that asks a model
"""
