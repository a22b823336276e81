"""Global explanation: what a model relies on over many texts, the terms for and against each label, and shortcuts.

Texts are read one at a time and not kept; only a row of sums is kept for each word and each pair of neighbours, at most
`CELLS` numbers in all. Words are compared in lower case.

    explainer.py   texts in, a global explanation out: what `textcls inspect --evidence` runs
    sums.py        attributions summed by word and by pair
    decisions.py   which words alone decide answers
    summary.py     what was found
"""
