"""HTML: fragments for notebooks, pages of their own for files, and the page of `textcls serve` and `textcls web`.

In fragments nothing runs and nothing is fetched: no script, no font, no picture. Texts are escaped, and what would be
invisible or would reorder its surroundings is made visible, one character for one. The sign of a token is shown by the
colour and by the kind of its underline. The same explanation gives the same bytes.

    fragments.py            what all fragments are made of
    explanation.py          an answer and its explanation
    global_explanation.py   what a model relies on over many texts
    report.py               a report on a model; charts.py its pictures
    site.py                 the page that asks a model, as files; they stand in assets/
"""
